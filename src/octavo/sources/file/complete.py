"""Completion of paths and of the variables of templates, from what a listing would show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.sources.file.addresses import Addresses, Where
from octavo.sources.file.forest import Forest
from octavo.sources.file.tree import Names

MAX_VALUES: Final = 100
_MAX_LOOKED_AT: Final = 20_000  # a template can begin with a variable: then all files are candidates

_VARIABLE: Final = re.compile(r"\{\+?([A-Za-z_][A-Za-z0-9_.]*)\}")


def completions(
    forest: Forest,
    addresses: Addresses,
    templates: Sequence[str],
    argument: str,
    prefix: str,
    given: Mapping[str, str],
    stop: Callable[[], bool],
) -> list[str]:
    """At most MAX_VALUES values that begin with `prefix`, in order, each once. Nonsense has no completions."""
    prefix = unicodedata.normalize("NFC", prefix)
    values: dict[str, None] = {}
    if argument == "path":
        found = _paths(forest, addresses, prefix, stop)
        values.update((value, None) for value in islice(found, MAX_VALUES))
    for template in templates:
        if argument in _VARIABLE.findall(template) and f"{{+{argument}}}" not in template:
            found = _values(forest, addresses, template, argument, prefix, given, stop)
            values.update((value, None) for value in found)
    return sorted(values)[:MAX_VALUES]


def _paths(forest: Forest, addresses: Addresses, prefix: str, stop: Callable[[], bool]) -> Iterator[str]:
    folder, _, beginning = prefix.rpartition("/")
    where = _where(addresses, f"{addresses.scheme}://", folder.split("/") if folder else [])
    if where is None:
        return
    depth = len(where.names)
    last = None
    for place, _ in forest.places(where, begin=(*where.names, beginning), stop=stop):
        if len(place.names) == depth or not place.names[depth].startswith(beginning):
            return  # names are in order: nothing later begins so
        if place.names != last:
            last = place.names
            yield "/".join(last)


def _values(
    forest: Forest,
    addresses: Addresses,
    template: str,
    argument: str,
    prefix: str,
    given: Mapping[str, str],
    stop: Callable[[], bool],
) -> Iterator[str]:
    """Matches every listed file below the template's fixed beginning against the whole template."""
    filled = _VARIABLE.sub(lambda m: given.get(m[1], m[0]) if m[1] != argument else m[0], template)
    scheme, _, path = filled.partition("://")
    parts = path.split("/")
    fixed: list[str] = []
    for part in parts:
        if "{" in part:
            break
        fixed.append(part)
    where = _where(addresses, f"{scheme}://", fixed)
    if where is None or len(fixed) == len(parts):
        return
    rest = parts[len(fixed) :]
    try:
        pattern = Glob(f"{addresses.scheme}://" + "/".join(_VARIABLE.sub("*", part) for part in rest))
    except OctavoError:
        return
    at = next(i for i, part in enumerate(rest) if f"{{{argument}}}" in part)
    before, _, after = rest[at].partition(f"{{{argument}}}")
    if "{" in before:
        return  # where the value begins is known only when the variable before it is
    literal = _VARIABLE.split(after)[0]
    for place, _ in islice(forest.places(where, stop=stop), _MAX_LOOKED_AT):
        names: Names = place.names[len(where.names) :]
        if len(names) != len(rest) or not pattern.matches(Ref(addresses.scheme, names)):
            continue
        tail = names[at].removeprefix(before)
        end = len(tail) - len(after) if "{" not in after else tail.find(literal) if literal else len(tail)
        if end > 0 and tail.startswith(prefix):
            yield tail[:end]


def _where(addresses: Addresses, start: str, folder: Sequence[str]) -> Where | None:
    try:
        return addresses.where(Ref.parse(start + "/".join(folder)))
    except OctavoError:
        return None
