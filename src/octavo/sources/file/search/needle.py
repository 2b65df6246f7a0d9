"""Whether a file contains what is asked for: on raw bytes as long as that is exact, else on the decoded text."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Final

from octavo.core.query import ContentQuery
from octavo.sources._shared.fs.mime import known_text, mime_type
from octavo.sources._shared.text import ORDER, declared, decoded
from octavo.text.patterns import is_case_sensitive, line_pattern

_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)  # that of UTF-32-LE begins as UTF-16-LE


class Needle:
    def __init__(self, query: ContentQuery, encodings: Sequence[str] = ORDER) -> None:
        """`encodings` are those that a file may be in, if not in UTF-8."""
        self._encodings = encodings
        self._pattern = line_pattern(query)
        self._regex = query.regex
        self._word = query.word
        self._ascii = query.text.isascii()
        self.folded = not is_case_sensitive(query)
        # Spellings one of which is in the bytes of every file that contains the query, UTF-16 and UTF-32 aside.
        self._spellings: tuple[bytes, ...] = ()
        # Pieces that are in the text, with its ASCII letters in lower case, of every file that contains the query.
        self.pieces: tuple[bytes, ...] = ()
        if not query.regex:
            self.pieces = _pieces(query.text) if self.folded else (query.text.encode().lower(),)
            if self.pieces == (query.text.encode().lower(),):
                self._spellings = self._spelled(query.text)

    def is_in(self, raw: bytes, name: bytes) -> bool:
        """In the bytes of a file of that name."""
        if not raw:
            return False
        if self._spellings and not raw.startswith(_MARKS):
            sought = raw.lower() if self.folded else raw
            for spelling in self._spellings:  # a loop: `any` over a generator costs as much as the search
                if spelling in sought:
                    break
            else:
                if not _may_be_wide(raw, name) and not self._is_declared(raw):
                    return False
            if not self._word and raw.isascii() and b"\0" not in raw:
                return True
        text = text_of(raw, name, self._encodings)
        return text is not None and self._pattern.search(_without_last_end(text)) is not None

    def _is_declared(self, raw: bytes) -> bool:
        """Whether it says that it is in an encoding in which the spellings were not sought."""
        return not (self._ascii or raw.isascii()) and declared(raw) not in (None, "utf-8", *self._encodings)

    def _spelled(self, text: str) -> tuple[bytes, ...]:
        spellings = [text.encode()]
        for encoding in () if text.isascii() else self._encodings:
            try:
                spellings.append(text.encode(encoding))
            except UnicodeEncodeError:  # then no file in that encoding has it
                continue
        return tuple(dict.fromkeys(spelling.lower() if self.folded else spelling for spelling in spellings))


def text_of(raw: bytes, name: bytes, encodings: Sequence[str] = ORDER) -> bytes | None:
    """The text of a file in UTF-8 with plain line ends; None when it is not text."""
    text: bytes | None
    if raw.isascii() and b"\0" not in raw:
        text = raw
    else:
        body = decoded(raw, mime_type(name.decode()), encodings)
        text = body.encode() if isinstance(body, str) else None
    return text.replace(b"\r\n", b"\n") if text is not None and b"\r" in text else text


def _may_be_wide(raw: bytes, name: bytes) -> bool:
    """Whether it may be UTF-16 or UTF-32 without a mark, under a name that promises text: then the bytes of its spaces
    and line ends are zero at least."""
    return b"\0" in raw and known_text(mime_type(name.decode()))


def _without_last_end(text: bytes) -> bytes:
    """What follows the last line end is no line."""
    return text.removesuffix(b"\n")


def _pieces(text: str) -> tuple[bytes, ...]:
    """The parts of a text that stay as they are in every case, but for ASCII letters."""
    kept = "".join(c if c.isascii() or c.lower() == c == c.upper() else "\0" for c in text)
    return tuple(piece.encode().lower() for piece in kept.split("\0") if piece)
