"""Between addresses and places: which root and which names a Ref means, and how a place is written.

Purely lexical, so that a refusal here tells nothing about what is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from octavo.core.errors import Forbidden, InvalidParams, OctavoError
from octavo.core.parameters import refuse_unknown
from octavo.core.ref import Ref
from octavo.sources._shared.fs.faults import not_found
from octavo.sources._shared.places import Names, Where
from octavo.sources.file.parameters import IN_ABSOLUTE, PARAMETERS


class FileRoot(Struct, frozen=True):
    """A directory to serve. `as_` is a public absolute prefix (`/project`) in place of its real path; `named`: its real
    path is understood as well. `within` are the folders below it to which it is narrowed for now; None: all of it."""

    path: Path
    as_: str | None = None
    within: tuple[Names, ...] | None = None
    named: bool = False


class FileAddresses:
    def __init__(self, scheme: str, roots: Sequence[FileRoot]) -> None:
        self.scheme = scheme
        self._all = range(len(roots))
        self._several = len(roots) > 1
        self.public = _public(roots)
        accepted = [(prefix, k) for k, prefixes in enumerate(self.public) for prefix in prefixes]
        self._accepted = sorted(accepted, key=lambda pair: -len(pair[0]))  # the longest prefix decides

    def canonical(self, ref: Ref) -> Ref:
        """The relative spelling, which of several roots says the one that was meant. InvalidParams for unknown
        parameters, Forbidden outside every root."""
        if ref.scheme != self.scheme:
            raise not_found(ref)
        refuse_unknown(ref, IN_ABSOLUTE if ref.absolute else PARAMETERS)
        if not ref.absolute:
            return ref
        for prefix, k in self._accepted:
            if ref.segments[: len(prefix)] == prefix:
                found = self.of(ref.segments[len(prefix) :], k)
                return found._replace(params=tuple(sorted((*found.params, *ref.params)))) if ref.params else found
        raise Forbidden("The path lies outside of what is served: use an address as lists show them", uri=str(ref))

    def where(self, ref: Ref) -> Where:
        if not ref.params and not ref.absolute and ref.scheme == self.scheme:
            return Where(ref.segments, self._all)
        ref = self.canonical(ref)
        number = ref.param("root")
        if number is None:
            return Where(ref.segments, self._all)
        if not (number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= len(self._all)):
            raise InvalidParams(f"The parameter root is a number from 1 to {len(self._all)}", uri=str(ref))
        return Where(ref.segments, (int(number) - 1,))

    def of(self, names: Names, k: int) -> Ref:
        """The canonical address of a place that says in which of several roots it is: without that it would mean the
        first that has it."""
        return Ref(self.scheme, names, (("root", str(k + 1)),) if self._several else ())

    def plain(self, names: Names, k: int) -> Ref:
        """The same as lists and changes name it, where no root before this one has these names."""
        return self.of(names, k) if k else Ref(self.scheme, names)

    def absolute(self, names: Names, k: int) -> Ref | None:
        prefixes = self.public[k] if self.scheme == "file" else ()
        return Ref(self.scheme, (*prefixes[0], *names), (), True) if prefixes else None


def _public(roots: Sequence[FileRoot]) -> list[list[Names]]:
    """For each root the absolute prefixes under which it is known, first the one to show. A real path that begins or
    ends inside what another root shows is not understood: one address would mean two files."""
    shown = [_prefix(root.as_ if root.as_ is not None else os.path.abspath(root.path)) for root in roots]
    known: list[list[Names]] = []
    for k, root in enumerate(roots):
        real = (os.path.abspath(root.path), os.path.realpath(root.path))
        own = [_prefix(path) for path in real] if root.named or root.as_ in (None, *real) else []
        others = [other for j, other in enumerate(shown) if j != k and other is not None]
        apart = [one for one in own if one is not None and not any(_meet(one, other) for other in others)]
        mine = shown[k]
        known.append(list(dict.fromkeys(apart if mine is None else [mine, *apart])))
    return known


def _prefix(path: str) -> Names | None:
    try:
        return Ref.of("file", [part for part in path.split("/") if part], absolute=True).segments
    except OctavoError:  # no address can say this path; the relative spelling still works
        return None


def _meet(one: Names, other: Names) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]
