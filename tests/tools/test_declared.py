"""Tools of YAML: typed words for a program or a request, and nothing that a value could break out of (T7, T10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from octavo.core.arguments import OwnArguments
from octavo.core.errors import InternalError, InvalidParams, OctavoError, SourceUnavailable, Timeout, TooLarge
from octavo.core.ref import Ref
from octavo.core.tools import Text, ToolResult
from octavo.core.values import Call, Principal, Trail
from octavo.tools.context import ToolContext
from octavo.tools.declarations import Outside, ProgramOrder, declared
from octavo.tools.registry import ToolRegistry

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T10", "T7")]

COUNT = """
name: count_lines
description: Counts lines that hold a word.
arguments:
  word: {type: string, description: What to look for, minLength: 1}
  files: {type: array, items: {type: string}}
  most: {type: integer, default: 5, minimum: 1}
  label: {type: string}
optional: [label]
command: [grep, -c, "--max-count={most}", "--label={label}", -e, "{word}", "{files}"]
stdin: "{word}\\n"
read_only: true
"""
ISSUE = """
name: file_issue
description: Files an issue.
arguments:
  project: {type: string}
  title: {type: string}
  count: {type: integer}
http:
  method: POST
  url: https://tracker.example/projects/{project}/issues?v=2
  query: {dry: "{count}"}
  headers: {X-Title: "{title}"}
  json: {title: "[{project}] {title}", count: "{count}", fixed: [1, "{title}"]}
"""
HOSTILE = [
    "; rm -rf /", "$(id)", "`id`", "a b", "a\nb", "'\"", "*", "../../etc/passwd", "--output=x", "-rf", "한글", "%2e%2e",
    "{word}", "&& id", "| id", "> /tmp/x", "\t", "a\\b", "?x=1", "#f", "@host", "//evil.example", "a&b=c",
]  # fmt: skip


class Ran(NamedTuple):
    exit: int | None = 0
    output: bytes = b"7\n"
    errors: bytes = b""
    because: str = ""


class Replied(NamedTuple):
    status: int = 200
    body: bytes = b"filed"


class There:
    """The outside, as it was asked."""

    def __init__(self, ran: Ran | None = None, replied: Replied | None = None) -> None:
        self.ran, self.replied = ran or Ran(), replied or Replied()
        self.started: list[tuple[str, list[str], bytes]] = []
        self.sent: list[tuple[str, str, dict[str, str], bytes]] = []
        self.outside = Outside(self.run, frozenset({"grep"}), self.fetch)

    async def run(self, ctx: ToolContext, order: ProgramOrder) -> Ran:
        words, stdin = order.filled([f"./{path}" for path in order.paths])
        self.started.append((order.program, [*words], stdin))
        return self.ran

    async def fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Replied:
        self.sent.append((method, url, dict(headers), body))
        return self.replied

    async def call(self, text: str, **arguments: Any) -> ToolResult:
        registry, tool = ToolRegistry(), declared(text, self.outside)
        registry.register(tool)
        asked = Call(
            "invoke", Ref("tool", (tool.info.name,)), Principal("x"), Trail(), arguments=OwnArguments(arguments)
        )
        result: ToolResult = await registry.invoke(asked)
        return result


async def test_a_command_gets_its_words_one_for_each_value() -> None:
    there = There()
    result = await there.call(COUNT, word="a b", files=["x.md", "y z.md"])
    assert result.content == (Text("7\n"),)
    assert there.started == [("grep", ["-c", "--max-count=5", "-e", "a b", "x.md", "y z.md"], b"a b\n")]


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_a_hostile_value_stays_one_word_or_is_refused(hostile: str) -> None:
    there = There()
    try:
        await there.call(COUNT, word=hostile, files=[hostile], label=hostile)
    except InvalidParams as refused:
        assert hostile.startswith("-") and "option" in str(refused)
        assert there.started == []
    else:
        words = ["-c", "--max-count=5", f"--label={hostile}", "-e", hostile, hostile]
        assert there.started == [("grep", words, f"{hostile}\n".encode())]


async def test_after_two_dashes_everything_is_a_value() -> None:
    there = There()
    await there.call(COUNT.replace('"{word}", "{files}"', '"--", "{word}", "{files}"'), word="-x", files=["-y"])
    assert there.started[0][1][-2:] == ["-x", "-y"]


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_a_hostile_value_never_leaves_its_place_in_a_request(hostile: str) -> None:
    there = There()
    try:
        await there.call(ISSUE, project=hostile, title=hostile, count=3)
    except InvalidParams as refused:
        assert ("line end" in str(refused) and "\n" in hostile) or ("path of a URL" in str(refused) and ".." in hostile)
        return
    ((method, url, headers, body),) = there.sent
    assert (
        method == "POST" and url.startswith("https://tracker.example/projects/") and url.endswith("/issues?v=2&dry=3")
    )
    inside = url.removeprefix("https://tracker.example/projects/").removesuffix("/issues?v=2&dry=3")
    assert not set(inside) & set("/?#&@ \n")
    assert json.loads(body) == {"title": f"[{hostile}] {hostile}", "count": 3, "fixed": [1, hostile]}
    assert headers == {"X-Title": hostile, "Content-Type": "application/json"}


@pytest.mark.parametrize("step", ["..", ".", "", "../admin", "a/../../admin", "..\\admin", "a/.."])
async def test_a_step_in_a_url_is_refused(step: str) -> None:
    there = There()
    with pytest.raises(InvalidParams, match="path of a URL"):
        await there.call(ISSUE, project=step, title="x", count=1)
    assert there.sent == []


@pytest.mark.parametrize("text", [COUNT, ISSUE])
async def test_half_a_character_is_refused_before_anything_starts(text: str) -> None:
    there, half = There(), "\ud800"
    words = {"word": half, "files": []} if text is COUNT else {"project": "a", "title": half, "count": 1}
    with pytest.raises(InvalidParams, match="UTF-8"):
        await there.call(text, **words)
    assert there.started == there.sent == []


async def test_wrong_types_are_refused_before_anything_starts() -> None:
    there = There()
    for arguments in ({"word": "a"}, {"word": 1, "files": []}, {"word": "a", "files": [], "most": 0}, {"wrd": "a"}):
        with pytest.raises(InvalidParams, match="Invalid parameters for tool count_lines"):
            await there.call(COUNT, **arguments)
    assert there.started == []


@pytest.mark.seed("T3")
async def test_a_service_that_fails_is_told_with_its_code() -> None:
    """Seed 001, 4.2: externalErrorCode."""
    with pytest.raises(InternalError, match="answered with 500") as caught:
        await There(replied=Replied(500, b"secret trace")).call(ISSUE, project="a", title="b", count=1)
    assert caught.value.data == {"toolName": "file_issue", "externalErrorCode": 500}


async def test_a_program_that_fails_says_why_and_one_past_its_limits_says_which() -> None:
    failed = await There(Ran(2, b"", b"no such file")).call(COUNT, word="a", files=[])
    assert failed.is_error and failed.content == (Text("grep ended with 2\nno such file"),)
    fine = await There(Ran(1, b"0\n", b"")).call(f"{COUNT}success: [0, 1]\n", word="a", files=[])
    assert not fine.is_error and fine.content == (Text("0\n"),)
    for because, kind in (("time", Timeout), ("output", TooLarge)):
        with pytest.raises(kind):
            await There(Ran(None, b"", b"", because)).call(COUNT, word="a", files=[])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: [", "is no YAML"),
        ("- a", "Expected object"),
        ("name: a\ndescription: b", "exactly one of command and http"),
        (COUNT.replace("read_only", "readonly"), "readonly"),
        (f"{ISSUE}success: [0, 1]\n", "which belong to a command"),
        (COUNT.replace("{most}", "{mots}"), "uses {mots}"),
        (COUNT.replace('"--max-count={most}", ', ""), "does not use it"),
        (COUNT.replace("-c,", "'-{c',"), "lone {"),
        (COUNT.replace("[grep", '["{word}"'), "choose the program"),
        (COUNT.replace("[grep", "[sh"), "does not list"),
        (COUNT.replace("type: integer", "type: object"), "needs a type"),
        (ISSUE.replace("https://tracker.example", "https://{project}.example"), "choose the host"),
        (ISSUE.replace("https://tracker.example", "https://me:pw@tracker.example"), "names a user"),
        (ISSUE.replace("https://", "file://"), "https://"),
        (ISSUE.replace("?v=2", "?v={count}"), "under query:"),
        (ISSUE.replace("POST", "TRACE"), "TRACE"),
        (COUNT.replace("minLength: 1", "pattern: '(?=x)'"), "schema for tool count_lines"),
        (COUNT + "timeout: 0\n", "timeout"),
        (COUNT.replace('"--label={label}"', '--label, "{label}"'), "write --label={label}"),
        (COUNT.replace('"--label={label}"', '"--{label}"'), "choose an option"),
        (COUNT + "paths: [file]\n", "file under paths, which is not under arguments"),
        (COUNT + "paths: [most]\n", "most is under paths, so its type is string"),
        (ISSUE + "paths: [title]\n", "belong to a command"),
        (ISSUE + "folder: docs\n", "belong to a command"),
    ],
)
def test_a_declaration_that_cannot_be_right_is_refused_with_the_remedy(text: str, says: str) -> None:
    with pytest.raises(OctavoError, match=says.replace("{", r"\{")) as caught:
        ToolRegistry().register(declared(text, There().outside))
    assert isinstance(caught.value, InvalidParams | SourceUnavailable)


def test_hints_are_the_worst_unless_the_file_says_otherwise() -> None:
    there = There()
    counting = declared(COUNT, there.outside).info.hints
    assert counting.read_only and not counting.destructive and counting.open_world
    filing = declared(ISSUE, there.outside).info.hints
    assert not filing.read_only and filing.destructive
    asking = declared(ISSUE.replace("POST", "GET").replace("  json:", "  #"), there.outside).info.hints
    assert asking.read_only and not asking.destructive


@pytest.mark.seed("T5")
def test_before_a_command_and_a_request_that_changes_something_a_human_is_asked() -> None:
    there = There()
    assert declared(COUNT, there.outside).info.asks == "a command"
    assert declared(ISSUE, there.outside).info.asks == "a POST request"
    assert declared(ISSUE.replace("POST", "GET").replace("  json:", "  #"), there.outside).info.asks == ""


def test_without_an_outside_there_is_nothing_to_declare() -> None:
    for text in (COUNT, ISSUE):
        with pytest.raises(SourceUnavailable, match="configuration"):
            declared(text, Outside())
