"""What Markdown files call themselves, for lists. Blocking; remembered for each version of a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

from octavo.core.memo import Memo
from octavo.sources._shared.fs.mime import mime_type
from octavo.sources._shared.fs.stats import is_settled
from octavo.sources._shared.places import Names, Place
from octavo.sources._shared.text import cut_at_characters
from octavo.sources.file.entries import Digests, FileFacts
from octavo.sources.file.root import Tree
from octavo.text.titles import HEAD, is_markdown, title_of

_BYTES: Final = 2 * HEAD  # of a file: letters beyond ASCII take more than one
_REMEMBERED: Final = 50_000


class Titles:
    def __init__(
        self, trees: Sequence[Tree], digests: Digests, wall: Callable[[], float], encodings: Sequence[str]
    ) -> None:
        self._trees, self._digests, self._wall, self._encodings = trees, digests, wall, encodings
        self._known: Memo[tuple[str, Names], str] = Memo(_REMEMBERED)

    def of(self, place: Place, facts: FileFacts) -> str | None:
        """None where nothing but its name names it, or where it is not what the facts are about any more."""
        if not is_markdown(place.names[-1]):
            return None
        key = facts.version, place.names[-2:]  # a page of a folder is called as the folder
        known = self._known.get(key)
        if known is None:
            known = self._known.again(key)
        return (self._found(place, facts, key) if known is None else known) or None

    def _found(self, place: Place, facts: FileFacts, key: tuple[str, Names]) -> str:
        try:
            fd, seen = self._trees[place.root].open(place.names)
            try:
                raw = os.pread(fd, _BYTES, 0)
                after = os.fstat(fd)
            finally:
                os.close(fd)
        except OSError:
            return ""
        if self._digests.facts(seen) != facts:
            return ""
        text = cut_at_characters(raw, 0, len(raw), mime_type(place.names[-1]), self._encodings)[1]
        title = title_of(text, place.names) if isinstance(text, str) else None
        if is_settled(after, self._wall()):
            self._known.keep(key, title or "")
        return title or ""
