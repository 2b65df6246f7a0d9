"""Where pieces stand in a text: many literals in one pass, and runs of whole lines by an index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

import re2 as _untyped_re2  # type: ignore[import-untyped]  # it has no annotations

from octavo.core.sizes import GIB, MIB

re2 = cast("Any", _untyped_re2)

_WORTH: Final = 64_000_000  # characters to scan, one literal after the other, from which one pass for all is faster
_WIDTHS: Final = (16, 8)  # bytes of an anchor; shorter literals are sought one by one
_WINDOWS: Final = 64  # places in a literal that are looked at for a telling anchor
_HITS: Final = 100_000  # anchors seen after which they tell too little
_WORK: Final = GIB  # bytes compared after which hits cost too much
_MEMORY: Final = 256 * MIB
_CHARACTERS: Final = 0x110000


class Literals:
    """Finds literals in a text, from left to right and without overlap of one with itself."""

    def __init__(self, text: str, wanted: Iterable[str]) -> None:
        self._text = text
        distinct = set(wanted)
        self._known = _in_one_pass(text, distinct) if len(distinct) * len(text) > _WORTH else {}

    def positions(self, literal: str) -> list[int]:
        known = self._known.get(literal)
        return known if known is not None else _one_by_one(self._text, literal)


class LineIndex:
    """Finds runs of lines in a list of lines: each distinct line becomes one character of a string, and the search
    in that string takes linear time, also where all lines are alike."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._numbers: dict[str, int] = {}
        numbers = self._numbers
        self._coded = "".join([chr(numbers.setdefault(line, len(numbers)) % _CHARACTERS) for line in lines])

    def runs(self, wanted: Sequence[str], *, start: int = 0, overlapping: bool = False) -> Iterator[int]:
        """Where the whole run begins, from left to right."""
        if not all(line in self._numbers for line in wanted):
            return
        coded = "".join([chr(self._numbers[line] % _CHARACTERS) for line in wanted])
        at = self._coded.find(coded, start)
        while at >= 0:
            found = self.stands(wanted, at)
            if found:
                yield at
            at = self._coded.find(coded, at + (len(wanted) if found and not overlapping else 1))

    def stands(self, wanted: Sequence[str], begin: int) -> bool:
        end = begin + len(wanted)
        return begin >= 0 and end <= len(self.lines) and list(self.lines[begin:end]) == list(wanted)


def _one_by_one(text: str, literal: str) -> list[int]:
    found: list[int] = []
    at = text.find(literal)
    while at >= 0:
        found.append(at)
        at = text.find(literal, at + len(literal))
    return found


def _in_one_pass(text: str, wanted: Iterable[str]) -> dict[str, list[int]]:
    """Positions by literal, for those long enough to have an anchor: all anchors of one width are alternatives of
    one expression, so at each place at most one of them stands, and each hit is compared with its literals."""
    raw = text.encode("utf-8", "surrogatepass")
    offsets: dict[str, list[int]] = {}
    for width, literals in _by_width(wanted).items():
        offsets |= _anchored(raw, literals, width)
    return _in_characters(raw, offsets)


def _by_width(wanted: Iterable[str]) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for literal in wanted:
        size = len(literal.encode("utf-8", "surrogatepass"))
        width = next((width for width in _WIDTHS if size >= width), None)
        if width:
            groups.setdefault(width, []).append(literal)
    return groups


def _anchored(raw: bytes, literals: Sequence[str], width: int) -> dict[str, list[int]]:
    forms = [literal.encode("utf-8", "surrogatepass") for literal in literals]
    by_anchor: defaultdict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for n, form in enumerate(forms):
        offset = _telling(form, width)
        by_anchor[form[offset : offset + width]].append((n, offset))
    anchors = _alternatives(by_anchor)
    found: list[list[int]] = [[] for _ in forms]
    hits = work = 0
    hit = anchors.search(raw, 0)
    while hit:
        hits += 1
        if hits > _HITS or work > _WORK:
            return {}
        at = hit.start()
        for n, offset in by_anchor[raw[at : at + width]]:
            begin, form = at - offset, forms[n]
            work += len(form)
            free = found[n][-1] + len(form) if found[n] else 0
            if begin >= free and raw.startswith(form, begin):
                found[n].append(begin)
        hit = anchors.search(raw, at + 1)
    return dict(zip(literals, found, strict=True))


def _telling(form: bytes, width: int) -> int:
    """The place of the window with the most different bytes."""
    last = len(form) - width
    return max(range(0, last + 1, max(1, last // _WINDOWS)), key=lambda at: len(set(form[at : at + width])))


def _alternatives(anchors: Iterable[bytes]) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes, not characters
    options.max_mem = _MEMORY
    options.log_errors = False
    return re2.compile(b"|".join(map(re2.escape, sorted(anchors))), options)


def _in_characters(raw: bytes, offsets: dict[str, list[int]]) -> dict[str, list[int]]:
    if raw.isascii():
        return offsets
    places: dict[int, int] = {}
    at = count = 0
    for offset in sorted({offset for found in offsets.values() for offset in found}):
        count += len(raw[at:offset].decode("utf-8", "surrogatepass"))
        at = offset
        places[offset] = count
    return {literal: [places[offset] for offset in found] for literal, found in offsets.items()}
