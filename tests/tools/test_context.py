"""What a tool may touch: child calls with its caller's rights, and nothing else (house.md, section 2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from octavo.core.errors import Forbidden, InvalidParams, OctavoError
from octavo.core.progress import step
from octavo.core.ref import Ref
from octavo.core.tools import Hints, PromptResult, ToolInfo
from octavo.core.values import Call, Content, Entry, Page, Principal, Trail
from octavo.tools import context
from octavo.tools.context import NoWire, ToolContext
from octavo.tools.registry import Tool, ToolRegistry

pytestmark = pytest.mark.anyio

BRAND = Principal("agent-brand", frozenset({"marketing"}))
ENTRY = Entry(ref=Ref.parse("file://a.md"), name="a.md")


class Pipeline:
    """Answers every call, and remembers it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def __call__(self, call: Call) -> Any:
        self.calls.append(call)
        if call.fault is not None:
            raise call.fault
        replies: dict[str, Any] = {
            "read": Content(entry=ENTRY, body="text"),
            "list": Page((ENTRY,)),
            "render": PromptResult(messages=()),
        }
        return replies[call.op]


class Client:
    def __init__(self) -> None:
        self.told: list[tuple[float, float | None, str | None]] = []
        self.wire = object()

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        self.told.append((value, total, message))


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline()


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def call(client: Client) -> Call:
    return Call("invoke", Ref("tool", ("t",)), BRAND, Trail(), channel=client)


async def test_what_a_tool_asks_is_a_child_call_of_its_caller(pipeline: Pipeline, call: Call) -> None:
    ctx = ToolContext(call, pipeline)
    assert ctx.principal is BRAND
    assert (await ctx.read("file://a%20b.md")).body == "text"
    assert (await ctx.list("file://docs", cursor="c", limit=7)).items == (ENTRY,)
    assert await ctx.render("review", {"x": "1"}) == PromptResult(messages=())
    read, listed, rendered = pipeline.calls
    assert [asked.parent for asked in pipeline.calls] == [call] * 3
    assert [asked.principal for asked in pipeline.calls] == [BRAND] * 3
    assert (read.op, read.ref, read.uri) == ("read", Ref.parse("file://a b.md".replace(" ", "%20")), "file://a%20b.md")
    assert (listed.op, listed.ref, listed.cursor, listed.limit) == ("list", Ref.parse("file://docs"), "c", 7)
    assert (rendered.op, rendered.ref, rendered.values) == ("render", Ref("prompt", ("review",)), {"x": "1"})


@pytest.mark.parametrize("uri, error", [("no address", InvalidParams), ("file://a/../b", Forbidden)])
async def test_an_address_that_is_none_is_refused_by_the_pipeline_so_that_it_is_recorded(
    pipeline: Pipeline, call: Call, uri: str, error: type[OctavoError]
) -> None:
    with pytest.raises(error):
        await ToolContext(call, pipeline).read(uri)
    assert [(asked.uri, type(asked.fault)) for asked in pipeline.calls] == [(uri, error)]


async def test_progress_reaches_the_client_that_waits(pipeline: Pipeline, call: Call, client: Client) -> None:
    await ToolContext(call, pipeline).progress(1, 2, "half")
    assert client.told == [(1, 2, "half")]
    await ToolContext(call._replace(channel=None), pipeline).progress(1)  # nobody waits: nothing happens


async def test_a_long_change_tells_how_far_it_is(call: Call, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_BEAT", 0)

    async def slow(asked: Call) -> None:
        for _ in range(3):
            step("copied")
        while not client.told:
            await asyncio.sleep(0)

    async with asyncio.timeout(5):
        await ToolContext(call, slow).delete("file://folder")
    assert client.told[0] == (3, None, "3 files copied")


async def test_only_a_plugin_marked_for_it_sees_the_wire(pipeline: Pipeline, call: Call, client: Client) -> None:
    assert ToolContext(call, pipeline, protocol=True).wire is client.wire
    with pytest.raises(NoWire, match="`protocol: true`"):
        _ = ToolContext(call, pipeline).wire
    assert not hasattr(ToolContext(call, pipeline), "wire")
    with pytest.raises(NoWire, match="No client waits"):
        _ = ToolContext(call._replace(channel=None), pipeline, protocol=True).wire


async def test_a_tool_asks_the_pipeline_that_its_registry_is_bound_to(pipeline: Pipeline, call: Call) -> None:
    async def handler(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        return str((await ctx.read("file://a.md")).body)

    hints = Hints(read_only=True, destructive=False, idempotent=True, open_world=True)
    tools = ToolRegistry()
    tools.register(Tool(ToolInfo(name="t", description="d", input_schema={"type": "object"}, hints=hints), handler))
    with pytest.raises(OctavoError, match="not bound"):
        await tools.invoke(call)
    tools.bind(pipeline)
    assert (await tools.invoke(call)).content[0].text == "text"
    assert [asked.parent for asked in pipeline.calls] == [call]
