"""Builds Markdown: bounded in size, and with text escaped so that it forms no markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

_MAX_PARTS: Final = 2_000
_MAX_TITLE: Final = 200
_UNWANTED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_STRUCTURE: Final = re.compile(r"^(?=#{1,6}(?:\s|$)|```|~~~)", re.MULTILINE)
_SPACES: Final = re.compile(r"\s+")
_LINK: Final = re.compile(r"(?:https?|ftps?)://[^\s<>]+|mailto:[^\s<>]+", re.IGNORECASE)


class Full(Exception):
    """The draft has reached its limit; what was written stays."""


class MarkdownDraft:
    """Blocks of Markdown, and the titles of the parts. Raises Full, and keeps what fits, at the limit."""

    def __init__(self, max_bytes: int) -> None:
        self.parts: list[str] = []
        self.truncated = False
        self._left = max_bytes
        self._pieces: list[str] = []
        self._tight = False

    def part(self, title: str) -> None:
        if len(self.parts) < _MAX_PARTS:
            self.parts.append(inline(title)[:_MAX_TITLE])

    def block(self, text: str) -> None:
        """A paragraph, heading or fence of its own."""
        if text:
            self._add("\n\n", text)
            self._tight = False

    def item(self, text: str) -> None:
        """A line that belongs to the one before: of a list, of notes."""
        self._add("\n" if self._tight else "\n\n", text, whole=True)
        self._tight = True

    def heading(self, level: int, text: str) -> None:
        title = inline(text)
        if title:
            self.block(f"{'#' * min(max(level, 1), 6)} {title}")

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """The first row is the head; a table without rows is nothing."""
        self._tight = False
        width = 0
        for row in rows:
            cells = [_cell(text) for text in row]
            if width:
                self._add("\n", _row(cells, width), whole=True)
                continue
            width = max(len(cells), 1)
            self._add("\n\n", f"{_row(cells, width)}\n|{' --- |' * width}", whole=True)

    def cut(self) -> None:
        """Says that something was left out, without ending the draft."""
        self.truncated = True

    def markdown(self) -> str:
        text = "".join(self._pieces)
        return f"{text}\n" if text else ""

    def _add(self, gap: str, text: str, *, whole: bool = False) -> None:
        """`whole`: not at all rather than in part. Half a row would read as a shorter row."""
        piece = f"{gap}{text}" if self._pieces else text
        encoded = piece.encode("utf-8", "replace")
        self._left -= len(encoded)
        if self._left >= 0:
            self._pieces.append(piece)
            return
        self.truncated = True
        if not whole:
            self._pieces.append(encoded[: self._left].decode("utf-8", "ignore"))
        raise Full


def clean(text: str) -> str:
    """Text without controls, in NFC: decomposed Hangul is a heap of letters to a reader and to a search."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0b", "\n").replace("\x85", "\n")
    return unicodedata.normalize("NFC", _UNWANTED.sub("", text))


def paragraph(text: str) -> str:
    """Text of a paragraph; what merely looks like a heading or a fence does not become one."""
    return _STRUCTURE.sub(r"\\", clean(text).strip())


def inline(text: str) -> str:
    return _SPACES.sub(" ", clean(text)).strip()


def link(text: str, target: str) -> str:
    """Shown, never followed; only addresses that a reader could follow are shown at all."""
    target = clean(target).strip()
    if not _LINK.fullmatch(target) or len(target) > 2_000:
        return text
    target = target.replace("(", "%28").replace(")", "%29")
    shown = text.replace("[", r"\[").replace("]", r"\]")
    return f"[{shown}]({target})" if shown.strip() else f"<{target}>"


def fenced(code: str, language: str = "") -> str:
    """A fence that is longer than any inside."""
    code = clean(code).strip("\n")
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def _cell(text: str) -> str:
    return clean(text).strip().replace("|", r"\|").replace("\n", "<br>")


def _row(cells: Sequence[str], width: int) -> str:
    return "| " + " | ".join((*cells, *[""] * (width - len(cells)))) + " |"
