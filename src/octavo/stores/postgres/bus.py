"""Hints by LISTEN and NOTIFY, on a connection of its own for as long as somebody listens."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from octavo.core.ports.stores import Bus, Hint
from octavo.stores._shared.bounds import check_hint, check_key
from octavo.stores._shared.relay import Relay
from octavo.stores.postgres.pool import Pool


class PostgresBus(Bus):
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._channel = f"octavo_{pool.schema}"
        self.relay = Relay(self._run)

    async def publish(self, topic: str, body: bytes = b"") -> None:
        check_key(topic)
        check_hint(body)
        text = f"{b64encode(topic.encode()).decode()} {b64encode(body).decode()}"
        await self._pool.write("SELECT pg_notify($1, $2)", self._channel, text)

    def listen(self, *topics: str) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        return self.relay.listen(topics)

    async def _run(self, ready: Callable[[], None]) -> None:
        async with self._pool.listening(self._channel, self._told) as ended:
            ready()
            await ended()

    def _told(self, text: str) -> None:
        topic, _, body = text.partition(" ")
        try:
            self.relay.tell(Hint(b64decode(topic, validate=True).decode(), b64decode(body, validate=True)))
        except (binascii.Error, UnicodeDecodeError):  # of a stranger: whoever may connect may notify
            return
