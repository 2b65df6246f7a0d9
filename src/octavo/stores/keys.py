"""The keys that `octavo keys new` made, `keys/` of the store: hashes, whose they are, and when they end. Never a key
itself.

What cannot be read there lets nobody in, is left as it is, and is told in the log.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Sequence
from typing import Final

import msgspec

from octavo.core.errors import Conflict, NotFound
from octavo.core.ports.stores import MOST, KeyValue, Opens

logger = logging.getLogger(__name__)

PREFIX = "octavo"  # so that a key that leaked is found by programs that look for such
MOST_LIVE = 2  # keys of one agent at a time: the one that goes and the one that comes
_KEYS: Final = "keys/"


class StoredKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    agent: str
    sha256: str
    created: float  # seconds since 1970, like the next
    expires: float | None = None

    def live(self, now: float) -> bool:
        return self.expires is None or now < self.expires


class StoredKeys:
    """Every call raises SourceUnavailable where the store cannot be used."""

    def __init__(self, opens: Opens) -> None:
        self._opens = opens

    async def read(self) -> Sequence[StoredKey]:
        """The oldest first."""
        return await _read((await self._opens()).keys)

    async def issue(self, agent: str, *, now: float, expires: float | None, overlap: float) -> tuple[str, StoredKey]:
        """A new key, which is told now and never again. The agent's other one ends after `overlap` seconds.

        Raises Conflict while the agent has two that are live.
        """
        async with (await self._opens()).transaction() as within:
            keys = await _read(within.keys)
            if sum(key.agent == agent and key.live(now) for key in keys) >= MOST_LIVE:
                raise Conflict(f"{agent} has {MOST_LIVE} keys already; revoke one, or wait until one has expired")
            for key in keys:
                if not key.live(now):
                    await within.keys.delete(_KEYS + key.id)
                elif key.agent == agent:
                    await put(within.keys, _ending(key, now + overlap))
            name = secrets.token_hex(4)
            text = f"{PREFIX}_{name}_{secrets.token_urlsafe(32)}"
            made = StoredKey(name, agent, hashlib.sha256(text.encode("ascii")).hexdigest(), now, expires)
            await put(within.keys, made)
        return text, made

    async def revoke(self, name: str) -> StoredKey:
        """Raises NotFound."""
        async with (await self._opens()).transaction() as within:
            gone = next((key for key in await _read(within.keys) if key.id == name), None)
            if gone is None:
                raise NotFound(f"There is no key {name}; octavo keys list shows those that there are")
            await within.keys.delete(_KEYS + name)
        return gone


async def put(keys: KeyValue, key: StoredKey) -> None:
    await keys.set(_KEYS + key.id, msgspec.json.encode(key))


async def _read(keys: KeyValue) -> list[StoredKey]:
    found: list[StoredKey] = []
    after = ""
    while True:
        pairs = await keys.scan(_KEYS, after=after, limit=MOST)
        for place, value in pairs:
            try:
                found.append(_DECODER.decode(value))
            except msgspec.MsgspecError:
                logger.warning("What the store has at %s cannot be read, so it is nobody's key", place)
        if len(pairs) < MOST:
            return sorted(found, key=lambda key: (key.created, key.id))
        after = pairs[-1].key


def _ending(key: StoredKey, at: float) -> StoredKey:
    return key if key.expires is not None and key.expires <= at else msgspec.structs.replace(key, expires=at)


_DECODER: Final = msgspec.json.Decoder(StoredKey)
