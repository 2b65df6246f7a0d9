"""Reads .gitignore files: each speaks for its own folder and below, and a deeper one overrules the ones above it."""

from __future__ import annotations

import os
import re
import unicodedata
from typing import Any, Final, cast

import re2 as _untyped_re2  # type: ignore[import-untyped]  # it has no annotations

from octavo.core.memo import Bounded
from octavo.core.sizes import KIB
from octavo.sources._shared.fs.faults import ABSENT, DENIED
from octavo.sources._shared.fs.reading import contents
from octavo.sources._shared.fs.stats import identity
from octavo.sources._shared.places import Place
from octavo.sources.file.root import Names
from octavo.sources.file.roots import Forest

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


_FILE: Final = ".gitignore"
_MAX_BYTES: Final = 64 * KIB  # a larger one is no list that somebody wrote
_KEPT: Final = 8192  # folders with a .gitignore whose patterns are kept


class Ignores:
    """Patterns, kept for as long as their file is the same."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._kept: Bounded[Place, tuple[object, Gitignore]] = Bounded(_KEPT)

    def rules(self, folder: Place) -> Gitignore | None:
        tree = self._forest.trees[folder.root]
        names = (*folder.names, _FILE)
        try:
            stamp = identity(tree.look(names).stat)
            kept = self._kept.get(folder)
            if kept is not None and kept[0] == stamp:
                return kept[1]
            fd, seen = tree.open(names)
            try:
                size = seen.stat.st_size
                raw = contents(fd, size, wait=True) if size <= _MAX_BYTES else bytearray()
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno in ABSENT or error.errno in DENIED:
                return None
            raise
        rules = Gitignore(raw.decode("utf-8", "replace"))
        self._kept.keep(folder, (identity(seen.stat), rules))
        return rules


class Ignored:
    """The view of one search: each folder is looked at once."""

    def __init__(self, ignores: Ignores) -> None:
        self._ignores = ignores
        self._rules: dict[Place, Gitignore | None] = {}
        self._folders: dict[Place, bool] = {}

    def folder(self, place: Place) -> bool:
        """Nothing below an ignored folder can be taken back."""
        if not place.names:
            return False
        known = self._folders.get(place)
        if known is None:
            known = self.folder(Place(place.names[:-1], place.root)) or self._decided(place, is_folder=True)
            self._folders[place] = known
        return known

    def file(self, place: Place) -> bool:
        return self.folder(Place(place.names[:-1], place.root)) or self._decided(place, is_folder=False)

    def _decided(self, place: Place, *, is_folder: bool) -> bool:
        names, root = place
        for depth in range(len(names) - 1, -1, -1):
            rules = self._rules_of(names[:depth], root)
            if rules is not None:
                verdict = rules.verdict("/".join(names[depth:]), is_folder=is_folder)
                if verdict is not None:
                    return verdict
        return False

    def _rules_of(self, names: Names, root: int) -> Gitignore | None:
        folder = Place(names, root)
        if folder not in self._rules:
            self._rules[folder] = self._ignores.rules(folder)
        return self._rules[folder]
