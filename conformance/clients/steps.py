"""What every client of Python does, in the same order: a runner says how it is done, and leaves out what it cannot.

A runner is a program of a few lines, `with_NAME.py`: an async context manager that takes a Target and gives an
object with some of these methods, awaitable or not:

    resources() -> addresses          read(address) -> text, or bytes
    tools() -> names                  call(name, arguments) -> text
    prompt(name, arguments) -> text   version() -> the protocol version that was agreed on
    subscribe(address, heard)         heard(address) for each notification
    agent(name, arguments) -> text    a whole loop: a model that is none asks for the tool and repeats its answer

The work comes as JSON in the first argument, and what was done goes to stdout as JSON lines, one a step; what
failed is a line too. run.py starts the runners and judges. TypeScript's is typescript.mjs.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any, NamedTuple

import guard

LIMIT = 60.0


class Target(NamedTuple):
    """Where the server is: a program to start, or an endpoint and a key."""

    command: Sequence[str]
    env: dict[str, str]
    url: str | None
    key: str | None

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


def run(opened: Callable[[Target], AbstractAsyncContextManager[Any]], *packages: str) -> None:
    guard.watch()
    asyncio.run(_run(opened, packages))


async def _run(opened: Callable[[Target], AbstractAsyncContextManager[Any]], packages: Sequence[str]) -> None:
    work = json.loads(sys.argv[1])
    target = Target(work.get("command", ()), work.get("env", {}), work.get("url"), work.get("key"))
    say("versions", **{package: version(package) for package in packages})
    try:
        async with opened(target) as client:
            await Walk(client, work).walk()
    except Exception as error:
        failed("session", error)


class Walk:
    """One client at work. A step that fails is said, and the next one begins."""

    def __init__(self, client: Any, work: dict[str, Any]) -> None:
        self._client, self._work = client, work
        self._can = {name for name in STEPS if hasattr(client, name)}

    async def walk(self) -> None:
        say("can", steps=sorted(self._can))
        await self._step("version", self._version)
        uris: list[str] = []
        await self._step("resources", self._resources, uris)
        for uri in uris:
            await self._step("read", self._read, uri, uri=uri)
        await self._step("tools", self._tools)
        for call in self._work["calls"]:
            await self._step("call", self._call, call, name=call["name"])
        await self._step("prompt", self._prompt)
        await self._step("agent", self._agent)
        await self._step("subscribe", self._subscribe, uris)

    async def _step(self, step: str, doing: Callable[..., Any], *given: Any, **facts: Any) -> None:
        if step not in self._can:
            return
        try:
            async with asyncio.timeout(LIMIT):
                await doing(*given)
        except Exception as error:
            failed(step, error, **facts)

    async def _do(self, name: str, *given: Any) -> Any:
        done = getattr(self._client, name)(*given)
        return await done if inspect.isawaitable(done) else done

    async def _version(self) -> None:
        say("version", version=str(await self._do("version")))

    async def _resources(self, uris: list[str]) -> None:
        uris += [str(uri) for uri in await self._do("resources")]
        say("resources", uris=uris)

    async def _read(self, uri: str) -> None:
        got = await self._do("read", uri)
        say("read", uri=uri, text=base64.b64encode(got).decode() if isinstance(got, bytes) else got)

    async def _tools(self) -> None:
        say("tools", names=list(await self._do("tools")))

    async def _call(self, call: dict[str, Any]) -> None:
        say("call", name=call["name"], text=await self._do("call", call["name"], call["arguments"]))

    async def _prompt(self) -> None:
        prompt = self._work["prompt"]
        say("prompt", text=await self._do("prompt", prompt["name"], prompt["arguments"]))

    async def _agent(self) -> None:
        ask = self._work["ask"]
        say("agent", text=await self._do("agent", ask["name"], ask["arguments"]))

    async def _subscribe(self, uris: list[str]) -> None:
        (uri,) = (one for one in uris if one.endswith(self._work["watch"]))
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def heard(address: object) -> None:
            if not told.done():
                told.set_result(str(address))

        await self._do("subscribe", uri, heard)
        say("subscribed", uri=uri)  # now the file is changed
        say("subscribe", uri=await told)


STEPS = ("version", "resources", "read", "tools", "call", "prompt", "agent", "subscribe")


def say(what: str, **facts: Any) -> None:
    sys.__stdout__.write(json.dumps({"what": what, **facts}) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def failed(step: str, error: BaseException, **facts: Any) -> None:
    traceback.print_exception(error)
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    say("failed", step=step, error=f"{type(error).__name__}: {error}"[:500], **facts)


# -- what the SDKs have in common


def text_of(blocks: Any) -> str:
    """The texts of contents, of tool answers or of messages of a prompt."""
    found = []
    for block in blocks:
        block = getattr(block, "content", None) or block
        for one in block if isinstance(block, list) else [block]:
            found.append(one if isinstance(one, str) else getattr(one, "text", None) or "")
    return "\n".join(found)


def contents_of(contents: Any) -> str | bytes:
    (content,) = contents
    text = getattr(content, "text", None)
    return text if text is not None else base64.b64decode(content.blob)


async def subscribed(session: Any, uri: str, heard: Callable[[object], None]) -> None:
    """By the session of the SDK that a client hands out, as its era does it.

    In the older one notifications come to the message handler that the client was made with.
    """
    if getattr(session, "protocol_version", "") < "2026":
        await session.subscribe_resource(uri)
        return
    from mcp.client.subscriptions import SubscriptionLost, listen

    agreed = asyncio.Event()

    async def hear() -> None:
        with contextlib.suppress(SubscriptionLost):  # when the session ends
            await follow()

    async def follow() -> None:
        async with listen(session, resource_subscriptions=[uri]) as events:
            agreed.set()
            async for event in events:
                heard(event.uri)

    _HEARING.append(asyncio.create_task(hear()))
    await agreed.wait()


_HEARING: list[asyncio.Task[None]] = []


def updated(message: Any) -> str | None:
    """The address in a notification of either SDK, if it is one that a resource has changed."""
    note = getattr(message, "root", message)
    return str(note.params.uri) if getattr(note, "method", None) == "notifications/resources/updated" else None
