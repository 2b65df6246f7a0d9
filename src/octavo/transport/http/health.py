"""Health, readiness and metrics over HTTP: `/healthz`, `/readyz` and `/metrics`.

The first two tell nothing but whether, how many sources are at fault, and what is to be known of the audit log; which
sources, and why, only to whom the numbers of the third are for. That one needs `serve.http.metrics`.

Who balances load asks for the first two by an address and not by a name that is configured: whoever asks so learns
whether, and nothing else. A page in a browser that was led here by a name of its own learns as little.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from octavo.core.metrics import Measure, Sample, number
from octavo.core.ports.server import Server
from octavo.core.ref import Ref
from octavo.core.routes import Anybody, Handler, Route, RouteAnswer, RouteRequest
from octavo.transport.http.backlog import Backlog
from octavo.transport.http.deadlines import Patience
from octavo.transport.mcp.subscriptions import Hub

METRICS = Ref("server", ("metrics",))  # what a rule names to let somebody see them
HEALTH, READINESS = Ref("server", ("healthz",)), Ref("server", ("readyz",))
OPEN_METRICS = 10.0  # times a second that they are put together for one address
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Signs:
    def __init__(self, server: Server, hub: Hub, backlog: Backlog) -> None:
        self._server, self._hub, self._backlog = server, hub, backlog
        self.patience: Patience | None = None  # while there are connections
        self.stopping = False

    def routes(self) -> Iterator[Route]:
        yield _sign("/healthz", HEALTH, self._health)
        yield _sign("/readyz", READINESS, self._ready)
        if self._server.works.metrics == "admin":
            yield Route(
                path="/metrics", methods=("GET",), stands_for="admin", what=METRICS, needs="admin", handle=self._metrics
            )
        elif self._server.works.metrics == "open":
            yield Route(
                path="/metrics", methods=("GET",), stands_for=None, what=METRICS, needs=Anybody(OPEN_METRICS),
                handle=self._metrics,
            )  # fmt: skip

    async def _health(self, asked: RouteRequest) -> RouteAnswer:
        return RouteAnswer(body=b'{"status": "ok"}')

    async def _ready(self, asked: RouteRequest) -> RouteAnswer:
        if self.stopping or not self._server.ready():
            return RouteAnswer(status=503, body=b'{"status": "not ready"}')
        if not asked.named:
            return RouteAnswer(body=b'{"status": "ready"}')
        ailing = self._server.ailing()
        told: dict[str, Any] = {"status": "ready", **self._server.remarks()}
        if ailing:
            told["degraded"] = len(ailing)
            if await self._is_for_operators(asked):
                told["sources"] = dict(ailing)
        return RouteAnswer(body=json.dumps(told, ensure_ascii=False).encode())

    async def _is_for_operators(self, asked: RouteRequest) -> bool:
        if self._server.works.metrics == "open":
            return True
        return asked.shown and self._server.works.administers(await asked.identify(), METRICS)

    async def _metrics(self, asked: RouteRequest) -> RouteAnswer:
        return RouteAnswer(body=exposition(self._measures()), media_type=MEDIA_TYPE)

    def _measures(self) -> Iterator[Measure]:
        yield from self._server.measures()
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


def _sign(path: str, what: Ref, handle: Handler) -> Route:
    needs = Anybody(rate=None)
    return Route(path=path, methods=("GET",), stands_for=None, what=what, needs=needs, handle=handle, any_host=True)


def exposition(measures: Iterable[Measure]) -> bytes:
    return "".join(line + "\n" for measure in measures for line in _lines(measure)).encode("utf-8")


def _lines(measure: Measure) -> Iterator[str]:
    yield f"# HELP {measure.name} {measure.about}"
    yield f"# TYPE {measure.name} {measure.kind}"
    for sample in measure.samples:
        yield f"{measure.name}{sample.suffix}{_labels(sample)} {sample.value:.12g}"


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
