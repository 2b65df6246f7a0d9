"""Two houses that must not be told apart: one with the hot lane, one without."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from tests.gate.doors import Headers, Json, Pipe, Reply, Web, both
from tests.gate.world import accounts, configuration, house, principal, records

from octavo.app import Octavo

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_CANCELS = re.compile(rb'"requestId": ?("?[123]"?|"None")}')  # as the fuzzer and the named cases write it
_INCIDENT = re.compile(r'(incident\\*": ?\\*")(?:[0-9a-f]{12}|run-\d+)')


def frame(method: str, params: Any = None, request_id: Any = 1) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return json.dumps(message, ensure_ascii=False).encode()


def initialize(version: str, request_id: Any = "init") -> bytes:
    info = {"name": "gate", "version": "1"}
    return frame("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": info}, request_id)


INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class Differs(AssertionError):
    pass


class Books:
    """The records and the quota of two houses, compared step by step."""

    def __init__(self, fast: Octavo, slow: Octavo) -> None:
        self._houses = fast, slow
        self._seen = [len(records(one)) for one in self._houses]

    def same(self, what: object, *, ordered: bool) -> list[dict[str, Any]]:
        fresh: list[list[dict[str, Any]]] = []
        for index, one in enumerate(self._houses):
            fresh.append(records(one, self._seen[index]))
            self._seen[index] += len(fresh[-1])
        fast, slow = ([_INCIDENT.sub(r"\1#", json.dumps(one)) for one in found] for found in fresh)
        if not ordered:
            fast, slow = (sorted(_without_ids(one) for one in found) for found in fresh)
        if fast != slow:
            raise Differs(f"records of {what!r}\nlane on:  {fast}\nlane off: {slow}")
        if (a := accounts(self._houses[0])) != (b := accounts(self._houses[1])):
            raise Differs(f"quota after {what!r}\nlane on:  {a}\nlane off: {b}")
        return fresh[0]


def _without_ids(record: dict[str, Any]) -> str:
    """For calls that run at once: numbers, and who of several found the cache warm, depend on their order."""
    facts = {k: bool(v) if k in ("id", "parent", "incident") else v for k, v in record.items()}
    return json.dumps({k: v for k, v in facts.items() if k != "cache"})


class StdioTwins:
    def __init__(self, fast: Pipe, slow: Pipe) -> None:
        self.fast, self.slow = fast, slow
        self._books = Books(fast.house, slow.house)

    @property
    def hits(self) -> int:
        return self.fast.lane.hits

    async def script(self, steps: Sequence[Sequence[bytes]]) -> None:
        """Step by step. The tool `slow` hangs until its call is cancelled."""
        hanging = 0
        for step in steps:
            hanging += sum(b'"slow"' in line for line in step)
            hanging -= sum(bool(_CANCELS.search(line)) for line in step)
            await self.same(*step, hanging=max(0, hanging))

    async def same(self, *frames: bytes, hanging: int = 0) -> list[Json]:
        """What both answered, while so many calls hang. Raises Differs."""
        answers = [
            sorted(_clean(one) for one in await pipe.ask(*frames, hanging=hanging)) for pipe in (self.fast, self.slow)
        ]
        if answers[0] != answers[1]:
            raise Differs(f"{_shown(frames)}\nlane on:  {answers[0]}\nlane off: {answers[1]}")
        self._books.same(_shown(frames), ordered=len(frames) == 1)
        return answers[0]

    async def open(self, era: str) -> None:
        """Opens both connections and shows the lane what it needs to know."""
        if era == "modern":
            await self.same(frame("tools/list", {"_meta": META}, "open"))
        else:
            await self.same(initialize(era))
            await self.same(INITIALIZED)


class WebTwins:
    def __init__(self, fast: Web, slow: Web) -> None:
        self.fast, self.slow = fast, slow
        self._books = Books(fast.house, slow.house)

    @property
    def hits(self) -> int:
        return self.fast.lane.hits

    async def same(self, body: bytes, headers: Headers, **how: Any) -> Reply:
        headers = [*headers]
        fast, slow = await self.fast.ask(body, headers, **how), await self.slow.ask(body, headers, **how)
        same = [_INCIDENT.sub(r"\1#", repr(one.same)) for one in (fast, slow)]
        what = f"{_shown([body])} {headers} {how}"
        if same[0] != same[1]:
            raise Differs(f"{what}\nlane on:  {same[0]}\nlane off: {same[1]}")
        self._books.same(what, ordered=True)
        return fast


def _clean(answer: Json) -> Json:
    return Json(_INCIDENT.sub(r"\1#", answer.text))


def _shown(frames: Sequence[bytes]) -> list[bytes]:
    return [one if len(one) < 2000 else one[:1000] + b" ... " + one[-200:] for one in frames]


@contextlib.asynccontextmanager
async def houses(folder: Path, *, rate: str = "off", rule: str = "") -> AsyncIterator[tuple[Octavo, Octavo]]:
    logging.disable(logging.CRITICAL)  # crashes are part of the corpus
    fast_one, slow_one = (house(configuration(folder, rate=rate, rule=rule)) for _ in range(2))
    try:
        async with fast_one as fast, slow_one as slow:
            yield fast, slow
    finally:
        logging.disable(logging.NOTSET)


@contextlib.asynccontextmanager
async def stdio_twins(pair: tuple[Octavo, Octavo], who: str, *, keyed: bool = False) -> AsyncIterator[StdioTwins]:
    fast, slow = pair
    async with both(
        Pipe(fast, principal(fast, who, keyed=keyed), lane=True),
        Pipe(slow, principal(slow, who, keyed=keyed), lane=False),
    ) as (on, off):
        yield StdioTwins(on, off)


@contextlib.asynccontextmanager
async def web_twins(pair: tuple[Octavo, Octavo]) -> AsyncIterator[WebTwins]:
    async with both(Web(pair[0], lane=True), Web(pair[1], lane=False)) as (on, off):
        yield WebTwins(on, off)
