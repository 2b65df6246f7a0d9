"""The official Python client, with what it hears kept in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.e2e.harness import EVENT, LEGACY, LIMIT, MODERN, Place, octavo
from tests.e2e.organisation import KEYS


class Heard:
    """What the server told, in its order."""

    def __init__(self) -> None:
        self.notes: list[Any] = []
        self._news = asyncio.Condition()

    async def __call__(self, message: Any) -> None:
        async with self._news:
            self.notes.append(message)
            self._news.notify_all()

    async def next(self, found: Callable[[Any], bool], *, after: int = 0) -> Any:
        async with asyncio.timeout(LIMIT), self._news:
            await self._news.wait_for(lambda: any(map(found, self.notes[after:])))
            return next(filter(found, self.notes[after:]))

    async def updated(self, uri: str, *, after: int = 0) -> dict[str, Any]:
        note = await self.next(
            lambda one: one.method == "notifications/resources/updated" and one.params.uri == uri, after=after
        )
        return event(note)

    async def list_changed(self, *, after: int = 0) -> dict[str, Any]:
        return event(await self.next(lambda one: one.method == "notifications/resources/list_changed", after=after))

    @property
    def uris(self) -> set[str]:
        """Every address that was named, in any notification."""
        return {event(one)["uri"] for one in self.notes}


def event(note: Any) -> dict[str, Any]:
    told: dict[str, Any] = note.params.meta[EVENT]
    return told


class Link:
    def __init__(self, client: Client, era: str, heard: Heard) -> None:
        self.client, self.era, self.heard = client, era, heard

    async def listed(self) -> dict[str, str]:
        """The address of each name."""
        return {one.name: str(one.uri) for one in (await self.client.list_resources(cache_mode="bypass")).resources}

    async def uris(self) -> list[str]:
        return [str(one.uri) for one in (await self.client.list_resources(cache_mode="bypass")).resources]

    async def text(self, uri: str) -> str:
        (content,) = (await self.client.read_resource(uri)).contents
        return content.text

    @contextlib.asynccontextmanager
    async def subscribed(self, *patterns: str) -> AsyncIterator[set[str]]:
        """Gives what the server agreed to."""
        if self.era == "modern":
            async with self.client.listen(resources_list_changed=True, resource_subscriptions=patterns) as stream:
                yield set(stream.honored.resource_subscriptions or ())
            return
        for pattern in patterns:
            assert await self.client.subscribe_resource(pattern)
        yield set(patterns)
        for pattern in patterns:
            await self.client.unsubscribe_resource(pattern)


@contextlib.asynccontextmanager
async def connected(place: Place, transport: str, era: str, *, agent: str | None = None) -> AsyncIterator[Link]:
    """One client of a server of its own: of the bare folder, or of the organisation as one of its agents."""
    with contextlib.ExitStack() as stack:
        if transport == "stdio":
            target = [place.root] if agent is None else ["--config", place.base / "octavo.yaml", "--as", agent]
            command, *arguments = octavo("serve", *target)
            log = stack.enter_context((place.base / f"stderr-{agent}.log").open("w+", encoding="utf-8"))
            server = StdioServerParameters(command=command, args=arguments, env=place.environment)
            streams: Any = stdio_client(server, errlog=log)
        else:
            target = [place.root, "--no-auth"] if agent is None else ["--config", place.base / "octavo.yaml"]
            url = stack.enter_context(place.serve(*target)).url
            streams = over_http(url, None if agent is None else KEYS[agent])
        async with linked(streams, era) as link:
            yield link


@contextlib.asynccontextmanager
async def linked(streams: Any, era: str, user: Any = None) -> AsyncIterator[Link]:
    """`user` answers elicitations."""
    heard = Heard()
    mode = "auto" if era == "modern" else "legacy"
    async with Client(
        streams, mode=mode, message_handler=heard, read_timeout_seconds=LIMIT, elicitation_callback=user
    ) as client:
        assert client.session.protocol_version == (MODERN if era == "modern" else LEGACY)
        yield Link(client, era, heard)


@contextlib.asynccontextmanager
async def over_http(url: str, key: str | None) -> AsyncIterator[Any]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=LIMIT) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams
