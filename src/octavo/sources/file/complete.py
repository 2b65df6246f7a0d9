"""Completion of paths and of the variables of templates, from what a listing would show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.core.values import Suggestion
from octavo.sources._shared.places import Place, Where
from octavo.sources.file.addresses import FileAddresses
from octavo.sources.file.entries import FileFacts
from octavo.sources.file.root import Names
from octavo.sources.file.roots import Forest

MAX_VALUES: Final = 100
_MAX_SUGGESTED: Final = 1000  # of which a caller may see some
_MAX_LOOKED_AT: Final = 20_000  # a template can begin with a variable: then all files are candidates

_VARIABLE: Final = re.compile(r"\{\+?([A-Za-z_][A-Za-z0-9_.]*)\}")


_Found: TypeAlias = tuple[str, Place, FileFacts]


class Completer(Struct, frozen=True):
    forest: Forest
    addresses: FileAddresses
    templates: Sequence[str]
    stop: Callable[[], bool]
    after: Ref | None = None  # names up to this one were given before

    def values(self, argument: str, prefix: str, given: Mapping[str, str]) -> list[str]:
        """At most MAX_VALUES that begin with `prefix`, in order, each once. Nonsense has no completions."""
        found: set[str] = set()
        for template in self.templates:
            found.update(value for value, *_ in islice(self._found(template, argument, prefix, given), MAX_VALUES))
        return sorted(found)[:MAX_VALUES]

    def suggestions(self, argument: str, prefix: str, given: Mapping[str, str]) -> list[Suggestion]:
        """The same with what a listing would tell of each file that a value was found in."""
        return [
            Suggestion(value, self.forest.listed(place, facts, shadowed=self.forest.is_shadowed(place)))
            for template in self.templates
            for value, place, facts in _part(self._found(template, argument, prefix, given))
        ]

    def _found(self, template: str, argument: str, prefix: str, given: Mapping[str, str]) -> Iterator[_Found]:
        prefix = unicodedata.normalize("NFC", prefix)
        filled = _VARIABLE.sub(lambda m: m[0] if m[1] == argument else given.get(m[1], m[0]), template)
        if filled.endswith(f"{{+{argument}}}"):
            yield from self._paths(filled.removesuffix(f"{{+{argument}}}"), prefix, self._given)
        elif f"{{{argument}}}" in filled:
            yield from self._parts(filled, f"{{{argument}}}", prefix)

    def _paths(self, base: str, prefix: str, given: Names) -> Iterator[_Found]:
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
        for place, facts in self._places(Where(start, below.roots), given, (*start, beginning)):
            if len(place.names) == depth or not place.names[depth].startswith(beginning):
                return  # names are in order: nothing later begins so
            yield "/".join(place.names[len(below.names) :]), place, facts

    def _absolute(self, prefix: str) -> Iterator[_Found]:
        first = 0 if self.after is None else self._root_of(self.after)  # one root after the other
        for k in range(first, len(self.forest.trees)):
            shown = self.addresses.absolute((), k)
            if shown is None:
                continue
            root = f"/{'/'.join((*shown.segments, ''))}"
            given = self._given if k == first else ()
            if prefix.startswith(root) or root.startswith(prefix):
                rest = prefix.removeprefix(root) if prefix.startswith(root) else ""
                for path, place, facts in self._paths(f"{shown}/" if shown.segments else str(shown), rest, given):
                    yield f"{root}{path}", place, facts

    def _parts(self, template: str, variable: str, prefix: str) -> Iterator[_Found]:
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
        for place, facts in islice(self._places(where, self._given), _MAX_LOOKED_AT):
            names = place.names[len(where.names) :]
            if len(names) != len(rest) or not pattern.matches(Ref(self.addresses.scheme, names)):
                continue
            value = names[at].removeprefix(before)
            if "{" not in after:
                value = value.removesuffix(after)
            elif literal:
                value = value.partition(literal)[0]
            if value and value.startswith(prefix):
                yield value, place, facts

    @property
    def _given(self) -> Names:
        return () if self.after is None else self.addresses.where(self.after).names

    def _root_of(self, ref: Ref) -> int:
        where = self.addresses.where(ref)
        places = (k for k in where.roots if self.forest.facts(Place(where.names, k)) is not None)
        return next(places, where.roots[0])

    def _places(self, where: Where, given: Names, begin: Names = ()) -> Iterator[tuple[Place, FileFacts]]:
        """In order, from behind those that were given before."""
        for place, facts in self.forest.places(where, begin=max(begin, given), stop=self.stop):
            if not given or place.names > given:
                yield place, facts

    def _where(self, uri: str) -> Where | None:
        try:
            return self.addresses.where(Ref.parse(uri))
        except OctavoError:
            return None


def _part(found: Iterator[_Found]) -> Iterator[_Found]:
    """The first of them, and what has the names of the last in further roots."""
    names: Names = ()
    for number, one in enumerate(found):
        if number >= _MAX_SUGGESTED and one[1].names != names:
            return
        names = one[1].names
        yield one
