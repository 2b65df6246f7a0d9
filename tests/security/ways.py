"""The ways by which a caller comes to a house: pipe or HTTP, in either era of the protocol."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from tests.gate.doors import Pipe, Web, modern_headers
from tests.gate.twins import INITIALIZED, META, frame, initialize

from octavo.app import Octavo
from octavo.transport.http.auth import Authentication

VERSION = "2025-11-25"
Asks = Callable[[str, Mapping[str, Any]], Awaitable[bytes]]  # gives all that was told


class Way(NamedTuple):
    over: str
    era: str

    def __str__(self) -> str:
        return f"{self.era} era over {self.over}"


WAYS = tuple(Way(over, era) for over in ("stdio", "http") for era in ("modern", "handshake"))


def add_ways(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--over", choices=["stdio", "http"], help="both, if not given")
    parser.add_argument("--era", choices=["modern", "handshake"], help="both, if not given")


def chosen(options: argparse.Namespace) -> list[Way]:
    return [way for way in WAYS if options.over in (None, way.over) and options.era in (None, way.era)]


@contextlib.asynccontextmanager
async def caller(house: Octavo, who: str, way: Way, *, lane: bool = True) -> AsyncIterator[Asks]:
    """Somebody who has come in as an agent of the configuration."""
    meta = {"_meta": META} if way.era == "modern" else {}
    if way.over == "stdio":
        async with Pipe(house, house.works.identity.launched(who), lane=lane) as pipe:
            if way.era == "handshake":
                await pipe.write(initialize(VERSION) + b"\n" + INITIALIZED + b"\n")
                await pipe.settle()

            async def by_pipe(method: str, params: Mapping[str, Any]) -> bytes:
                await pipe.write(frame(method, {**params, **meta}) + b"\n")
                return b"\n".join(await pipe.settle())

            yield by_pipe
        return
    async with Web(house, lane=lane, access=Authentication(who)) as web:
        headers: list[tuple[str, str]] = []
        if way.era == "handshake":
            plain = [("Host", "127.0.0.1:8321"), ("Content-Type", "application/json")]
            plain.append(("Accept", "application/json, text/event-stream"))
            begun = await web.ask(initialize(VERSION), plain)
            headers = [
                *plain,
                ("MCP-Protocol-Version", VERSION),
                ("Mcp-Session-Id", dict(begun.headers)["mcp-session-id"]),
            ]
            await web.ask(INITIALIZED, headers)

        async def by_web(method: str, params: Mapping[str, Any]) -> bytes:
            asked = frame(method, {**params, **meta})
            return (await web.ask(asked, headers or modern_headers(json.loads(asked)))).raw

        yield by_web


def answer(told: bytes) -> dict[str, Any]:
    """The message that answers, among all that was told."""
    for line in told.splitlines():
        text = line.removeprefix(b"data: ").strip()
        if text.startswith(b"{"):
            message: dict[str, Any] = json.loads(text)
            if "result" in message or "error" in message:
                return message
    raise AssertionError(f"no answer in {told[:500]!r}")


def failed(told: bytes) -> bool:
    message = answer(told)
    return "error" in message or bool(message["result"].get("isError"))
