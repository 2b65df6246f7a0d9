"""Apply a unified diff to one text, without fuzz.

Each hunk must stand where it says, or in exactly one other place after the hunk before it. Every context and removed
line must be there; at second attempt line ends are not compared (LF in the patch, CRLF in the text, no end at the
end), then kept lines keep their ends and added ones get the text's. All hunks apply or none does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from octavo.core.errors import InvalidParams
from octavo.text.find import LineIndex
from octavo.text.lines import body, ending, endings, split_at_lf

_HEADER: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(?:\d{1,9})(?:,(\d{1,9}))? @@")
_OTHER_FILE: Final = ("--- ", "+++ ", "diff ", "Index: ")
_SHOWN: Final = 10  # line numbers in a message
_QUOTED: Final = 120  # characters of the patch in a message


class Placed(NamedTuple):
    """The line of the text as it was at which a hunk applied, and how far that is from where the hunk said."""

    hunk: int
    line: int
    offset: int


class Patched(NamedTuple):
    text: str
    hunks: Sequence[Placed]


class _Hunk(NamedTuple):
    number: int
    line: int  # of its header, in the patch
    start: int  # index of the first line of the text that it covers
    marked: Sequence[tuple[str, str]]  # ' ', '-' or '+', and the line

    def before(self) -> list[str]:
        return [line for mark, line in self.marked if mark != "+"]


def apply(text: str, patch: str) -> Patched:
    """The patched text; InvalidParams that names the hunk and its line in the patch if it does not apply."""
    hunks = _parsed(split_at_lf(patch))
    lines = split_at_lf(text)
    try:
        begins = _located(hunks, LineIndex(lines), list)
        result = _exact(hunks, begins, lines)
    except InvalidParams:
        begins = _located(hunks, LineIndex(_bodies(lines)), _bodies)
        result = _with_own_ends(hunks, begins, lines, (endings(text) or ["\n"])[0])
    placed = (Placed(hunk.number, at + 1, at - hunk.start) for hunk, at in zip(hunks, begins, strict=True))
    return Patched("".join(result), tuple(placed))


def _parsed(patch: Sequence[str]) -> list[_Hunk]:
    hunks: list[_Hunk] = []
    at = 0
    while at < len(patch):
        header = _HEADER.match(patch[at])
        if header:
            start, count = int(header[1]), _count(header[2])
            marked, after = _marked(patch, at, header, len(hunks) + 1)
            hunks.append(_Hunk(len(hunks) + 1, at + 1, start - 1 if count else start, marked))
            at = after
        elif hunks and patch[at].rstrip() == "--":  # the signature of a patch by mail
            break
        elif hunks and patch[at].startswith(_OTHER_FILE):
            raise InvalidParams(f"Line {at + 1} of the patch begins another file: send one file at a time")
        elif hunks and patch[at].startswith((" ", "+", "-")):
            raise InvalidParams(f"Line {at + 1} of the patch is more than the header of hunk {len(hunks)} counts")
        elif patch[at].startswith("@@"):
            raise InvalidParams(f"Line {at + 1} of the patch is no header of a hunk: write @@ -12,3 +12,4 @@")
        else:
            at += 1
    if not hunks:
        raise InvalidParams("The patch has no hunk: send a unified diff, with @@ -12,3 +12,4 @@ before each change")
    return hunks


def _marked(
    patch: Sequence[str], header_at: int, header: re.Match[str], number: int
) -> tuple[list[tuple[str, str]], int]:
    """The lines of a hunk by the counts of its header, and where the patch goes on."""
    old, new = _count(header[2]), _count(header[3])
    marked: list[tuple[str, str]] = []
    at = header_at + 1
    while at < len(patch) and (old or new or patch[at].startswith("\\")):
        line = patch[at]
        if line.startswith("\\"):
            if marked:
                marked[-1] = (marked[-1][0], marked[-1][1].removesuffix("\n"))
            at += 1
            continue
        # Editors strip the blank of an empty context line; the end of a patch may lack its line end.
        mark, content = (line[0], line[1:]) if line.strip("\r\n") else (" ", line)
        if mark not in " +-":
            raise InvalidParams(
                f"Line {at + 1} of the patch, in hunk {number}, begins neither with ' ' nor '+' nor '-'"
            )
        old, new = old - (mark != "+"), new - (mark != "-")
        if old < 0 or new < 0:
            break
        marked.append((mark, content if content.endswith("\n") else content + "\n"))
        at += 1
    if old or new:
        raise InvalidParams(
            f"Hunk {number} (line {header_at + 1} of the patch) has not the number of lines that its header counts"
        )
    return marked, at


def _count(written: str | None) -> int:
    return 1 if written is None else int(written)


def _bodies(lines: Sequence[str]) -> list[str]:
    return [body(line) for line in lines]


def _located(hunks: Sequence[_Hunk], index: LineIndex, form: Callable[[Sequence[str]], list[str]]) -> list[int]:
    begins: list[int] = []
    free = drift = 0
    for hunk in hunks:
        wanted = form(hunk.before())
        said = hunk.start + drift
        begin = said if said >= free and index.stands(wanted, said) else _elsewhere(hunk, wanted, index, free, said)
        begins.append(begin)
        free, drift = begin + len(wanted), begin - hunk.start
    return begins


def _elsewhere(hunk: _Hunk, wanted: Sequence[str], index: LineIndex, free: int, said: int) -> int:
    found = list(islice(index.runs(wanted, start=free, overlapping=True), _SHOWN + 1)) if wanted else []
    if len(found) == 1:
        return found[0]
    where = f"Hunk {hunk.number} (line {hunk.line} of the patch)"
    if found:
        listed = ", ".join(str(begin + 1) for begin in found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise InvalidParams(
            f"{where} is not at line {said + 1} of the text and fits in several places (line {listed}). "
            "Give more lines of context, or the right line number",
            hunk=hunk.number,
        )
    raise InvalidParams(f"{where} does not apply: {_missing(wanted, index, said)}", hunk=hunk.number)


def _missing(wanted: Sequence[str], index: LineIndex, said: int) -> str:
    """The first line of the hunk that is not where it should be, in the words of the patch."""
    total = len(index.lines)
    for n, line in enumerate(wanted):
        if not 0 <= said + n < total or index.lines[said + n] != line:
            quoted = line.rstrip("\r\n")[:_QUOTED]
            return f"line {said + n + 1} of the text (of {total}) is not {quoted!r}. Read the file again"
    return f"its place, line {said + 1}, is beyond the text of {total} lines or inside an earlier hunk"


def _exact(hunks: Sequence[_Hunk], begins: Sequence[int], lines: Sequence[str]) -> list[str]:
    result: list[str] = []
    at = 0
    for hunk, begin in zip(hunks, begins, strict=True):
        result += lines[at:begin]
        result += (line for mark, line in hunk.marked if mark != "-")
        at = begin + len(hunk.before())
    result += lines[at:]
    if not all(line.endswith("\n") for line in result[:-1]):
        raise InvalidParams("The patch ends a line in the middle of the text without a line end")
    return result


def _with_own_ends(hunks: Sequence[_Hunk], begins: Sequence[int], lines: Sequence[str], end: str) -> list[str]:
    """As `_exact`, with the ends of the text: its own for kept lines, the usual one for added lines, and still none
    at the end of a text that had none."""
    result: list[str] = []
    at = 0
    for hunk, begin in zip(hunks, begins, strict=True):
        result += lines[at:begin]
        at = begin
        for mark, line in hunk.marked:
            if mark == "+":
                result.append(body(line) + end)
            else:
                result += [lines[at]] if mark == " " else []
                at += 1
    result += lines[at:]
    result = [line if ending(line) else line + end for line in result]
    if result and lines and not ending(lines[-1]):
        result[-1] = body(result[-1])
    return result
