"""Answers of tools are given again only while everything they were made of is what it was, for who asks (T9)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from octavo.core.arguments import OwnArguments
from octavo.core.errors import Forbidden
from octavo.core.operations import arguments_of
from octavo.core.ref import Ref
from octavo.core.tools import Hints, ToolInfo
from octavo.core.values import Call, Principal, Trail
from octavo.testing import FrozenClock
from octavo.testing.tool_suite import World
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool, ToolRegistry
from octavo.tools.result_cache import Results

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T9")]

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
SCHEMA = {"type": "object", "properties": {"uri": {"type": "string"}}}


class Shop:
    """A tool that reads, how often it ran, and who may not read."""

    def __init__(self, hints: Hints = HINTS) -> None:
        self.world = World({"file://a.md": "one two", "file://b/c.md": "three"})
        self.runs = 0
        self.refused: set[str] = set()
        self.masked = False
        self.last = asyncio.Event()
        self.clock = FrozenClock()
        self.tools = ToolRegistry()
        self.tools._results = Results(self.clock)  # pyright: ignore[reportPrivateUsage]
        info = ToolInfo(name="words", description="Counts.", input_schema=SCHEMA, hints=hints, cache=60.0)
        self.tools.register(Tool(info, self.count))
        self.tools.bind(self.ask)

    async def ask(self, call: Call) -> Any:
        if call.principal.id in self.refused or call.ref.path == "refused":
            raise Forbidden("Access denied")
        reply = await self.world.ask(call)
        if call.ref.path == "b/c.md":
            await self.last.wait()
        return msgspec.structs.replace(reply, body="[redacted]") if self.masked else reply

    async def count(self, ctx: ToolContext, asked: Mapping[str, Any]) -> str:
        self.runs += 1
        if asked["uri"] == "search":
            await ctx.render("x")
        if asked["uri"] == "both":
            self.last.set()
            both = await asyncio.gather(ctx.read("file://a.md"), ctx.read("file://b/c.md"))
            return str(len(both))
        if asked["uri"] == "one refused":
            whole = asyncio.ensure_future(ctx.read("file://b/c.md"))
            await asyncio.sleep(0)
            with pytest.raises(Forbidden):
                await ctx.read("file://refused")
            self.last.set()
            return str((await whole).body)
        if asked["uri"] == "list":
            return str(len((await ctx.list("file://b")).items))
        return str(len(str((await ctx.read(asked["uri"])).body).split()))

    async def call(self, uri: str, who: str = "agent-brand") -> tuple[str, str]:
        trail = Trail()
        call = Call("invoke", Ref("tool", ("words",)), Principal(who), trail, arguments=OwnArguments({"uri": uri}))
        return (await self.tools.invoke(call)).content[0].text, trail.cache


async def test_the_same_question_is_answered_once_and_its_reads_are_made_again() -> None:
    shop = Shop()
    assert await shop.call("file://a.md") == ("2", "miss")
    assert await shop.call("file://a.md") == ("2", "hit")
    assert shop.runs == 1
    assert [(call.op, str(call.ref)) for call in shop.world.asked] == [("read", "file://a.md")] * 2
    assert shop.world.asked[1].parent is not None


async def test_a_change_of_what_was_read_or_listed_ends_it() -> None:
    shop = Shop()
    write = Call("write", Ref.parse("file://a.md"), Principal("x"), Trail())
    await shop.call("file://a.md")
    await shop.call("list")
    await shop.world.ask(
        write._replace(arguments=arguments_of("write", {"body": "one", "if_match": None, "mode": "upsert"}))
    )
    assert await shop.call("file://a.md") == ("1", "miss")
    assert await shop.call("list") == ("1", "hit")
    other = write._replace(
        ref=Ref.parse("file://b/d.md"),
        arguments=arguments_of("write", {"body": "", "if_match": None, "mode": "create"}),
    )
    await shop.world.ask(other)
    assert await shop.call("list") == ("2", "miss")


async def test_nobody_gets_the_answer_of_another_nor_one_that_it_may_no_longer_read() -> None:
    shop = Shop()
    await shop.call("file://a.md")
    assert (await shop.call("file://a.md", "agent-hr"))[1] == "miss"
    shop.refused.add("agent-brand")
    with pytest.raises(Forbidden):
        await shop.call("file://a.md")


async def test_it_ends_with_its_time() -> None:
    shop = Shop()
    await shop.call("file://a.md")
    shop.clock.advance(61)
    assert (await shop.call("file://a.md"))[1] == "miss"


async def test_what_has_no_version_and_what_may_change_something_is_never_kept() -> None:
    shop = Shop()
    for _ in range(2):
        with pytest.raises(Exception, match=r"not found|cannot"):
            await shop.call("search")
    assert shop.runs == 2
    changing = Shop(Hints(read_only=False, destructive=False, idempotent=True, open_world=False))
    assert [(await changing.call("file://a.md"))[1] for _ in range(2)] == ["", ""]


async def test_what_is_asked_at_once_is_kept_only_if_all_of_it_was_answered() -> None:
    shop = Shop()
    assert [(await shop.call("both"))[1] for _ in range(2)] == ["miss", "hit"]
    assert [(await shop.call("one refused"))[1] for _ in range(2)] == ["miss", "miss"]


async def test_an_answer_made_of_what_is_masked_by_now_is_made_anew() -> None:
    """The version is that of the source, and stays."""
    shop = Shop()
    assert await shop.call("file://a.md") == ("2", "miss")
    shop.masked = True
    assert await shop.call("file://a.md") == ("1", "miss")


async def test_one_who_asks_much_pushes_out_his_own_answers_and_nobody_elses() -> None:
    shop = Shop()

    async def ask(who: str, number: int) -> str:
        trail = Trail()
        arguments = {"uri": "file://a.md", "number": number}
        await shop.tools.invoke(
            Call("invoke", Ref("tool", ("words",)), Principal(who), trail, arguments=OwnArguments(arguments))
        )
        return trail.cache

    await ask("polite", 0)
    for number in range(600):
        await ask("hostile", number)
    assert [await ask("polite", 0), await ask("hostile", 599), await ask("hostile", 0)] == ["hit", "hit", "miss"]
