"""Remembers what is wrong with plugins' sources, for the log, readiness and `octavo doctor`.

One fault can come with every request. It is logged with its cause when it is new, and then when it has come ten times,
a hundred times, and so on. Callers are told a number by which the first line is found, and nothing of the cause.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final

from octavo.core.clock import Clock, SystemClock
from octavo.core.foreign import described, place
from octavo.core.memo import Bounded

logger = logging.getLogger(__name__)

SHOWN: Final = 600.0  # seconds for which a fault is told after it last happened
MAX_KNOWN: Final = 1024


class _KnownFault:
    def __init__(self, incident: str, words: str) -> None:
        self.incident, self.words = incident, words
        self.count = 0
        self.until = 0.0


class Faults:
    """Of one configuration."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._now = (clock or SystemClock()).monotonic
        self._known: Bounded[tuple[str, str, str], _KnownFault] = Bounded(MAX_KNOWN)

    def note(
        self, scheme: str, where: str, words: str, *, cause: BaseException | None = None, lasts: bool = False
    ) -> str:
        """Gives the number of the incident. `where` is the method, or what else was going on. `lasts`: until the
        configuration is loaded anew."""
        # Numbers in the words differ from one time to the next; what is new is another kind of fault.
        key = (scheme, where, type(cause).__name__ if cause is not None else "".join(filter(str.isalpha, words)))
        known = self._known.get(key)
        if known is None:
            known = self._known.keep(key, _KnownFault(os.urandom(4).hex(), words))
        known.words = words
        known.count += 1
        known.until = float("inf") if lasts else self._now() + SHOWN
        if known.count == 1:
            whose = self.named(scheme)
            logger.error("Incident %s: %s failed in %s: %s", known.incident, whose, where, words, exc_info=cause)
        elif _is_round(known.count):
            logger.error("Incident %s of %s again: %d times by now", known.incident, self.named(scheme), known.count)
        return known.incident

    @staticmethod
    def named(whose: str) -> str:
        """A source is known by its scheme, a tool as `tool NAME`."""
        return f"the {whose}" if " " in whose else f"the source {whose}://"

    def current(self) -> Mapping[str, str]:
        """What is wrong now, by scheme: the latest of each."""
        now = self._now()
        told = sorted(((known.until, key) for key, known in self._known.items() if known.until > now))
        return {key[0]: f"{key[1]}: {self._known[key].words}" for _, key in told}


def told(error: BaseException) -> str:
    where = place(error)
    return f"it raised {described(error)}" + (f" ({where})" if where else "")


def _is_round(count: int) -> bool:
    while count % 10 == 0:
        count //= 10
    return count == 1
