"""Ends long streams when the credential that opened them ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from octavo.core.clock import SystemClock
from octavo.core.errors import OctavoError
from octavo.core.ports.server import Admitted, Server
from octavo.transport.http.exchange import App, Message, Receive, Scope, Send


class CredentialLeases:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._held: dict[asyncio.Event, Admitted] = {}
        server.on_swap(self._review)

    async def serve(self, app: App, scope: Scope, receive: Receive, send: Send, admitted: Admitted) -> None:
        """As if the client had left, once its credential ends."""
        open_ = False

        async def told(message: Message) -> None:
            nonlocal open_
            open_ = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        with self._hold(admitted) as ended:
            over = asyncio.ensure_future(ended.wait())

            async def until_it_ends() -> Message:
                heard = asyncio.ensure_future(receive())
                try:
                    await asyncio.wait({heard, over}, return_when=asyncio.FIRST_COMPLETED)
                    return heard.result() if heard.done() else {"type": "http.disconnect"}
                finally:
                    heard.cancel()

            try:
                await app(scope, until_it_ends, told)
                if open_ and ended.is_set():
                    await send({"type": "http.response.body", "body": b""})
            finally:
                over.cancel()

    @contextmanager
    def _hold(self, admitted: Admitted) -> Iterator[asyncio.Event]:
        ended = asyncio.Event()
        timer = at(admitted.until, ended.set)
        self._held[ended] = admitted
        try:
            yield ended
        finally:
            del self._held[ended]
            if timer is not None:
                timer.cancel()

    def _review(self) -> None:
        for ended, admitted in self._held.items():
            try:
                self._server.works.identity.current(admitted.principal)
            except OctavoError:
                ended.set()


def at(until: float | None, end: Callable[[], None]) -> asyncio.TimerHandle | None:
    """Calls `end` then; never for None."""
    if until is None:
        return None
    return asyncio.get_running_loop().call_later(max(0.0, until - SystemClock.wall()), end)
