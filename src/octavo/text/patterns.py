"""From what somebody asks to RE2, which is linear in the text whatever the pattern.

A path is matched as its key: names in NFC joined by NUL, which no name contains. The key of a folder is then
the beginning of the keys below it, and keys sort like tuples of names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

import re2 as _untyped_re2  # type: ignore[import-untyped]  # it has no annotations

from octavo.core.errors import InvalidParams
from octavo.core.query import ContentQuery
from octavo.core.sizes import MIB

re2 = cast("Any", _untyped_re2)

_MAX_MEMORY: Final = 16 * MIB
_NAME: Final = r"[^\x00\n]"
_NO_LETTER: Final = r"[^\pL\pM\pN_]"
_ESCAPES: Final = re.compile(r"\\(?:[pPx]\{[^}]*\}|[pP].|.)")  # their letters say nothing about case


class Match(Protocol):
    def start(self, group: int = 0) -> int: ...


class Pattern(Protocol):
    def search(self, text: bytes, pos: int = 0, endpos: int = ...) -> Match | None: ...


def name_pattern(text: str) -> Pattern:
    """Finds keys in a text of lines, each of them a key."""
    if "*" in text:
        return path_pattern((text,))
    return _compiled("(?i)" + _quoted(unicodedata.normalize("NFC", text).replace("/", "\0")))


def path_pattern(texts: Sequence[str]) -> Pattern:
    """Matches keys that one of the path patterns does."""
    return _compiled("(?m)^(?:" + "|".join(_path_expression(text) for text in texts) + ")$")


def _path_expression(text: str) -> str:
    parts = unicodedata.normalize("NFC", text).split("/")
    if len(parts) == 1:
        parts.insert(0, "**")
    elif parts[0] == "":
        del parts[0]
    subtree = parts[-1] in ("", "*", "**")
    if subtree:
        parts.pop()
    expression, any_depth = "", False
    for part in parts:
        if part == "**":
            any_depth = True
            continue
        if part in ("", ".", ".."):
            raise InvalidParams(f"Not a path pattern: {text!r} has an empty, '.' or '..' segment")
        between = r"\x00" if expression else ""
        depth = rf"(?:{_NAME}+\x00)*" if any_depth else ""
        expression += between + depth + f"{_NAME}*".join(_quoted(piece) for piece in part.split("*"))
        any_depth = False
    if subtree or any_depth:
        expression += r"(?:\x00.*)?" if expression else ".*"
    return expression


def is_case_sensitive(query: ContentQuery) -> bool:
    if query.case != "smart":
        return query.case
    letters = _ESCAPES.sub("", query.text) if query.regex else query.text
    return letters != letters.lower()


def line_pattern(query: ContentQuery) -> Pattern:
    """Finds the query in UTF-8 text, never across lines; group 1 is the match itself."""
    expression = query.text if query.regex else _literal(query.text, is_case_sensitive(query))
    if query.regex:
        _compiled(expression)  # by itself: what is put around it must not mend it
    flags = "(?m)" if is_case_sensitive(query) or not query.regex else "(?mi)"
    if query.word:
        return _compiled(f"{flags}(?:^|{_NO_LETTER})({expression})(?:$|{_NO_LETTER})")
    return _compiled(f"{flags}({expression})")


def _literal(text: str, sensitive: bool) -> str:
    """Without case, an ASCII letter is found as itself in both cases, not as a Kelvin sign or a long s: so it can
    be looked for in raw bytes."""
    if sensitive:
        return _quoted(text)
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isascii() and c.isalpha() else f"(?i:{_quoted(c)})" for c in text)


def _quoted(text: str) -> str:
    return str(re2.escape(text))


def _compiled(expression: str) -> Pattern:
    options = re2.Options()
    options.never_nl = True
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        return cast("Pattern", re2.compile(expression.encode(), options))
    except re2.error:
        raise InvalidParams(
            "The expression is not one of RE2, or is too large: it has no look-around and no back-references"
        ) from None
