"""Which content a changed file had: the etag that a read gives, as far as it is cheap to know."""

from __future__ import annotations

from typing import Final

from octavo.core.memo import Bounded
from octavo.core.sizes import MIB
from octavo.sources._shared.places import Place
from octavo.sources.file.entries import FileFacts
from octavo.sources.file.roots import Forest

MAX_BYTES: Final = MIB  # of a file that is looked into
_BATCH_BYTES: Final = 16 * MIB  # that are read for one telling: the news of many files must not wait for all of them
_LEAST_BYTES: Final = 4096  # that the smallest file counts for
_REMEMBERED: Final = 10_000  # etags, the latest


class Etags:
    """For one thread. Without an etag, a content is not known; an empty string says so."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._by_version: Bounded[str, str] = Bounded(_REMEMBERED)
        self._left = _BATCH_BYTES

    def begin(self) -> None:
        """The next telling."""
        self._left = _BATCH_BYTES

    def remembered(self, facts: FileFacts) -> str:
        return self._by_version.get(facts.version, "")

    def of(self, place: Place, facts: FileFacts) -> str:
        """Looks into the file if need be, and if it is still the one that the facts are about."""
        if known := self._by_version.get(facts.version):
            return known
        if facts.size > MAX_BYTES or self._left <= 0:
            return ""
        self._left -= max(facts.size, _LEAST_BYTES)
        found = self._forest.etag_of(place, facts)
        if found:
            self._by_version.keep(facts.version, found)
        return found
