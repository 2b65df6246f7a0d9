"""One house, served in process, and a client that sends messages as the documents write them."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.stores.audit.ledger import MemoryLedger
from octavo.stores.state import StateDirectory
from octavo.transport.mcp.calls import Calls
from octavo.transport.mcp.server import McpServer
from octavo.transport.mcp.subscriptions import Hub

PATIENCE = 30.0
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "seeds", "version": "1"},
}


class Wire:
    """JSON-RPC messages out and in. `notes` holds the notifications that came."""

    def __init__(self, house: Octavo, send: Callable[[SessionMessage], Any], *, modern: bool) -> None:
        self.house, self.modern = house, modern
        self.notes: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.welcome: dict[str, Any] = {}
        self._send = send
        self._ids = itertools.count(1000)
        self._answers: dict[Any, asyncio.Future[dict[str, Any]]] = {}

    async def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to a whole message. The envelope of the modern era is added."""
        if self.modern:
            params = message.get("params") or {}
            message = {**message, "params": {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}}}
        answer = self._answers[message["id"]] = asyncio.get_running_loop().create_future()
        await self._post(message)
        with anyio.fail_after(PATIENCE):
            return await answer

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result. Fails on an error."""
        answer = await self.send({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        assert "result" in answer, answer
        return answer["result"]

    async def refused(self, method: str, **params: Any) -> dict[str, Any]:
        """The error. Fails on a result."""
        answer = await self.send({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        assert "error" in answer, answer
        return answer["error"]

    async def begin(self, method: str, **params: Any) -> None:
        """A request that is answered by a stream."""
        meta = {**ENVELOPE, **params.pop("_meta", {})}
        number = next(self._ids)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._post({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}})

    async def note(self, method: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The next notification of that method, whole."""
        with anyio.fail_after(PATIENCE):
            while True:
                found = await self.notes.get()
                if found["method"] == method and where(found):
                    return found

    async def read(self, uri: str) -> dict[str, Any]:
        contents = (await self.ask("resources/read", uri=uri))["contents"]
        assert len(contents) == 1
        return contents[0]

    async def listed(self) -> list[dict[str, Any]]:
        """All pages."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        while True:
            page = await self.ask("resources/list", **cursor)
            found += page["resources"]
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}

    def records(self) -> list[dict[str, Any]]:
        """The audit so far."""
        ledger = self.house.ledger
        assert isinstance(ledger, MemoryLedger)
        ledger.flush()
        return [json.loads(record) for record in ledger.records]

    async def shake_hands(self) -> None:
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "seeds", "version": "1"}}
        self.welcome = await self.ask("initialize", **about)
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def _post(self, message: dict[str, Any]) -> None:
        await self._send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))

    async def collect(self, inbox: Any) -> None:
        async for arrived in inbox:
            message = arrived.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            if "method" in message:
                self.notes.put_nowait(message)
            elif not (answer := self._answers.pop(message["id"])).done():
                answer.set_result(message)


Serve = Callable[..., AbstractAsyncContextManager[Wire]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """`async with serve(configuration) as wire`: relative paths of the configuration begin at tmp_path. What is
    changed needs `keeps=True`: without a state directory nothing that exists is replaced or deleted."""

    @asynccontextmanager
    async def serving(
        configuration: str, *, who: str | None = None, modern: bool = False, keeps: bool = False
    ) -> AsyncIterator[Wire]:
        loaded = load_text(configuration, file=tmp_path / "octavo.yaml", environ={})
        state = StateDirectory.open(tmp_path / "state") if keeps else StateDirectory.in_memory()
        async with Octavo(loaded, state=state) as house:
            principal = house.works.identity.launched(who)
            hub = Hub(house)
            server = McpServer(Calls(house, strict_codes=False), hub, lambda _: principal, lambda *_: None)
            async with create_client_server_memory_streams() as (near, far):
                wire = Wire(house, near[1].send, modern=modern)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(wire.collect, near[0])
                    tasks.start_soon(server.sdk.run, *far, server.sdk.create_initialization_options())
                    if not modern:
                        await wire.shake_hands()
                    yield wire
                    hub.close()
                    tasks.cancel_scope.cancel()

    return serving


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file below tmp_path, at once: nobody sees it half-written."""

    def writing(path: str, body: str | bytes) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = tmp_path / "fresh"
        fresh.write_bytes(body.encode("utf-8") if isinstance(body, str) else body)
        return fresh.replace(file)

    return writing
