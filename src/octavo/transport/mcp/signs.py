"""Signs of life for whoever operates the server: `/healthz`, `/readyz` and `/metrics`.

The first two tell nothing but whether, how many sources are at fault, and what is to be known of the audit log; which
sources, and why, only to whom the numbers of the third are for. That one needs `serve.http.metrics`.

Who balances load asks for the first two by an address and not by a name that is configured: whoever asks so learns
whether, and nothing else. A page in a browser that was led here by a name of its own learns as little.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from octavo.core.house import House
from octavo.core.measure import Measure, Sample, number
from octavo.core.ref import Ref
from octavo.transport.mcp.backlog import Backlog
from octavo.transport.mcp.entry import Entry
from octavo.transport.mcp.exchange import Receive, Scope, Send, respond
from octavo.transport.mcp.exposition import MEDIA_TYPE, exposition
from octavo.transport.mcp.hub import Hub
from octavo.transport.mcp.patience import Patience

METRICS = Ref("server", ("metrics",))  # what a rule names to let somebody see them
_ONLY_GET = [(b"allow", b"GET, HEAD")]


class Signs:
    def __init__(
        self, house: House, entry: Entry, hub: Hub, backlog: Backlog, recorded: Callable[[Scope, Send], Send]
    ) -> None:
        """`recorded` lets nothing out before its record is stored."""
        self._house, self._entry, self._hub, self._backlog = house, entry, hub, backlog
        self._recorded = recorded
        self.patience: Patience | None = None  # while there are connections
        self.stopping = False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Whether it was about one of them."""
        answer = {"/healthz": self._health, "/readyz": self._ready, "/metrics": self._metrics}.get(scope["path"])
        if answer is None or (answer == self._metrics and self._house.works.metrics == "off"):
            return False
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, b'{"error": "method not allowed"}', _ONLY_GET)
        else:
            await answer(scope, receive, send)
        return True

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        await respond(send, 200, b'{"status": "ok"}')

    async def _ready(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.stopping or not self._house.ready():
            await respond(send, 503, b'{"status": "not ready"}')
            return
        if not self._entry.knows(scope):
            await respond(send, 200, b'{"status": "ready"}')
            return
        ailing = self._house.ailing()
        told: dict[str, Any] = {"status": "ready", **self._house.remarks()}
        if ailing:
            told["degraded"] = len(ailing)
            shown = any(name == b"authorization" for name, _ in scope["headers"])
            if shown or self._house.works.metrics == "open":
                send = self._recorded(scope, send)
                allowed = await self._allowed(scope, receive, send)
                if allowed is None:
                    return
                told |= {"sources": dict(ailing)} if allowed else {}
        await respond(send, 200, json.dumps(told, ensure_ascii=False).encode())

    async def _metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Recorded and refused like any other request, unless they are open to all."""
        send = self._recorded(scope, send)
        allowed = await self._allowed(scope, receive, send)
        if allowed:
            await respond(send, 200, exposition(self._measures()), media_type=MEDIA_TYPE)
        elif allowed is False:
            await respond(send, 403, b'{"error": "forbidden"}')

    async def _allowed(self, scope: Scope, receive: Receive, send: Send) -> bool | None:
        """Whether the caller may see what is for operators; None after a refusal has been sent."""
        if self._house.works.metrics == "open":
            return None if await self._entry.turned_away(scope, receive, send, is_post=False) else True
        admitted = await self._entry.admit(scope, receive, send)
        if admitted is None:
            return None
        allowed = self._house.works.administers(admitted.principal, METRICS)
        self._house.note(admitted.principal.id, "http", "ok" if allowed else "forbidden", uri=str(METRICS))
        return allowed

    def _measures(self) -> Iterator[Measure]:
        yield from self._house.measures()
        yield number("octavo_subscribers", "Streams and connections that wait for changes.", self._hub.subscribers)
        backlog = self._backlog
        yield number("octavo_waiting", "Requests over HTTP that are open, but for old ones.", backlog.waiting)
        yield number("octavo_request_cpu_seconds", "Processor time of one request over HTTP, lately.", backlog.cost)
        refused = (Sample(backlog.refused),)
        yield Measure("octavo_refused_total", "counter", "Requests refused because of overload.", refused)
        if self.patience is not None:
            yield number("octavo_connections", "Connections that are open.", len(self.patience.connections))
            ended = tuple(Sample(count, (("why", why),)) for why, count in sorted(self.patience.ended.items()))
            yield Measure("octavo_connections_ended_total", "counter", "Connections that were too slow.", ended)
