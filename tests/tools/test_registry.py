"""The registry: what is taken in, what a call gives back, and `tool://` as a source (seed 001, T1 to T3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, ClassVar

import anyio
import pytest

from octavo.core.arguments import OwnArguments
from octavo.core.errors import Conflict, Forbidden, InternalError, InvalidParams, NotFound, Timeout
from octavo.core.ref import Ref
from octavo.core.tools import Hints, Text, ToolInfo, ToolResult
from octavo.core.values import Call, Principal, Trail
from octavo.testing import SourceSuite
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool, ToolRegistry

pytestmark = pytest.mark.anyio

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
NAMED: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "times": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}


def info(name: str = "greet", **fields: Any) -> ToolInfo:
    return ToolInfo(**{"name": name, "description": "Says hello.", "input_schema": NAMED, "hints": HINTS, **fields})


async def greet(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
    return f"Hello, {arguments['name']}!"


def giving(outcome: Any) -> Any:
    async def handler(ctx: ToolContext, arguments: Mapping[str, Any]) -> Any:
        return outcome

    return handler


def calling(name: str, /, **arguments: Any) -> Call:
    return Call("invoke", Ref("tool", (name,)), Principal("agent-brand"), Trail(), arguments=OwnArguments(arguments))


def registry(*tools: Tool) -> ToolRegistry:
    made = ToolRegistry()
    for tool in tools:
        made.register(tool)
    return made


@pytest.mark.seed("T3")
async def test_a_tool_that_is_registered_can_be_called() -> None:
    result = await registry(Tool(info(), greet)).invoke(calling("greet", name="Brand"))
    assert result == ToolResult(content=(Text("Hello, Brand!"),))


@pytest.mark.seed("T3")
def test_a_second_tool_of_the_same_name_is_refused_and_the_first_stays() -> None:
    tools = registry(Tool(info(description="The first."), greet))
    with pytest.raises(Conflict, match="Tool greet already registered"):
        tools.register(Tool(info(description="The second."), greet))
    known = tools.tool("greet")
    assert known is not None and known.description == "The first."


@pytest.mark.parametrize("name", ["", "a b", "a/b", "한글", "x" * 129, ".", "..", "a\n"])
def test_a_name_that_clients_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(InvalidParams, match="tool name"):
        ToolRegistry().register(Tool(info(name), greet))


@pytest.mark.seed("T1")
def test_a_tool_without_a_description_is_refused() -> None:
    with pytest.raises(InvalidParams, match="description"):
        ToolRegistry().register(Tool(info(description="  "), greet))


@pytest.mark.seed("T1", "T3")
@pytest.mark.parametrize("which", ["input_schema", "output_schema"])
@pytest.mark.parametrize(
    "part",
    [
        {"$ref": "http://127.0.0.1:1/schema.json"},
        {"$ref": "file:///etc/hostname"},
        {"$ref": "other.json"},
        {"$ref": "#/$defs/nowhere"},
        {"type": "strange"},
        {"pattern": "(?=look)around"},
    ],
)
def test_a_schema_that_is_wrong_or_points_outside_itself_is_refused(which: str, part: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"x": part}}
    with pytest.raises(InvalidParams, match="schema for tool greet"):
        ToolRegistry().register(Tool(info(**{which: schema}), greet))
    with pytest.raises(InvalidParams, match='"type": "object"'):
        ToolRegistry().register(Tool(info(**{which: {"type": "string"}}), greet))


@pytest.mark.seed("T1")
def test_a_schema_stands_in_the_definition_as_it_was_written() -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "x-own": [1, {"$defs": {}}]}
    tools = registry(Tool(info(input_schema=schema), greet))
    known = tools.tool("greet")
    assert known is not None and known.input_schema is schema


@pytest.mark.seed("T3")
async def test_an_unknown_tool_is_a_wrong_parameter_that_names_it() -> None:
    with pytest.raises(InvalidParams, match="Unknown tool: nope") as caught:
        await ToolRegistry().invoke(calling("nope"))
    assert caught.value.data == {"toolName": "nope", "hint": "tools/list shows the tools that you may use"}


@pytest.mark.seed("T3")
async def test_wrong_arguments_are_told_with_their_place_and_the_tool_does_not_run() -> None:
    ran: list[object] = []

    async def handler(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        ran.append(arguments)
        return ""

    with pytest.raises(InvalidParams) as caught:
        await registry(Tool(info(), handler)).invoke(calling("greet", times="many", other=1))
    assert str(caught.value).startswith("Invalid parameters for tool greet: ")
    assert caught.value.data["toolName"] == "greet"
    problems: Any = caught.value.data["validationErrors"]
    assert {problem["path"] for problem in problems} == {"", "/times"}
    assert any('"name" is a required property' in problem["message"] for problem in problems)
    assert ran == []


async def test_at_most_twenty_errors_are_told_and_each_is_short() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    with pytest.raises(InvalidParams) as caught:
        await registry(Tool(info(input_schema=schema), greet)).invoke(
            calling("greet", **{f"a{i}": "x" * 5000 for i in range(50)})
        )
    problems: Any = caught.value.data["validationErrors"]
    assert len(problems) == 20
    assert len(json.dumps(problems)) < 10_000


async def test_arguments_of_bottomless_depth_are_refused_before_the_validator_sees_them() -> None:
    """It descends on the native stack, and a client chooses the depth."""
    deep: dict[str, Any] = {}
    for _ in range(200_000):
        deep = {"a": deep}
    tree = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    with pytest.raises(InvalidParams, match="nested deeper"):
        await registry(Tool(info(input_schema=tree), greet)).invoke(calling("greet", a=deep))
    while deep:  # by hand: the collector would descend too
        deep = deep.pop("a")


@pytest.mark.seed("T2")
async def test_a_mapping_becomes_structured_content_with_its_json_as_text() -> None:
    result = await registry(Tool(info(), giving({"답": [1, None]}))).invoke(calling("greet", name="x"))
    assert result == ToolResult(content=(Text('{"답": [1, null]}'),), structured={"답": [1, None]})


async def test_a_raw_result_passes_only_from_a_plugin_that_may_speak_the_protocol() -> None:
    raw = object()
    passing = registry(Tool(info(), giving(raw), protocol=True))
    assert await passing.invoke(calling("greet", name="x")) is raw
    with pytest.raises(InternalError, match="no tool result"):
        await registry(Tool(info(), giving(raw))).invoke(calling("greet", name="x"))


OUT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


async def test_an_answer_that_keeps_its_output_schema_passes() -> None:
    tools = registry(Tool(info(output_schema=OUT), giving({"count": 1})))
    assert (await tools.invoke(calling("greet", name="x"))).structured == {"count": 1}


@pytest.mark.parametrize("outcome", [{"count": "one"}, {}, "only text", ToolResult(content=())])
async def test_an_answer_that_breaks_its_output_schema_is_a_fault_of_ours(outcome: Any) -> None:
    tools = registry(Tool(info(output_schema=OUT), giving(outcome)))
    with pytest.raises(InternalError, match="output schema") as caught:
        await tools.invoke(calling("greet", name="x"))
    assert caught.value.data == {"toolName": "greet"}


async def test_an_error_result_needs_no_structured_content() -> None:
    refused = ToolResult(content=(Text("no"),), is_error=True)
    tools = registry(Tool(info(output_schema=OUT), giving(refused)))
    assert await tools.invoke(calling("greet", name="x")) is refused


async def test_a_tool_that_takes_too_long_is_stopped_and_cleans_up() -> None:
    stopped = asyncio.Event()

    async def handler(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    with anyio.fail_after(30), pytest.raises(Timeout, match=r"did not end within 0\.01 s"):
        await registry(Tool(info(timeout=0.01), handler)).invoke(calling("greet", name="x"))
    assert stopped.is_set()


async def test_a_change_that_a_tool_has_begun_is_awaited_and_the_deadline_holds_again_after_it() -> None:
    changed = list[str]()

    async def pipeline(call: Call) -> None:
        for _ in range(9):
            await asyncio.sleep(0)  # longer than the tool may take
        changed.append(call.op)

    async def changes(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        await ctx.delete("file://a")
        await ctx.delete("file://b")
        if arguments["name"] == "hang":
            await asyncio.Event().wait()
        return "Deleted"

    hints = Hints(read_only=False, destructive=True, idempotent=False, open_world=False)
    tools = registry(Tool(info(timeout=1e-9, hints=hints), changes))
    tools.bind(pipeline)
    with anyio.fail_after(30):
        assert (await tools.invoke(calling("greet", name="x"))).content == (Text("Deleted"),)
        with pytest.raises(Timeout):
            await tools.invoke(calling("greet", name="hang"))
    assert changed == ["delete"] * 4


async def test_a_timeout_of_the_tools_own_is_not_taken_for_the_limit() -> None:
    async def handler(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await registry(Tool(info(), handler)).invoke(calling("greet", name="x"))


def test_a_tool_of_the_hot_lane_runs_without_a_task() -> None:
    coroutine = registry(Tool(info(lane_safe=True), greet)).invoke(calling("greet", name="x"))
    with pytest.raises(StopIteration) as finished:
        coroutine.send(None)
    assert finished.value.value == ToolResult(content=(Text("Hello, x!"),))


async def test_what_a_tool_raises_passes_through() -> None:
    async def handler(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        raise NotFound("Resource not found: file://x", uri="file://x")

    with pytest.raises(NotFound):
        await registry(Tool(info(), handler)).invoke(calling("greet", name="x"))


@pytest.mark.seed("T1")
async def test_a_tool_that_says_it_changes_nothing_cannot() -> None:
    async def handler(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        await ctx.write("file://a.md", "x")
        return "wrote"

    tools, asked = registry(Tool(info(), handler)), list[Call]()

    async def ask(call: Call) -> Any:
        asked.append(call)

    tools.bind(ask)
    with pytest.raises(Forbidden, match="read-only"):
        await tools.invoke(calling("greet", name="x"))
    assert asked == []


@pytest.mark.parametrize("lane_safe", [False, True])
async def test_a_tool_that_wants_to_end_the_process_ends_its_call(lane_safe: bool) -> None:
    async def handler(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit"):
        await registry(Tool(info(lane_safe=lane_safe), handler)).invoke(calling("greet", name="x"))


@pytest.mark.seed("T3")
def test_who_listens_is_told_of_changes_until_it_leaves() -> None:
    tools, told = ToolRegistry(), list[str]()
    leave = tools.on_change(lambda: told.append("changed"))
    tools.register(Tool(info(), greet))
    assert told == ["changed"]
    tools.list_changed()
    assert told == ["changed"] * 2
    leave()
    tools.list_changed()
    assert told == ["changed"] * 2


def test_only_a_tool_that_mirrors_arguments_into_headers_tells_its_schema_unasked() -> None:
    """Trap T3 of the protocol notes: the question comes before anybody is identified."""
    mirrored = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string", "x-mcp-header": "Region"}]}}}
    tools = registry(Tool(info("plain"), greet), Tool(info("mirrored", input_schema=mirrored), greet))
    assert tools.header_schema("mirrored") is mirrored
    assert tools.header_schema("plain") is None
    assert tools.header_schema("nope") is None


NAMES = ("alpha", "file-reader", "z.last", "Upper", "under_score")


def definition(name: str) -> str:
    tools = registry(Tool(info(name), greet))
    return str(tools._contents[name].body)  # pyright: ignore[reportPrivateUsage]


class TestToolsAsASource(SourceSuite):
    """`tool://` keeps the contract of every source, so that one policy covers tools too."""

    TREE: ClassVar[Mapping[str, str]] = {name: definition(name) for name in NAMES}

    @pytest.fixture
    def source(self) -> ToolRegistry:
        return registry(*(Tool(info(name), greet) for name in NAMES))


async def test_the_definition_of_a_tool_can_be_read_as_json() -> None:
    tools = registry(Tool(info(title="Greeting", permissions=("people",)), greet))
    content = await tools.read(Ref("tool", ("greet",)), max_bytes=10_000)
    assert content.entry.mime_type == "application/json"
    assert json.loads(content.body) == {
        "name": "greet",
        "title": "Greeting",
        "description": "Says hello.",
        "inputSchema": NAMED,
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        "permissions": ["people"],
    }
