"""Finds secrets in tables: values below a heading such as `password`, in CSV and exports of spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo.pipeline.redact.rules import checks

_SENSITIVE = (
    "password|passwd|passphrase|pwd|secret|client[_-]?secret|secret[_-]?key|api[ _-]?key|access[_-]?key|private[_-]?key"
    "|access[_-]?token|auth[_-]?token|refresh[_-]?token|token|credentials?|비밀번호|암호|패스워드|인증키|비밀키"
)
_NAMED = rf"(?:[a-z0-9_.-]*[_.-])?(?:{_SENSITIVE})"
# With nothing but quotes around it: in prose a comma has a space behind it.
HEADER = rf"""(?im)(?:^|[,;|\t])["']?{_NAMED}["']?[,;|\t]|[,;|\t]["']?{_NAMED}["']?\r?$"""

CLUE = rf"""(?i)(?:{_SENSITIVE})["']?[,;|\t]|[,;|\t]["']?{_NAMED}["']?[\r\n]"""

# Python's `re`, from one place on and of bounded length.
_SIGN = re.compile(rb"[,;|\t]")
_NAME = re.compile(rf"(?i){_NAMED}\Z".encode())
_OF_A_HEADER = re.compile(rb"""[ "']*[\w.()/ \x80-\xff-]{0,60}["' ]*\Z""")
# In quotes, which may go over several lines, else up to the next sign: a quote that is left open is a character.
_FIELDS = {
    sign: re.compile(
        rb'[ ]*(?:"((?:[^"]|"")*+)"[ ]*|((?:[^%b\r\n]|\r(?!\n))*+))(?:(%b)|(\r?\n)|\Z)' % (sign, re.escape(sign))
    )
    for sign in (b",", b";", b"|", b"\t")
}
_EARLIER = re.compile(rf"""(?i)(?:{_SENSITIVE})["' ]{{0,3}}[,;|\t]""".encode())
_SPACE = re.compile(r"\s")
_LONGEST = 4096  # bytes of a row


def values_below(raw: bytes, name: int) -> Iterator[tuple[int, int]]:
    """Where the values of the columns stand whose header has a sensitive name at this place."""
    left = raw.rfind(b"\n", 0, name) + 1
    if _EARLIER.search(raw, left, name):
        return  # all columns of a line are looked at with the first
    first = _SIGN.search(raw, left)
    sign = first.group() if first else b","
    header, at = _row(raw, left, sign)
    columns = [number for number, (start, stop) in enumerate(header) if _NAME.match(raw[start:stop])]
    if not columns or len(header) < 2 or not all(_OF_A_HEADER.match(raw[start:stop]) for start, stop in header):
        return
    whole = not raw[:left].strip()  # a file that is a table goes on behind a row of another length
    while at < len(raw):
        row, at = _row(raw, at, sign)
        if len(row) != len(header) and not whole:
            return
        if any(_NAME.match(raw[start:stop]) for start, stop in row):
            return  # another header
        for start, stop in (row[column] for column in columns if column < len(row)):
            value = raw[start:stop].decode("utf-8", "replace")
            if checks.is_password(value) and not _SPACE.search(value):  # a sentence is none
                yield start, stop


def _row(raw: bytes, begin: int, sign: bytes) -> tuple[list[tuple[int, int]], int]:
    """Where the fields stand, without their quotes and the space around them, and where the next row begins. Of a row
    that is too long its first fields, and the next one begins with the next line."""
    found: list[tuple[int, int]] = []
    at, end = begin, min(len(raw), begin + _LONGEST)
    while (match := _FIELDS[sign].match(raw, at, end)) is not None:
        at = match.end()
        if match.lastindex is not None and match.lastindex < 3 and end < len(raw):
            break
        start, stop = match.span(2 if match.group(1) is None else 1)
        found.append((start, start + len(raw[start:stop].rstrip())))
        if match.group(3) is None:
            return found, at
    line = raw.find(b"\n", begin)
    return found, line + 1 if line >= 0 else len(raw)
