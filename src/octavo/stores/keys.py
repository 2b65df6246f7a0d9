"""The keys that `octavo keys new` made: hashes, whose they are, and when they end. Never a key itself.

One small file, `keys.json` in the state directory. It is replaced as a whole and by one process at a time; whoever
serves reads it again when it changes. A damaged file lets nobody in, and nobody overwrites it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec

from octavo.core.errors import Conflict, NotFound, SourceUnavailable
from octavo.core.sizes import MIB
from octavo.stores.state import read_whole, turn, write_whole

NAME = "keys.json"
PREFIX = "octavo"  # so that a key that leaked is found by programs that look for such
MOST_LIVE = 2  # keys of one agent at a time: the one that goes and the one that comes
MAX_BYTES = 4 * MIB


class StoredKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    agent: str
    sha256: str
    created: float  # seconds since 1970, like the next
    expires: float | None = None

    def live(self, now: float) -> bool:
        return self.expires is None or now < self.expires


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    keys: list[StoredKey]


class KeyFile:
    def __init__(self, state: Path) -> None:
        self._state, self.path = state, state / NAME

    def read(self) -> Sequence[StoredKey]:
        """Raises SourceUnavailable where it cannot be read, or is damaged."""
        try:
            body = read_whole(self.path, MAX_BYTES)
        except OSError as error:
            raise SourceUnavailable(f"The key file cannot be read: {error.strerror}") from None
        if body is None:
            return []
        try:
            document = msgspec.json.decode(body, type=_Document)
        except msgspec.MsgspecError:
            raise SourceUnavailable("The key file is damaged; bring it back, or remove it and make new keys") from None
        if document.version != 1:
            raise SourceUnavailable("The key file was written by a newer Octavo")
        return document.keys

    def issue(self, agent: str, *, now: float, expires: float | None, overlap: float) -> tuple[str, StoredKey]:
        """A new key, which is told now and never again. The agent's other one ends after `overlap` seconds.

        Raises Conflict while the agent has two that are live.
        """
        with turn(self._lock()):
            keys = [key for key in self.read() if key.live(now)]
            if sum(key.agent == agent for key in keys) >= MOST_LIVE:
                raise Conflict(f"{agent} has {MOST_LIVE} keys already; revoke one, or wait until one has expired")
            name = secrets.token_hex(4)
            text = f"{PREFIX}_{name}_{secrets.token_urlsafe(32)}"
            made = StoredKey(name, agent, hashlib.sha256(text.encode("ascii")).hexdigest(), now, expires)
            self._write([*(_ending(key, now + overlap) if key.agent == agent else key for key in keys), made])
            return text, made

    def revoke(self, name: str) -> StoredKey:
        """Raises NotFound."""
        with turn(self._lock()):
            keys = self.read()
            gone = next((key for key in keys if key.id == name), None)
            if gone is None:
                raise NotFound(f"There is no key {name}; octavo keys list shows those that there are")
            self._write([key for key in keys if key is not gone])
            return gone

    def _lock(self) -> Path:
        return self._state / "lock"

    def _write(self, keys: list[StoredKey]) -> None:
        try:
            write_whole(self.path, msgspec.json.format(msgspec.json.encode(_Document(1, keys))) + b"\n")
        except OSError as error:
            raise SourceUnavailable(f"The key file cannot be written: {error.strerror}") from None


def _ending(key: StoredKey, at: float) -> StoredKey:
    return key if key.expires is not None and key.expires <= at else msgspec.structs.replace(key, expires=at)
