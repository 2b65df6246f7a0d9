"""One .gitignore file. The last line that matches decides, as in git; RE2 decides in time linear in the path."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final, cast

import re2 as _untyped_re2  # type: ignore[import-untyped]  # it has no annotations

re2 = cast("Any", _untyped_re2)

MAX_LINES: Final = 2000
_NOT: Final = r"^/\x00"
_TOKEN: Final = re.compile(
    r"\\(?P<escaped>.)"
    r"|(?P<stars>\*+)"
    r"|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?(?:\[:[a-z]+:\]|\\.|[^]\\])*)\]"
    r"|(?P<other>[^[\\])"
)


class Gitignore:
    """Decides on paths below its folder, each by itself: whoever asks has asked for the folders above it."""

    def __init__(self, text: str) -> None:
        self._ignores: list[bool] = []
        options = re2.Options()
        options.log_errors = False
        self._set = re2.Set.FullMatchSet(options)
        for line in unicodedata.normalize("NFC", text.removeprefix("\ufeff")).split("\n")[:MAX_LINES]:
            expression, ignores = _translated(line.removesuffix("\r"))
            if expression:
                try:
                    self._set.Add(expression)
                except re2.error:  # git takes no notice of such lines, too
                    continue
                self._ignores.append(ignores)
        if self._ignores:
            self._set.Compile()

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether the path is ignored; None when no line is about it."""
        if not self._ignores:
            return None
        matched = self._set.Match(f"{path}\0" if is_folder else path)  # no name has a NUL
        return self._ignores[max(matched)] if matched else None


def _translated(line: str) -> tuple[str | None, bool]:
    """An expression, or None for a line that matches nothing; and whether what matches is ignored."""
    if line.startswith("#"):
        return None, True
    ignores = not line.startswith("!")
    pattern = _without_spaces_at_end(line if ignores else line[1:])
    end = r"\x00" if pattern.endswith("/") else r"\x00?"
    pattern = pattern.removesuffix("/")
    if not pattern:
        return None, True
    begin = "" if "/" in pattern else "(?:.*/)?"
    parts = pattern.removeprefix("/").split("/")
    expression = ""
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part == "**":
            expression += ".+" if is_last else "(?:.*/)?"
            continue
        translated = _part(part)
        if translated is None:
            return None, True
        expression += translated + ("" if is_last else "/")
    return begin + expression + end, ignores


def _part(part: str) -> str | None:
    expression, at = "", 0
    while at < len(part):
        token = _TOKEN.match(part, at)
        if token is None:  # a bracket that is not closed, a backslash before nothing
            return None
        at = token.end()
        if token["stars"]:
            expression += r"[^/\x00]*"
        elif token["one"]:
            expression += r"[^/\x00]"
        elif token["set"] is not None:
            expression += f"[{_NOT if token['not'] else ''}{_members(token['set'])}]"
        else:
            expression += re2.escape(token["escaped"] or token["other"])
    return expression


def _members(text: str) -> str:
    """The inside of brackets, so that RE2 reads it as git does."""
    if text.startswith("]"):
        text = rf"\]{text[1:]}"
    return re.sub(r"\\(\w)|\[(?!:[a-z]+:\])|\^", lambda m: m[1] or rf"\{m[0]}", text)


def _without_spaces_at_end(pattern: str) -> str:
    kept = pattern.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return f"{kept} " if backslashes % 2 and kept != pattern else kept
