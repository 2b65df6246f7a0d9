"""One pattern language for policy, subscriptions, filters and the gateway.

    sop://brand/guide      that one address
    sop://brand/*.md       `*` stays inside one segment
    sop://brand/*          a trailing `/*` (or `/`) is the whole subtree, and `sop://brand` itself
    sop://*                the whole scheme
    file://**/*.ts         `**` is any number of segments
    **                     everything of every scheme

A pattern matches the path, never the query: one with a `?` in it matches nothing, and a name that has one is written
with `%3F`. `file:///x/*` matches absolute addresses only and
`file://x/*` relative ones only; whoever matches a file tries both spellings of its address.
`[` is an ordinary character: it is legal in URIs. Percent-encoding is decoded once, as in an
address, and `%2A` is a star that is no wildcard. Matching is linear in the length of
the path times the number of pattern segments; no regular expression is built from foreign text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from octavo.core.errors import InvalidParams
from octavo.core.ref import Ref, decode, is_scheme

MAX_PATTERN_CHARACTERS = 4096


class Glob:
    """A compiled pattern."""

    __slots__ = ("_absolute", "_segments", "_subtree", "asks", "scheme", "text")

    def __init__(self, text: str) -> None:
        """Raises InvalidParams for text that is no pattern."""
        if len(text) > MAX_PATTERN_CHARACTERS:
            raise InvalidParams(f"The pattern is longer than {MAX_PATTERN_CHARACTERS} characters")
        self.text = text
        self._segments: tuple[Part, ...] = ()
        self._subtree = False
        self._absolute = False
        self.asks = "?" in text  # it has a query, so that it matches nothing
        self.scheme = "*"
        if text in ("**", "*"):
            self._subtree = True
            return
        scheme, separator, path = text.partition("://")
        if not separator or not (scheme == "*" or is_scheme(scheme)):
            raise InvalidParams(f"Not a pattern: {text!r} (expected scheme://path, with * and **)")
        self.scheme = scheme.lower()
        if self.scheme == "file":
            if path.startswith("localhost/"):
                path = path.removeprefix("localhost")
            self._absolute, path = path.startswith("/"), path.removeprefix("/")
        if path in ("*", "**", ""):
            self._subtree = path != "" or self._absolute
            parts: list[str] = []
        else:
            parts = path.split("/")
            if parts[-1] in ("*", "**", ""):
                self._subtree = True
                parts.pop()
        self._segments = tuple(_compiled(part, text) for part in parts)

    @classmethod
    def at(cls, ref: Ref) -> Glob:
        """The pattern that matches this one address, whatever characters are in it."""
        glob = cls.__new__(cls)
        glob.text, glob.scheme = str(ref.bare), ref.scheme
        glob._segments = tuple((segment,) for segment in ref.segments)
        glob._subtree, glob._absolute, glob.asks = False, ref.absolute, False
        return glob

    @property
    def subtree(self) -> bool:
        """Whether whatever stands below a match is a match too."""
        return self._subtree

    def moved(self, name: Ref) -> Glob:
        """The same pattern below another fixed beginning. Of relative addresses."""
        if self.exact:
            return Glob.at(name)
        rest = self.text.split("/")[2 + len(self.literal.segments) :]  # behind `sop://` and the fixed names
        return Glob("/".join([str(name.bare).replace("*", "%2A"), *rest]))

    @property
    def parts(self) -> tuple[Part, ...]:
        """One for each segment: the texts between its stars, or ANY_DEPTH."""
        return self._segments

    @property
    def absolute(self) -> bool:
        return self._absolute

    @property
    def exact(self) -> bool:
        """Whether the pattern can match one address only."""
        return not self._subtree and self.scheme != "*" and all(len(part) == 1 for part in self._segments)

    @property
    def literal(self) -> Ref:
        """The longest fixed beginning: every match stands below it."""
        fixed: list[str] = []
        for part in self._segments:
            if len(part) != 1:
                break
            fixed.append(part[0])
        return Ref(self.scheme, tuple(fixed), (), self._absolute)

    def matches(self, ref: Ref) -> bool:
        if self.scheme not in ("*", ref.scheme) or self.asks:
            return False
        if self._absolute is not ref.absolute and (self._segments or self._absolute):
            return False  # `file://docs/*` and `file:///docs/*` are different folders
        return _match(self._segments, ref.segments, self._subtree)

    def may_overlap(self, other: Glob) -> bool:
        """False only when no address can match both. Used to tell an empty grant from a partial one."""
        if "*" not in (self.scheme, other.scheme) and self.scheme != other.scheme:
            return False
        if self.asks or other.asks:
            return False
        mine, theirs = self.literal.segments, other.literal.segments
        shared = min(len(mine), len(theirs))
        return mine[:shared] == theirs[:shared]

    def reaches(self, ref: Ref) -> bool:
        """Whether it matches that address, or could match one below it."""
        if self.scheme not in ("*", ref.scheme) or (
            self._absolute is not ref.absolute and (self._segments or self._absolute)
        ):
            return False
        parts = self._segments
        at = {0}  # how much of the pattern may be used up so far
        for name in ref.segments:
            at = {further for i in at for further in _without_any_depth(parts, i)}
            if self._subtree and len(parts) in at:
                return True
            left = [i for i in at if i < len(parts)]
            at = {i for i in left if parts[i] == ANY_DEPTH} | {
                i + 1 for i in left if parts[i] != ANY_DEPTH and fits(parts[i], name)
            }
        return bool(at)

    def __repr__(self) -> str:
        return f"Glob({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glob) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


# One segment as the texts between its stars: ("a", "") is `a*`, a single text is a fixed name, and the
# empty tuple is `**`. So a star that a name really contains (%2A) is never taken for a wildcard.
Part: TypeAlias = tuple[str, ...]
ANY_DEPTH: Part = ()


def _compiled(segment: str, pattern: str) -> Part:
    if segment == "**":
        return ANY_DEPTH
    pieces = tuple(unicodedata.normalize("NFC", decode(piece)) for piece in segment.split("*"))
    if pieces in (("",), (".",), ("..",)) or any("/" in piece for piece in pieces):
        # It could match nothing, so a deny rule would silently do nothing.
        raise InvalidParams(f"Not a pattern: {pattern!r} has an empty, '.' or '..' segment, or an encoded slash")
    return pieces


def _match(pattern: Sequence[Part], path: Sequence[str], subtree: bool) -> bool:
    """Two pointers with one backtrack point: `**` is to segments what `*` is to characters."""
    i = j = 0
    star, mark = -1, 0
    while j < len(path):
        if i < len(pattern) and pattern[i] == ANY_DEPTH:
            star, mark = i, j
            i += 1
        elif i < len(pattern) and fits(pattern[i], path[j]):
            i += 1
            j += 1
        elif i == len(pattern) and subtree:
            return True
        elif star >= 0:
            mark += 1
            i, j = star + 1, mark
        else:
            return False
    return all(part == ANY_DEPTH for part in pattern[i:])


def _without_any_depth(pattern: Sequence[Part], i: int) -> Iterator[int]:
    """Where one stands in a pattern, since `**` may stand for nothing."""
    yield i
    while i < len(pattern) and pattern[i] == ANY_DEPTH:
        i += 1
        yield i


def fits(pieces: Sequence[str], name: str) -> bool:
    """Whether a name is made of these texts in their order, with anything between them."""
    if len(pieces) == 1:
        return pieces[0] == name
    first, last = pieces[0], pieces[-1]
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in pieces[1:-1]:  # the earliest place is always a safe choice: what follows has the most room
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
