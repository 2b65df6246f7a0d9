"""The public keys of one issuer: fetched, kept, and fetched again when an unknown one is named.

A token with an unknown key id makes us ask the issuer again, but at most once in a while, whoever sends how many.
While the issuer cannot be asked the keys that it gave last are used, for a day.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from octavo.core.clock import Clock
from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.pipeline.identity.tokens.keys import Keys, Verify, keys_in

logger = logging.getLogger(__name__)

FRESH = 300.0  # seconds after which the issuer is asked again, while answers go on
COOLDOWN = 10.0  # seconds between two questions to the issuer
LAST_GOOD = 86_400.0  # seconds for which keys are used if the issuer no longer answers


class KeySet(Protocol):
    async def find(self, kid: str, algorithm: str) -> Verify | None:
        """None where the issuer has no such key. Raises SourceUnavailable where its keys are not known."""
        ...


class GivenKeys:
    """Keys that stand in a file."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    async def find(self, kid: str, algorithm: str) -> Verify | None:
        return self._keys.get((kid, algorithm))


class FetchedKeys:
    def __init__(self, fetch: Callable[[], Awaitable[bytes]], algorithms: tuple[str, ...], clock: Clock) -> None:
        self._fetch, self._algorithms, self._clock = fetch, algorithms, clock
        self._keys: Keys = {}
        self._at = float("-inf")  # when they were fetched
        self._next = float("-inf")  # before which nobody is asked again
        self._asking: asyncio.Task[None] | None = None

    async def find(self, kid: str, algorithm: str) -> Verify | None:
        known = self._keys.get((kid, algorithm))
        age = self._clock.monotonic() - self._at
        if age > FRESH or known is None:
            asking = self._ask()
            if asking is not None and (known is None or age > LAST_GOOD):
                await asyncio.shield(asking)
                known = self._keys.get((kid, algorithm))
        now = self._clock.monotonic()
        if now - self._at > LAST_GOOD:
            wait = max(1.0, self._next - now)
            raise SourceUnavailable("The issuer of the token cannot be asked for its keys", retry_after=wait)
        return known

    def _ask(self) -> asyncio.Task[None] | None:
        """The question that is under way, or a new one; None while it is too early for that."""
        if self._asking is None and self._clock.monotonic() >= self._next:
            self._next = self._clock.monotonic() + COOLDOWN
            self._asking = asyncio.ensure_future(self._refresh())
            self._asking.add_done_callback(self._asked)
        return self._asking

    def _asked(self, _: asyncio.Task[None]) -> None:
        self._asking = None

    async def _refresh(self) -> None:
        try:
            self._keys = keys_in(await self._fetch(), self._algorithms)
            self._at = self._clock.monotonic()
        except OctavoError as error:
            logger.warning("the keys of an issuer are not renewed: %s", error)
        except (ValueError, RecursionError):
            logger.warning("the keys of an issuer are not renewed: what it answers is no key set that can be used")
