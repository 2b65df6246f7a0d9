"""Which addresses the sources of a configuration could ever have, and whether a pattern can match one of them.

What a source holds today does not matter: a rule may be about what is yet to come. What it can never hold does: a
folder too many, a fixed name that was mistyped, a path outside of every root.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from octavo.config.model import Config
from octavo.core.glob import ANY_DEPTH, Glob

_VARIABLE: Final = re.compile(r"\{\+?[A-Za-z_][A-Za-z0-9_]*\}")
_SOME: Final = 1  # one character, whichever
_MORE: Final = 2  # any number of them

# A name: its characters, and what may stand for others.
_Name: TypeAlias = tuple[str | Literal[1, 2], ...]
_ANY_NAME: Final[_Name] = (_SOME, _MORE)
_FOUND: Final = (-1, -1)


class AddressForm(Struct, frozen=True):
    """`names` one after the other; `above`: each beginning of them is an address too; `below`: and all that stands
    deeper."""

    names: tuple[_Name, ...]
    above: bool = True
    below: bool = False

    def __str__(self) -> str:
        text = ["".join("*" if one == _SOME else one for one in name if one != _MORE) for name in self.names]
        return "/".join((*text, "…")) if self.below else "/".join(text)

    def meets(self, pattern: Glob) -> bool:
        """Whether some address of this form matches the path of a pattern."""
        parts, most = pattern.parts, len(self.names)

        def ahead(i: int, j: int) -> Iterator[tuple[int, int]]:
            """With so much of the pattern and so many names used up."""
            if i == len(parts):
                if pattern.subtree or self._ends(j):
                    yield _FOUND
                return
            if parts[i] == ANY_DEPTH:
                yield i + 1, j
            if j < most or (self.below and j < most + len(parts)):
                if parts[i] == ANY_DEPTH:
                    yield i, j + 1
                elif _meet(_of_pieces(parts[i]), self.names[j] if j < most else _ANY_NAME):
                    yield i + 1, j + 1

        return _leads(ahead)

    def _ends(self, names: int) -> bool:
        most = len(self.names)
        return names == most or (self.above if names < most else self.below)


def forms(config: Config, scheme: str) -> list[AddressForm] | None:
    """Of a scheme's relative addresses. None where they may be any, or are not known here."""
    if scheme == "changes":
        served = [source.scheme for source in config.sources.values() if source.expose]
        return [AddressForm((tuple(one),), below=True) for one in served]
    if scheme == "server":
        return [AddressForm((tuple(name),), above=False) for name in ("config", "metrics")]
    source = next((one for one in config.sources.values() if one.expose and one.scheme == scheme), None)
    told = None if source is None else source.record.forms(source)
    if told is None:
        return None
    made = [(_of_template(one.template), one.below) for one in told]
    return [AddressForm(form.names, below=form.below or below) for form, below in made]


def roots(config: Config) -> list[AddressForm]:
    """Of absolute addresses, which only files have."""
    found: list[AddressForm] = []
    for source in config.sources.values():
        if source.scheme == "file" and source.expose:  # the one scheme that has such addresses
            for folder in source.folders:
                real = (folder.path, Path(os.path.realpath(folder.path))) if folder.named else ()
                paths = (Path(folder.shown), *real)
                found += [AddressForm(tuple(map(_normal, path.parts[1:])), above=False, below=True) for path in paths]
    return found


def _of_template(text: str) -> AddressForm:
    names = [name for name in text.split("/") if name]
    deep = next((number for number, name in enumerate(names, 1) if "{+" in name), None)
    return AddressForm(tuple(map(_of_name, names[:deep])), below=deep is not None)


def _of_name(text: str) -> _Name:
    return _ANY_NAME if _VARIABLE.fullmatch(text) else _normal(text)


def _normal(text: str) -> _Name:
    return tuple(unicodedata.normalize("NFC", text))


def _of_pieces(pieces: Sequence[str]) -> _Name:
    """Of a segment of a pattern: the texts between its stars."""
    made: list[str | Literal[1, 2]] = [*pieces[0]]
    for piece in pieces[1:]:
        made += [_MORE, *piece]
    return tuple(made)


def _meet(one: _Name, other: _Name) -> bool:
    """Whether some name fits both."""

    def ahead(i: int, j: int) -> Iterator[tuple[int, int]]:
        mine, theirs = one[i : i + 1], other[j : j + 1]
        if not mine and not theirs:
            yield _FOUND
        if mine == (_MORE,):
            yield i + 1, j
        if theirs == (_MORE,):
            yield i, j + 1
        both_fixed = isinstance(mine[0] if mine else 0, str) and isinstance(theirs[0] if theirs else 0, str)
        if mine and theirs and (mine == theirs or not both_fixed):
            yield (i if mine == (_MORE,) else i + 1), (j if theirs == (_MORE,) else j + 1)

    return _leads(ahead)


def _leads(ahead: Callable[[int, int], Iterable[tuple[int, int]]]) -> bool:
    """Whether some way from the beginning ends. Step by step: a pattern may be thousands of characters long."""
    seen = {(0, 0)}
    left = [(0, 0)]
    while left:
        for place in ahead(*left.pop()):
            if place == _FOUND:
                return True
            if place not in seen:
                seen.add(place)
                left.append(place)
    return False
