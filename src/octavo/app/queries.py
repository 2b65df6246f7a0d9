"""The questions that commands ask of such a server, as a named agent or as `local`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

from octavo.app.once import Terminal, completed, everything, inside, request, settled
from octavo.app.server import Octavo
from octavo.config.load import Loaded, state_directory
from octavo.core.arguments import SearchArguments, WatchArguments
from octavo.core.delivery import Delivery
from octavo.core.errors import Conflict, InvalidParams
from octavo.core.ports.chain import expected
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.search_results import Findings
from octavo.core.tools import PromptResult, ToolResult
from octavo.core.values import FEED, Change, Content, Entry, shown
from octavo.feed.stream import follow

if TYPE_CHECKING:
    from octavo.core.glob import Glob
    from octavo.core.tools import PromptInfo, ToolInfo

Shows = Callable[..., None]  # hears how far something is


def listed(
    loaded: Loaded, who: str | None, uri: str | None, *, leaves_traces: bool = True
) -> tuple[list[Entry], list[str]]:
    """Everything visible below an address, and the sources that could not be asked."""

    async def ask(server: Octavo) -> tuple[list[Entry], list[str]]:
        await settled(server)
        return await everything(server, who, uri)

    return inside(loaded, ask, leaves_traces=leaves_traces)


def read(loaded: Loaded, who: str | None, uri: str) -> Content:
    async def ask(server: Octavo) -> Content:
        await settled(server)
        return expected(await request(server, who, "read", uri), Content)

    return inside(loaded, ask, lasting=uri.startswith(f"{FEED}:"))  # the journal is read by what stores in it too


def found(
    loaded: Loaded, who: str | None, query: TextQuery, uri: str | None, limit: int, shows: Shows, *, kept: bool
) -> Findings:
    """The best documents: by the index of a server that runs here, or after everything was looked at. `kept`: by what
    the index held when it was last compared."""

    async def ask(server: Octavo) -> Findings:
        if loaded.config.search.enabled and not await server.searching.borrow(kept=kept):
            await settled(server)
            await completed(server, shows)
        return expected(
            await request(server, who, "search", uri, limit=limit, arguments=SearchArguments(query)), Findings
        )

    return inside(loaded, ask)


def rebuilt(loaded: Loaded, shows: Shows) -> int:
    """Makes the index anew: the number of documents. Raises Conflict while a server uses it."""
    from octavo.stores.process_files import ProcessFile

    place = ProcessFile.take(state_directory(loaded) / "search", most=1)
    if place is None:
        raise Conflict("A server that runs here uses the index: stop it first, or let it be, it follows all changes")
    for file in place.path.parent.glob("*.db*"):
        file.unlink()
    place.leave()
    return inside(loaded, lambda server: completed(server, shows))


def watched(
    loaded: Loaded,
    who: str | None,
    pattern: str,
    show: Callable[[Change, str], None],
    *,
    ready: Callable[[], None],
    count: int | None,
) -> None:
    """Shows changes that the pattern matches and the policy lets `who` see; `count` of them, or for ever. With the
    address in the words that were asked for, if it was one address."""

    async def ask(server: Octavo) -> None:
        composition = server.works
        principal = composition.identity.launched(who)
        call = composition.calls.watch(principal, pattern)
        glob = composition.policy.usual(call.given(WatchArguments).glob)
        heard: asyncio.Queue[Change] = asyncio.Queue()
        leave = server.feed.subscribe(heard.put_nowait)
        try:
            await composition.ask(call._replace(ref=glob.literal, arguments=WatchArguments(glob)))
            server.ledger.flush()
            ready()
            left = count
            while left != 0:
                delivery = Delivery(composition, await heard.get())
                told = delivery.told(principal, wanted=partial(_covers, delivery, glob))
                if told is not None:
                    show(told, pattern if glob.exact else "")
                    left = None if left is None else left - 1
            server.note(principal.id, f"watch {pattern}", "end")
        finally:
            leave()

    inside(loaded, ask)


def watched_after(
    loaded: Loaded,
    who: str | None,
    pattern: str,
    show: Callable[[Change, str], None],
    *,
    after: int,
    ready: Callable[[], None],
    gap: Callable[[int], None],
    count: int | None,
) -> None:
    """The same, and first what has changed since a number of the change feed, whether or not a server runs. Each change
    has its number. `gap` hears where to go on when changes may have been lost."""

    async def ask(server: Octavo) -> None:
        principal = server.works.identity.launched(who)
        call = server.works.calls.watch(principal, pattern)
        glob = server.works.policy.usual(call.given(WatchArguments).glob)
        await server.works.ask(call._replace(ref=glob.literal, arguments=WatchArguments(glob)))
        server.ledger.flush()
        ready()
        left = count
        scope = Ref(glob.literal.scheme)
        async for news in follow(lambda: server.works.changes, scope, after):
            if news.gap:
                gap(news.next)
            for change in news.changes:
                delivery = Delivery(server.works, change)
                told = delivery.told(principal, wanted=partial(_covers, delivery, glob))
                if told is not None:
                    show(told, pattern if glob.exact else "")
                    left = None if left is None else left - 1
                if left == 0:
                    server.note(principal.id, f"watch {pattern}", "end")
                    return

    inside(loaded, ask, lasting=True)


def _covers(delivery: Delivery, glob: Glob, ref: Ref, entry: Entry | None) -> bool:
    return bool(delivery.covering({glob.text: glob}, ref, shown(ref, entry)))


def prompts(loaded: Loaded, who: str | None) -> list[PromptInfo]:
    """Those that `who` may use, by name."""
    entries, _ = listed(loaded, who, "prompt://")

    async def ask(server: Octavo) -> list[PromptInfo]:
        principal = server.works.identity.launched(who)
        known = (server.works.prompt_info(entry.ref.name, principal) for entry in entries)
        return [info for info in known if info is not None]

    return inside(loaded, ask, leaves_traces=False)


def rendered(loaded: Loaded, who: str | None, name: str, given: dict[str, str], locale: str | None) -> PromptResult:
    """Raises InvalidParams also for a prompt of a plugin that speaks the raw protocol: there is nobody who hears it."""

    async def ask(server: Octavo) -> PromptResult:
        composition = server.works
        call = composition.calls.render(composition.identity.launched(who), name, given, Terminal(locale))
        try:
            result = await composition.ask(call._replace(timeout=composition.limits.timeout))
        finally:
            server.ledger.flush()
        if not isinstance(result, PromptResult):
            raise InvalidParams(f"The prompt {name} speaks the raw protocol: only a client can get it")
        return result

    return inside(loaded, ask)


def invoked(
    loaded: Loaded,
    who: str | None,
    name: str,
    arguments: Callable[[ToolInfo | None], dict[str, Any]],
    progress: Callable[[float, float | None, str | None], None],
) -> ToolResult:
    """What a tool answers an agent. Raises what is no answer: an unknown tool, a refusal, wrong arguments."""

    async def ask(server: Octavo) -> ToolResult:
        composition = server.works
        given = arguments(composition.tools.tool(name))
        call = composition.calls.invoke(composition.identity.launched(who), name, given, Terminal(progress=progress))
        try:
            result = expected(await composition.ask(call), ToolResult)
        finally:
            server.ledger.flush()
        return result

    with redirect_stdout(sys.stderr):  # where what a tool prints goes when it is served
        return inside(loaded, ask, lasting=name == FEED)


def offered(loaded: Loaded, who: str | None) -> list[dict[str, Any]]:
    """The tools that a caller sees, in order, with what each adds to a conversation. Leaves no record behind."""
    from octavo.transport.mcp import shapes

    async def ask(server: Octavo) -> list[dict[str, Any]]:
        entries, _ = await everything(server, who, "tool://")
        known = (server.works.tools.tool(entry.ref.name) for entry in entries)
        return [
            {
                "name": info.name,
                "description": info.description,
                "readOnly": info.hints.read_only,
                "tokens": -(-len(json.dumps(shapes.tool(info), ensure_ascii=False).encode()) // 4),
            }
            for info in known
            if info is not None
        ]

    return inside(loaded, ask, leaves_traces=False)
