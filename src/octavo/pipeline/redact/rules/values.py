"""Finds the end of a labelled value (`password: ...`), in quotes, links, lists and plain lines.

A character that ends a value in one notation is a letter of a password in another: `&` in a link and in YAML. So it
ends one only where what follows it shows that the notation goes on: a space, a bracket, the next name.
"""

from __future__ import annotations

import re

_BEFORE = 80  # bytes between a name and its value, with the indentation of an element
LONGEST = 512  # bytes; a password is shorter, and what is looked at for each label must have a bound

# Python's `re`, on a piece of that length.
_WORD = rb"\w.$\x80-\xff-"
_NAME = rb"""(?:\\*["'`])?[""" + _WORD + rb"""]{1,40}(?:\[\w*\])?(?:\\*["'`])?[ \t]*[=:]"""
_SPOKEN_NAME = rb"""[ ]?(?:\\*["'`])?[""" + _WORD + rb""" ]{1,40}(?:\\*["'`])?[ \t]*[=:]"""
_SPACE = rb"[\t\r\n\f\v]|(?<!\\)[ ]|\\++(?=\s\s|[\r\n]|\Z)"  # in a shell a space behind a backslash is a letter
_QUOTE = rb"""(?:["'`]|&(?:quot|apos|#3[49]|#x2[27]);)"""
_QUOTES_END = rb"\\*+" + _QUOTE + rb"++(?=[\s,;:)}\]>|+.&/\\<\x80-\xff]|\Z)"
_STOPS = (
    _SPACE,
    rb"[(){}\[\]<>]",
    rb"""[&;,]++(?=\s|\Z|[)}\]>"'`\\])""",
    rb"[;,](?=" + _SPOKEN_NAME + rb")",
    _QUOTES_END,
    rb"""\\+[nrt](?=\s|\Z|["'`\\]|""" + _NAME + rb")",
    rb"&(?:lt|nbsp);",
)
_STOP = re.compile(rb"|".join(_STOPS))
_STOP_IN_LINK = re.compile(rb"|".join((*_STOPS, rb"(?:&(?:amp;)?|\\+u0026)(?=" + _NAME + rb")")))
_STOP_IN_SHELL = re.compile(rb"|".join((_SPACE, _QUOTES_END, rb"[&;|<>)]++(?=\s|\Z)")))
_ELEMENT = re.compile(rb"[^<>\s]++(?=\s*</)")
# Between words without a digit or a sign these are punctuation.
_PUNCTUATION = re.compile(rb"""[&;,"'`\\]""")
_NO_WORDS = re.compile(rb"[\d#%^~@]")
# What is called or indexed is code.
_CODE = frozenset((b"(", b"{", b"[", b"]", b">"))
_QUOTED = {
    b'"': re.compile(rb'(?:[^"\s\\]|\\[^\s]|""(?=\w))*+"'),
    b"'": re.compile(rb"(?:[^'\s\\]|\\[^\s]|''(?=\w))*+'"),
    b"`": re.compile(rb"(?:[^`\s\\]|\\[^\s])*+`"),
}
# Inside a string of another text the quotes have a backslash, and those in the value three.
_QUOTED_WITHIN = {
    quote: re.compile(rb"(?:[^\s\\" + quote + rb"]|\\\\\\.|\\\\[^\s\\]|\\[^\s\\" + quote + rb"])*+\\" + quote)
    for quote in _QUOTED
}
_GOES_ON = re.compile(rb"""(?:\\?["'`])*+\w(?![\w-]*+[ \t]*[=:])""")  # a shell joins what stands side by side


def value_end(raw: bytes, start: int) -> int:
    """Of the value whose first character is at `start`; `start` itself where there is none."""
    piece = raw[start : start + LONGEST + 1]
    before = raw[max(0, start - _BEFORE) : start].rstrip(b" \t\r\n\"'`\\")
    if before.endswith(b">") and not before.endswith(b"=>"):
        element = _ELEMENT.match(piece)
        return start if element is None else start + element.end()
    end = _end(raw, start, piece, _STOP_IN_LINK if before.endswith(b"=") else _STOP)
    if raw[start - 1 : start] in _QUOTED:
        return end
    if raw[end : end + 1] in _CODE:
        return start
    if _NO_WORDS.search(piece, 0, end - start) is None:
        words = _PUNCTUATION.search(piece, 0, end - start)
        return start + words.start() if words else end
    return end


def argument_end(raw: bytes, start: int) -> int:
    """The same for what is given to a program in a shell."""
    return _end(raw, start, raw[start : start + LONGEST + 1], _STOP_IN_SHELL)


def _end(raw: bytes, start: int, piece: bytes, stop: re.Pattern[bytes]) -> int:
    at, quote = 0, raw[start - 1 : start]
    if quote in _QUOTED:
        within = raw[start - 2 : start - 1] == b"\\"
        closed = (_QUOTED_WITHIN if within else _QUOTED)[quote].match(piece)
        if closed is not None and _GOES_ON.match(piece, closed.end()) is None:
            return start + closed.end() - (2 if within else 1)
        if closed is None and quote in piece.partition(b"\n")[0]:
            return start  # a sentence
        at = closed.end() if closed else 0
    stopped = stop.search(piece, at)
    if stopped is None and len(piece) > LONGEST:
        return start
    return start + (stopped.start() if stopped else len(piece))
