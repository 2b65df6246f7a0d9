"""Conversations in the store: what was said before, by handles. Bounded, and forgotten when nobody uses them.

Neither a handle nor whose it is can be read in the keys of the store: both are digests there.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Final

import msgspec

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import InvalidParams, RateLimited, TooLarge
from octavo.core.ports.stores import KeyValue, Opens
from octavo.core.sizes import KIB
from octavo.core.tools import Said

MAX_OPEN: Final = 32  # of one caller
MAX_SAID: Final = 200  # messages of one conversation,
MAX_CHARACTERS: Final = 256 * KIB  # and their texts together
_ENDS: Final = "conversations/"  # when it is forgotten, in seconds since 1970
_SAID: Final = "conversations-said/"
_RENEWED: Final = 0.9  # of its time, below which a use begins it anew
_UNKNOWN = "No such conversation of yours, or it has expired: begin one with the tool conversation"


class StoredConversations:
    """A handle is of no use to anybody but who began it."""

    def __init__(self, opens: Opens, *, expires: float, clock: Clock | None = None) -> None:
        """`expires` seconds after its last use."""
        self.expires = expires
        self._opens, self._wall = opens, (clock or SystemClock()).wall

    async def begin(self, who: str) -> str:
        handle = secrets.token_urlsafe(16)
        async with (await self._opens()).transaction() as within:
            now = self._wall()
            pairs = await within.keys.scan(f"{_ENDS}{_digest(who)}/", limit=2 * MAX_OPEN)
            ends = [end for _, value in pairs if (end := float(value)) > now]
            if len(ends) >= MAX_OPEN:
                raise RateLimited(
                    f"There are too many conversations of this caller ({MAX_OPEN}): end one, or let it expire",
                    retry_after=max(1.0, min(ends) - now),
                    limit=MAX_OPEN,
                )
            await self._keep(within.keys, _place(who, handle), ())
        return handle

    async def add(self, who: str, handle: str, said: Sequence[Said]) -> None:
        size = sum(len(one.text) for one in said)
        async with (await self._opens()).transaction() as within:
            place = _place(who, handle)
            await self._left(within.keys, place)
            if len(said) > MAX_SAID or size > MAX_CHARACTERS:
                raise TooLarge(
                    f"A conversation holds {MAX_SAID} messages of {MAX_CHARACTERS} characters together",
                    size=size,
                    limit=MAX_CHARACTERS,
                )
            kept = [*await _past(within.keys, place), *said][-MAX_SAID:]
            room = sum(len(one.text) for one in kept)
            while room > MAX_CHARACTERS:
                room -= len(kept.pop(0).text)
            await self._keep(within.keys, place, kept)

    async def past(self, who: str, handle: str) -> Sequence[Said]:
        store, place = await self._opens(), _place(who, handle)
        if await self._left(store.keys, place) >= _RENEWED * self.expires:
            return await _past(store.keys, place)
        async with store.transaction() as within:
            await self._left(within.keys, place)
            past = await _past(within.keys, place)
            await self._keep(within.keys, place, past)
        return past

    async def end(self, who: str, handle: str) -> None:
        async with (await self._opens()).transaction() as within:
            place = _place(who, handle)
            await self._left(within.keys, place)
            await within.keys.delete(_ENDS + place)
            await within.keys.delete(_SAID + place)

    async def _left(self, keys: KeyValue, place: str) -> float:
        """The seconds it has. Word for word the same error for what is unknown and for what is somebody else's."""
        value = await keys.get(_ENDS + place)
        left = 0.0 if value is None else float(value) - self._wall()
        if left <= 0:
            raise InvalidParams(_UNKNOWN, reason="unknown_conversation")
        return left

    async def _keep(self, keys: KeyValue, place: str, said: Sequence[Said]) -> None:
        await keys.set(_ENDS + place, repr(self._wall() + self.expires).encode(), expires=self.expires)
        await keys.set(_SAID + place, msgspec.json.encode(said), expires=self.expires)


async def _past(keys: KeyValue, place: str) -> list[Said]:
    value = await keys.get(_SAID + place)
    return [] if value is None else _DECODER.decode(value)


def _place(who: str, handle: str) -> str:
    return f"{_digest(who)}/{_digest(handle)}"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_DECODER: Final = msgspec.json.Decoder(list[Said])
