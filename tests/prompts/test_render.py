"""Rendering: arguments are checked, values are data, and resources are read as the caller (P2 to P4, P11)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from octavo.core.arguments import CompleteArguments, OwnArguments
from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.ref import Ref
from octavo.core.tools import Embedded, Link, PromptArgument, PromptInfo, PromptMessage, PromptResult, Text
from octavo.core.values import Call, Content, Entry, Page, Principal, Trail
from octavo.prompts.registry import PromptRegistry
from octavo.testing import SourceSuite
from octavo.tools.schema import compile_schema

pytestmark = pytest.mark.anyio

BRAND = Principal("agent-brand")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "format": {"type": "string", "enum": ["markdown", "jsdoc", "Man"], "default": "markdown"},
        "count": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "draft": {"type": "boolean"},
        "files": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object"},
        "either": {"type": ["integer", "null"]},
    },
    "required": ["title"],
}


class Pipeline:
    """A few resources, some of which the caller may not have."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def __call__(self, call: Call) -> Any:
        self.calls.append(call)
        if call.fault is not None:
            raise call.fault
        entry = Entry(ref=call.ref, name=call.ref.name)
        if call.op == "stat":
            return entry
        match call.ref.name:
            case "secret":
                raise Forbidden("Access denied", uri=call.uri)
            case "missing":
                raise NotFound("Resource not found", uri=call.uri)
            case "large":
                raise TooLarge("too large", uri=call.uri)
            case name:
                return Content(entry=entry, body=f"the text of {name}")


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline()


def part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def resource(uri: str) -> dict[str, Any]:
    return {"type": "resource", "uri": uri}


class Prompts:
    """A registry with one prompt `p`, made of a file with these parts."""

    def __init__(self, folder: Path, pipeline: Pipeline, *parts: dict[str, Any]) -> None:
        self.registry = PromptRegistry(compile_schema)
        self.registry.bind(pipeline)
        body = {
            "id": "p",
            "description": "A prompt.",
            "inputSchema": SCHEMA,
            "messages": [{"role": "user", "content": list(parts)}],
        }
        (folder / "p.json").write_text(json.dumps(body), encoding="utf-8")
        assert self.registry.load([folder]) == []

    async def render(self, **arguments: Any) -> Any:
        return await self.registry.render(
            Call("render", Ref("prompt", ("p",)), BRAND, Trail(), arguments=OwnArguments(arguments))
        )

    async def complete(self, argument: str, prefix: str = "", **given: str) -> list[str]:
        asked = {"argument": argument, "prefix": prefix, "given": given}
        call = Call("complete", Ref("prompt", ("p",)), BRAND, Trail(), arguments=CompleteArguments(**asked))
        return list(await self.registry.complete_argument(call))

    async def text(self, **arguments: Any) -> str:
        (message,) = (await self.render(**arguments)).messages
        return str(message.content.text)


@pytest.mark.seed("P2", "P3")
async def test_variables_are_filled_with_arguments_and_defaults(tmp_path: Path, pipeline: Pipeline) -> None:
    prompts = Prompts(tmp_path, pipeline, part("{{title}} / {{ format }} / [{{count}}]"))
    assert await prompts.text(title="T") == "T / markdown / []"
    assert await prompts.text(title="T", format="jsdoc", count="3") == "T / jsdoc / [3]"


@pytest.mark.seed("P3")
async def test_a_value_that_looks_like_a_template_stays_data(tmp_path: Path, pipeline: Pipeline) -> None:
    prompts = Prompts(tmp_path, pipeline, part("{{title}}{{format}}"))
    assert await prompts.text(title="{{format}} \\1 {{{{") == "{{format}} \\1 {{{{markdown"


@pytest.mark.seed("P2")
async def test_text_of_the_wire_becomes_the_value_that_the_schema_wants(tmp_path: Path, pipeline: Pipeline) -> None:
    seen: list[Mapping[str, Any]] = []

    async def rendering(call: Call, ask: Any) -> PromptResult:
        seen.append(call.values)
        return PromptResult(messages=())

    registry = PromptRegistry(compile_schema)
    registry.register(PromptInfo(name="p", description="d", input_schema=SCHEMA), rendering)
    given = {
        "title": "7",
        "count": " 3 ",
        "ratio": "2.5",
        "draft": "true",
        "files": '["a", "b"]',
        "options": '{"x": {"y": [1]}}',
        "either": "null",
    }
    await registry.render(Call("render", Ref("prompt", ("p",)), BRAND, Trail(), arguments=OwnArguments(given)))
    assert seen == [
        {
            "title": "7",
            "format": "markdown",
            "count": 3,
            "ratio": 2.5,
            "draft": True,
            "files": ["a", "b"],
            "options": {"x": {"y": [1]}},
            "either": None,
        }
    ]


@pytest.mark.seed("P2")
@pytest.mark.parametrize(
    "arguments, where",
    [
        ({}, ""),
        ({"title": "T", "format": "html"}, "/format"),
        ({"title": "T", "count": "three"}, "/count"),
        ({"title": "T", "count": "0"}, "/count"),
        ({"title": "T", "count": "1.5"}, "/count"),
        ({"title": "T", "count": "9" * 5000}, "/count"),
        ({"title": "T", "ratio": "NaN"}, "/ratio"),
        ({"title": "T", "draft": "yes"}, "/draft"),
        ({"title": "T", "files": "a.md"}, "/files"),
        ({"title": "T", "files": "[" * 100_000}, "/files"),
        ({"title": "T", "files": "[1]"}, "/files/0"),
        ({"title": "T", "files": '["\\ud800"]'}, "/files"),
        ({"title": "T", "options": '{"x": 1e999}'}, "/options"),
        ({"title": "T", "options": "[]"}, "/options"),
        ({"title": "T", "colour": "red"}, "/colour"),
    ],
)
async def test_wrong_arguments_are_refused_before_anything_is_read(
    tmp_path: Path, pipeline: Pipeline, arguments: dict[str, str], where: str
) -> None:
    prompts = Prompts(tmp_path, pipeline, resource("file://a.md"))
    with pytest.raises(InvalidParams, match="Invalid arguments for prompt p: ") as caught:
        await prompts.render(**arguments)
    problems: Any = caught.value.data["validationErrors"]
    assert [problem["path"] for problem in problems] == [where]
    assert caught.value.data["promptName"] == "p"
    assert len(str(caught.value)) < 500
    assert pipeline.calls == []


@pytest.mark.seed("P4", "P11")
async def test_a_content_array_becomes_one_message_a_block_with_resources_embedded(
    tmp_path: Path, pipeline: Pipeline
) -> None:
    prompts = Prompts(tmp_path, pipeline, part("Look:"), resource("file://{{title}}"))
    result = await prompts.render(title="a.md")
    content = Content(entry=Entry(ref=Ref.parse("file://a.md"), name="a.md"), body="the text of a.md")
    assert result == PromptResult(
        messages=(
            PromptMessage("user", Text("Look:")),
            PromptMessage("user", Embedded(content, "file://a.md")),
        ),
        description="A prompt.",
    )
    (asked,) = pipeline.calls
    assert (asked.op, asked.principal, asked.parent and asked.parent.op) == ("read", BRAND, "render")


@pytest.mark.seed("P4")
@pytest.mark.parametrize(
    "title, error",
    [
        ("file://secret", Forbidden),
        ("file://missing", NotFound),
        ("file://a/../b", Forbidden),
        ("no address", InvalidParams),
    ],
)
async def test_a_prompt_shows_nothing_that_its_caller_may_not_read(
    tmp_path: Path, pipeline: Pipeline, title: str, error: type[OctavoError]
) -> None:
    prompts = Prompts(tmp_path, pipeline, resource("{{title}}"))
    with pytest.raises(error):
        await prompts.render(title=title)
    assert len(pipeline.calls) == 1, "also a refusal of the address is a call, so that it is recorded"


@pytest.mark.seed("P4")
async def test_a_resource_that_is_too_large_becomes_a_link(tmp_path: Path, pipeline: Pipeline) -> None:
    prompts = Prompts(tmp_path, pipeline, resource("{{title}}"))
    (message,) = (await prompts.render(title="file://large")).messages
    assert message.content == Link(Entry(ref=Ref.parse("file://large"), name="large"), "file://large")


@pytest.mark.seed("P4")
async def test_a_list_of_addresses_becomes_several_resources_and_none_becomes_none(
    tmp_path: Path, pipeline: Pipeline
) -> None:
    prompts = Prompts(tmp_path, pipeline, resource("{{files}}"))
    several = await prompts.render(title="T", files='["file://a", "file://b"]')
    assert [message.content.uri for message in several.messages] == ["file://a", "file://b"]
    assert (await prompts.render(title="T")).messages == ()


async def test_a_value_inside_an_address_cannot_leave_its_place(tmp_path: Path, pipeline: Pipeline) -> None:
    prompts = Prompts(tmp_path, pipeline, resource("sop://brand/{{title}}?version=1"))
    await prompts.render(title="a?version=2#x%2F&한글/b")
    assert pipeline.calls[0].ref == Ref("sop", ("brand", "a?version=2#x%2F&한글", "b"), (("version", "1"),))


async def test_an_unknown_prompt_is_a_wrong_parameter_that_names_it() -> None:
    registry = PromptRegistry(compile_schema)
    with pytest.raises(InvalidParams, match="Unknown prompt: nope") as caught:
        await registry.render(Call("render", Ref("prompt", ("nope",)), BRAND, Trail()))
    assert caught.value.data == {"promptName": "nope"}
    with pytest.raises(InvalidParams):
        await registry.complete_argument(Call("complete", Ref("prompt", ("nope",)), BRAND, Trail()))


@pytest.mark.seed("P2")
@pytest.mark.parametrize(
    "argument, prefix, values",
    [
        ("format", "", ["markdown", "jsdoc", "Man"]),
        ("format", "ma", ["markdown", "Man"]),
        ("draft", "t", ["true"]),
        ("title", "", []),
    ],
)
async def test_completion_offers_what_the_schema_knows(
    tmp_path: Path, pipeline: Pipeline, argument: str, prefix: str, values: list[str]
) -> None:
    prompts = Prompts(tmp_path, pipeline, part("x"))
    assert await prompts.complete(argument, prefix) == values


@pytest.mark.seed("P2")
async def test_completion_takes_what_no_address_can_be_and_gives_lists_that_are_json(
    tmp_path: Path, pipeline: Pipeline
) -> None:
    async def ask(call: Call) -> Any:
        ref = Ref("file", ("docs", 'the "plan".md'))
        return Page((Entry(ref=ref, name=ref.name),), None) if call.op == "list" else [Ref("file")]

    prompts = Prompts(tmp_path, pipeline, resource("file://{{title}}/{{format}}"), resource("{{files}}"))
    prompts.registry.bind(ask)
    assert await prompts.complete("title", format='the "plan".md') == ["docs"]
    assert await prompts.complete("title", format="x" * 3_000_000) == []
    assert await prompts.complete("title", format="가" * 20_000) == []
    (found,) = await prompts.complete("files", '["file://docs/t')
    (uri,) = json.loads(found)
    assert Ref.parse(uri).segments == ("docs", 'the "plan".md')


async def test_a_prompt_of_a_plugin_gets_checked_text_and_may_answer_raw() -> None:
    raw = object()

    async def rendering(call: Call, ask: Any) -> Any:
        assert call.values == {"who": "you"}
        return raw

    registry = PromptRegistry(compile_schema)
    arguments = (PromptArgument(name="who", required=True), PromptArgument(name="how"))
    registry.register(PromptInfo(name="p", description="d", arguments=arguments), rendering)
    call = Call("render", Ref("prompt", ("p",)), BRAND, Trail(), arguments=OwnArguments({"who": "you"}))
    assert await registry.render(call) is raw
    for wrong in ({}, {"who": 1}, {"who": "you", "what": "x"}):
        with pytest.raises(InvalidParams):
            await registry.render(call._replace(arguments=OwnArguments(wrong)))
    with pytest.raises(Conflict, match="Prompt p already registered"):
        registry.register(PromptInfo(name="p", description="d"), rendering)


@pytest.mark.seed("P1")
async def test_loading_again_takes_what_is_there_now_and_tells_only_of_changes(
    tmp_path: Path, pipeline: Pipeline
) -> None:
    prompts = Prompts(tmp_path, pipeline, part("one"))
    registry, told = prompts.registry, list[str]()
    registry.on_change(lambda: told.append("changed"))
    registry.load([tmp_path])
    assert told == []
    text = (tmp_path / "p.json").read_text(encoding="utf-8")
    (tmp_path / "p.json").write_text(text.replace("one", "two"), encoding="utf-8")
    registry.load([tmp_path])
    assert told == ["changed"]
    assert await prompts.text(title="T") == "two"
    (tmp_path / "p.json").unlink()
    registry.load([tmp_path])
    assert told == ["changed"] * 2
    assert registry.prompt("p") is None


async def test_a_file_does_not_take_the_name_of_a_plugins_prompt(tmp_path: Path, pipeline: Pipeline) -> None:
    async def rendering(call: Call, ask: Any) -> PromptResult:
        return PromptResult(messages=(PromptMessage("user", Text("the plugin's")),))

    registry = PromptRegistry(compile_schema)
    registry.register(PromptInfo(name="p", description="d"), rendering)
    Prompts(tmp_path, pipeline, part("the file's"))
    (problem,) = registry.load([tmp_path])
    assert problem.reason == "the id 'p' is already that of a plugin's prompt"
    result = await registry.render(Call("render", Ref("prompt", ("p",)), BRAND, Trail()))
    assert result.messages[0].content == Text("the plugin's")


NAMES = ("alpha", "generate_docs", "review-code", "summary", "요약")


def filled() -> PromptRegistry:
    async def rendering(call: Call, ask: Any) -> PromptResult:
        return PromptResult(messages=())

    registry = PromptRegistry(compile_schema)
    for name in NAMES:
        registry.register(PromptInfo(name=name, description="d"), rendering)
    return registry


class TestPromptsAsASource(SourceSuite):
    """`prompt://` keeps the contract of every source, so that one policy covers prompts too (P10)."""

    TREE: ClassVar[Mapping[str, str]] = {
        name: str(filled()._contents[name].body)  # pyright: ignore[reportPrivateUsage]
        for name in NAMES
    }

    @pytest.fixture
    def source(self) -> PromptRegistry:
        return filled()
