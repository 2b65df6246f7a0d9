"""Completion of paths and of the variables of templates, from what a listing would show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.sources.file.addresses import Addresses, Where
from octavo.sources.file.forest import Forest

MAX_VALUES: Final = 100
_MAX_LOOKED_AT: Final = 20_000  # a template can begin with a variable: then all files are candidates

_VARIABLE: Final = re.compile(r"\{\+?([A-Za-z_][A-Za-z0-9_.]*)\}")


class Completer(Struct, frozen=True):
    forest: Forest
    addresses: Addresses
    templates: Sequence[str]
    stop: Callable[[], bool]

    def values(self, argument: str, prefix: str, given: Mapping[str, str]) -> list[str]:
        """At most MAX_VALUES that begin with `prefix`, in order, each once. Nonsense has no completions."""
        prefix = unicodedata.normalize("NFC", prefix)
        found: set[str] = set()
        for template in self.templates:
            filled = _VARIABLE.sub(lambda m: m[0] if m[1] == argument else given.get(m[1], m[0]), template)
            if filled.endswith(f"{{+{argument}}}"):
                found.update(islice(self._paths(filled.removesuffix(f"{{+{argument}}}"), prefix), MAX_VALUES))
            elif f"{{{argument}}}" in filled:
                found.update(islice(self._parts(filled, f"{{{argument}}}", prefix), MAX_VALUES))
        return sorted(found)[:MAX_VALUES]

    def _paths(self, base: str, prefix: str) -> Iterator[str]:
        """Whole paths below `base`, which ends with a slash. Below `file://` also absolute ones, as lists give them."""
        if prefix.startswith("/") and base == "file://":
            yield from self._absolute(prefix)
            return
        below = self._where(base if base.endswith("//") else base.removesuffix("/"))
        folder, slash, beginning = prefix.rpartition("/")
        if below is None:
            return
        try:
            start = Ref.of(self.addresses.scheme, (*below.names, *(folder.split("/") if slash else ()))).segments
        except OctavoError:
            return
        depth = len(start)
        for place, _ in self.forest.places(Where(start, below.roots), begin=(*start, beginning), stop=self.stop):
            if len(place.names) == depth or not place.names[depth].startswith(beginning):
                return  # names are in order: nothing later begins so
            yield "/".join(place.names[len(below.names) :])

    def _absolute(self, prefix: str) -> Iterator[str]:
        for shown in filter(None, (self.addresses.absolute((), k) for k in range(len(self.forest.trees)))):
            root = f"/{'/'.join((*shown.segments, ''))}"
            if prefix.startswith(root) or root.startswith(prefix):
                rest = prefix.removeprefix(root) if prefix.startswith(root) else ""
                yield from (
                    f"{root}{path}" for path in self._paths(f"{shown}/" if shown.segments else str(shown), rest)
                )

    def _parts(self, template: str, variable: str, prefix: str) -> Iterator[str]:
        """Parts of names: every listed file below the fixed beginning is held against the whole template."""
        scheme, _, path = template.partition("://")
        parts = path.split("/")
        fixed = next(i for i, part in enumerate(parts) if "{" in part)
        where = self._where(f"{scheme}://" + "/".join(parts[:fixed]))
        rest = parts[fixed:]
        at = next(i for i, part in enumerate(rest) if variable in part)
        before, _, after = rest[at].partition(variable)
        if where is None or "{" in before:
            return  # where the value begins is known only when the variable before it is
        try:
            pattern = Glob(f"{self.addresses.scheme}://" + "/".join(_VARIABLE.sub("*", part) for part in rest))
        except OctavoError:
            return
        literal = _VARIABLE.split(after)[0]
        for place, _ in islice(self.forest.places(where, stop=self.stop), _MAX_LOOKED_AT):
            names = place.names[len(where.names) :]
            if len(names) != len(rest) or not pattern.matches(Ref(self.addresses.scheme, names)):
                continue
            value = names[at].removeprefix(before)
            if "{" not in after:
                value = value.removesuffix(after)
            elif literal:
                value = value.partition(literal)[0]
            if value and value.startswith(prefix):
                yield value

    def _where(self, uri: str) -> Where | None:
        try:
            return self.addresses.where(Ref.parse(uri))
        except OctavoError:
            return None
