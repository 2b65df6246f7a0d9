"""Values that stand below their name: a column of CSV, of a spreadsheet's export."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo.pipeline.rules import checks

_SENSITIVE = (
    "password|passwd|passphrase|pwd|secret|client[_-]?secret|secret[_-]?key|api[ _-]?key|access[_-]?key|private[_-]?key"
    "|access[_-]?token|auth[_-]?token|refresh[_-]?token|token|credentials?|비밀번호|암호|패스워드|인증키|비밀키"
)
_NAMED = rf"(?:[a-z0-9_.-]*[_.-])?(?:{_SENSITIVE})"
# With nothing but quotes around it: in prose a comma has a space behind it.
HEADER = rf"""(?im)(?:^|[,;\t])["']?{_NAMED}["']?[,;\t]|[,;\t]["']?{_NAMED}["']?\r?$"""

CLUE = rf"""(?i)(?:{_SENSITIVE})["']?[,;\t]|[,;\t]["']?{_NAMED}["']?[\r\n]"""

# Python's `re`, on one line or on one field, of bounded length.
_SIGN = re.compile(rb"[,;\t]")
_NAME = re.compile(rf"(?i){_NAMED}\Z".encode())
_OF_A_HEADER = re.compile(rb"""[ "']*[\w.()/ \x80-\xff-]{0,60}["' ]*\Z""")
_FIELDS = {
    sign: re.compile(rb'[ ]*(?:"((?:[^"]|"")*+)"|([^"%b]*+))[ ]*(?:%b|\Z)' % (sign, re.escape(sign)))
    for sign in (b",", b";", b"\t")
}
_EARLIER = re.compile(rf"""(?i)(?:{_SENSITIVE})["' ]{{0,3}}[,;\t]""".encode())
_SPACE = re.compile(r"\s")
_LONGEST = 4096  # bytes of a line


def values_below(raw: bytes, name: int) -> Iterator[tuple[int, int]]:
    """Where the values of the columns stand whose header has a sensitive name at this place."""
    left = raw.rfind(b"\n", 0, name) + 1
    if _EARLIER.search(raw, left, name):
        return  # all columns of a line are looked at with the first
    header, at = _line(raw, left)
    first = _SIGN.search(header)
    sign = first.group() if first else b","
    fields = _fields(header, sign)
    columns = [number for number, (start, stop) in enumerate(fields) if _NAME.match(header[start:stop])]
    if not columns or len(fields) < 2 or not all(_OF_A_HEADER.match(header[start:stop]) for start, stop in fields):
        return
    whole = not raw[:left].strip()  # a file that is a table goes on behind a row of another length
    while at < len(raw):
        begin = at
        line, at = _line(raw, begin)
        row = _fields(line, sign)
        if len(row) != len(fields):
            if whole:
                continue
            return
        if any(_NAME.match(line[start:stop]) for start, stop in row):
            return  # another header
        for column in columns:
            start, stop = row[column]
            value = line[start:stop].decode("utf-8", "replace")
            if checks.is_password(value) and not _SPACE.search(value):  # a sentence is none
                yield begin + start, begin + stop


def _line(raw: bytes, at: int) -> tuple[bytes, int]:
    """The line that begins there, and where the next one does."""
    end = raw.find(b"\n", at)
    end = len(raw) if end < 0 else end
    return raw[at:end].removesuffix(b"\r"), end + 1


def _fields(line: bytes, sign: bytes) -> list[tuple[int, int]]:
    """Without their quotes and the space around them; nothing where a quote is left open or the line is too long."""
    found: list[tuple[int, int]] = []
    at = 0 if len(line) <= _LONGEST else len(line) + 1
    while at <= len(line):
        match = _FIELDS[sign].match(line, at)
        if match is None:
            return []
        start, stop = match.span(1) if match.group(1) is not None else match.span(2)
        found.append((start, start + len(line[start:stop].rstrip())))
        if match.end() == len(line) and (match.end() == at or line[-1:] != sign):
            break
        at = match.end()
    return found
