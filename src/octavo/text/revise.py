"""Applies an edit to a text: the one function by which every source does it, with the diff that tells of it.

It runs below what hides secrets: for what is hidden from the caller signs stand in the text, which nobody can write and
which are put back after. So a right guess at what is hidden is answered as a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from octavo.core.edit import Revised, Revision
from octavo.core.errors import InvalidParams
from octavo.core.marks import MARK
from octavo.core.placeholders import as_marks
from octavo.core.preconditions import below
from octavo.text import edits, patch
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


_MARK: Final = re.compile(MARK)


def revise(text: str, revision: Revision) -> Revised:
    """The new text, and what to say of it. Raises InvalidParams, which names the edit and the place, if one does not
    apply, or would change what is hidden from the caller."""
    return below(text, partial(_revised, revision))


def _revised(revision: Revision, text: str) -> Revised:
    if revision.patch is not None:
        added = "\n".join(line for line in revision.patch.split("\n") if line.startswith("+"))
        _refuse_marks(added, there=text)
        patched = patch.apply(text, revision.patch)
        after, places = patched.text, tuple(place._asdict() for place in patched.hunks)
    else:
        for edit in revision.edits:
            _refuse_marks(edit.new, there=text)
        edited = edits.apply(text, revision.edits, visible=as_marks, words=revision.words)
        after, places = edited.text, tuple(place._asdict() for place in edited.places)
    diff = unified(text, after, revision.label, max_bytes=revision.most)
    return Revised(after, diff.text, diff.added, diff.removed, places)


def _refuse_marks(new: str, *, there: str) -> None:
    """Whoever copies from what it has read may copy a mark. Unless the text itself has it, a secret would be lost."""
    for mark in _MARK.findall(new):
        if mark not in there:
            raise InvalidParams(f"{mark} stands for a secret that you cannot see: edit other lines, and leave it out")
