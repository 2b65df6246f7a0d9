"""What changed between two texts, as a unified diff of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from octavo.text.align import Block, changed
from octavo.text.lines import split_at_lf

NO_END: Final = "\\ No newline at end of file\n"
_CUT: Final = "... the rest of the diff is left out\n"


class Diff(NamedTuple):
    """`text` is empty when nothing changed, and no patch when it is not `complete`; the counts are always whole."""

    text: str
    added: int
    removed: int
    complete: bool


def unified(before: str, after: str, label: str, *, context: int = 3, max_bytes: int = 64_000) -> Diff:
    """The diff of two texts under one label. Lines end with LF here and a CR is content, so that a change of line
    ends is a change, and the diff applied to `before` gives `after` to the byte."""
    old, new = split_at_lf(before), split_at_lf(after)
    blocks = changed(old, new)
    added, removed = sum(block.b2 - block.b1 for block in blocks), sum(block.a2 - block.a1 for block in blocks)
    text, complete = _bounded(_lines(old, new, blocks, _visible(label), context), max_bytes)
    return Diff(text, added, removed, complete)


def _lines(old: Sequence[str], new: Sequence[str], blocks: Sequence[Block], label: str, context: int) -> Iterator[str]:
    if blocks:
        yield f"--- {label}\n"
        yield f"+++ {label}\n"
    for group in _grouped(blocks, context):
        a1, b1 = max(group[0].a1 - context, 0), max(group[0].b1 - context, 0)
        a2, b2 = min(group[-1].a2 + context, len(old)), min(group[-1].b2 + context, len(new))
        yield f"@@ -{_range(a1, a2)} +{_range(b1, b2)} @@\n"
        for block in group:
            yield from _marked(" ", old[a1 : block.a1])
            yield from _marked("-", old[block.a1 : block.a2])
            yield from _marked("+", new[block.b1 : block.b2])
            a1 = block.a2
        yield from _marked(" ", old[a1:a2])


def _grouped(blocks: Sequence[Block], context: int) -> Iterator[list[Block]]:
    group: list[Block] = []
    for block in blocks:
        if group and block.a1 - group[-1].a2 > 2 * context:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _range(start: int, stop: int) -> str:
    count = stop - start
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n{NO_END}"


def _bounded(lines: Iterator[str], max_bytes: int) -> tuple[str, bool]:
    given: list[str] = []
    sizes: list[int] = []
    room = max_bytes
    for line in lines:
        size = len(line.encode("utf-8", "surrogatepass"))
        if size > room:
            while given and room < len(_CUT):
                given.pop()
                room += sizes.pop()
            return ("".join((*given, _CUT)) if room >= len(_CUT) else ""), False
        given.append(line)
        sizes.append(size)
        room -= size
    return "".join(given), True


def _visible(label: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in label)
