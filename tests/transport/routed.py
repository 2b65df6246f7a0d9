"""A server with one route of a room, which streams: a program, since it is about how a server ends."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.ref import Ref
from octavo.core.routes import EVENTS, Anybody, Route, RouteAnswer, RouteRequest
from octavo.stores.state import StateDirectory
from octavo.transport.http import serve
from octavo.transport.http.auth import Authentication
from octavo.transport.http.deadlines import Deadlines


async def _pieces(size: int) -> AsyncGenerator[bytes, None]:
    try:
        yield b"data: one\n\n"
        while size:
            yield b"x" * size
        await asyncio.get_running_loop().create_future()
    finally:
        print("the stream has ended", file=sys.stderr, flush=True)


async def _events(asked: RouteRequest) -> RouteAnswer:
    return RouteAnswer(body=_pieces(int(asked.query.get("size", "0"))), media_type=EVENTS)


def _routes() -> Iterator[Route]:
    what = Ref.parse("server://events")
    yield Route(
        path="/events", methods=("GET",), stands_for="watch", what=what, needs=Anybody(rate=50.0), handle=_events
    )


async def main(file: Path) -> None:
    async with Octavo(load(file), state=StateDirectory.in_memory()) as house:
        app, hub = serve.application(
            house,
            access=Authentication(),
            hosts=["127.0.0.1:*"],
            origins=[],
            lane=True,
            strict_codes=False,
            routes=_routes,
        )
        listening = socket.create_server(("127.0.0.1", 0))
        await serve.serve(
            app, hub, listening, lambda address: print(address, file=sys.stderr), deadlines=Deadlines(send=1.0)
        )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
