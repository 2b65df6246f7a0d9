"""Arguments of every tool of every toolset, spelled as clients spell them: the answer is that to the exact ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.security.wrong_calls import GOOD, door, house

from octavo.app import Octavo
from octavo.core.arguments import OwnArguments
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F6", "T3")]

# What says something else at each call: handles, times, what waits for people.
CHANGES_BY_ITSELF = frozenset(("ask_user", "feedback", "notify", "conversation", "changes", "list_processes"))
BROKEN = ("internal_error", "source_unavailable")


class Sent(NamedTuple):
    tool: str
    exact: Mapping[str, Any]
    spelled: Mapping[str, Any]


def values(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Right ones, of the types that clients spell otherwise."""
    match schema.get("type"):
        case "integer":
            yield max(schema.get("minimum", 1), 1)
        case "number":
            yield min(schema.get("maximum", 1.5), 1.5)
        case "boolean":
            yield from (True, False)
        case "array" if schema.get("items", {}).get("type") == "integer":
            yield [1, 2]
        case _:
            pass


def spellings(value: Any) -> Iterator[Any]:
    match value:
        case bool():
            yield str(value).lower()
        case int():
            yield from (float(value), str(value), f"{value}.0")
        case float():
            yield str(value)
        case _:
            yield from ([float(one) for one in value], [str(one) for one in value])


def for_nothing(schema: Mapping[str, Any]) -> Iterator[Any]:
    """What is sent for an argument that is not given."""
    yield None
    filled = "enum" in schema or schema.get("minLength") or schema.get("minItems")
    if filled or schema.get("type") not in ("string", "array", None):
        yield from ("", [])


def sent(octavo: Octavo) -> Iterator[Sent]:
    tools = octavo.works.tools
    for name in sorted(GOOD):
        info, good = tools.tool(name), GOOD[name]
        assert info is not None
        required = info.input_schema.get("required", ())
        for argument, schema in info.input_schema.get("properties", {}).items():
            for value in values(schema):
                exact = {**good, argument: value}
                yield from (Sent(name, exact, {**good, argument: spelled}) for spelled in spellings(value))
            if argument not in required and argument not in good and schema.keys() & {"type", "enum"}:
                yield from (Sent(name, good, {**good, argument: nothing}) for nothing in for_nothing(schema))


def as_meant(octavo: Octavo, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    call = Call("invoke", Ref.of("tool", (name,)), octavo.works.identity.launched("brand"), Trail())
    return octavo.works.tools.meant(call._replace(arguments=OwnArguments(arguments))).values


def exactly(value: object) -> str:
    return json.dumps(value, sort_keys=True)  # where 2 and 2.0, and 1 and true, are two things


async def test_every_spelling_of_every_argument_of_every_tool_is_what_was_meant(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo:
        assert sorted(GOOD) == sorted({*octavo.works.tools.names, *GOOD} - {"sealed"})
        asked = [*sent(octavo)]
        assert len({one.tool for one in asked}) >= 25 and len(asked) > 200
        for one in asked:
            assert exactly(as_meant(octavo, one.tool, one.spelled)) == exactly(one.exact), one
            assert as_meant(octavo, one.tool, one.exact) is one.exact


@pytest.mark.parametrize(("kind", "era"), [("stdio", "modern"), ("http", "2025-11-25")])
async def test_it_is_answered_as_the_exact_one_is_and_nothing_breaks(tmp_path: Path, kind: str, era: str) -> None:
    async with house(tmp_path) as octavo, door(octavo, kind, era) as at:

        async def ask(name: str, arguments: Mapping[str, Any]) -> Any:
            (answer,) = await at.ask([("tools/call", {"name": name, "arguments": arguments})])
            return answer

        asked = [*sent(octavo)][:: 4 if kind == "stdio" else 9]  # each is asked once in the test above
        reads = [one for one in asked if _only_reads(octavo, one.tool)]
        changes = [one for one in asked if not _only_reads(octavo, one.tool) and one.tool != "http_request"]
        told: dict[str, Any] = {}
        for one in reads:
            known = one.tool + exactly(one.exact)
            if known not in told:
                told[known] = _said(await ask(one.tool, one.exact))
            answer = _said(await ask(one.tool, one.spelled))
            assert answer == told[known] or one.tool in CHANGES_BY_ITSELF, one
        for one in changes:
            answer = await ask(one.tool, one.spelled)
            assert not any(f'"{reason}"' in json.dumps(answer) for reason in BROKEN), (one, answer)


def _only_reads(octavo: Octavo, name: str) -> bool:
    info = octavo.works.tools.tool(name)
    return info is not None and info.hints.read_only


def _said(answer: Any) -> Any:
    result = answer["result"]
    assert not any(f'"{reason}"' in json.dumps(result) for reason in BROKEN), answer
    return {key: result.get(key) for key in ("content", "structuredContent", "isError")}


@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
async def test_what_is_near_and_not_right_is_refused_with_the_tool_and_the_argument(tmp_path: Path, era: str) -> None:
    wrong = {
        "integer": (1.5, "1.5", "0x10", " 5 ", 1e20, float(1 << 53), "9" * 400, True),
        "number": ("many", "1e400", " 1 ", "NaN", True),
        "boolean": ("yes", 1, 0.0, "TRUE"),
    }
    async with house(tmp_path) as octavo, door(octavo, "stdio", era) as at:
        asked = 0
        for name in sorted(GOOD.keys() - {"denied"}):
            info = octavo.works.tools.tool(name)
            assert info is not None
            for argument, schema in info.input_schema.get("properties", {}).items():
                for value in wrong.get(schema.get("type"), ()):
                    params = {"name": name, "arguments": {**GOOD[name], argument: value}}
                    (answer,) = await at.ask([("tools/call", params)])
                    data = json.loads(answer["result"]["content"][0]["text"])["data"]
                    assert answer["result"]["isError"] and data["toolName"] == name, answer
                    assert [one["path"] for one in data["validationErrors"]] == [f"/{argument}"], answer
                    asked += 1
    assert asked > 100


async def test_rules_people_and_the_tool_see_what_was_meant(tmp_path: Path) -> None:
    """An approval of a call is one for the same call in another spelling, and a rule cannot be passed by one."""
    (tmp_path / "work").mkdir()
    async with house(tmp_path) as octavo, door(octavo, "stdio", "modern") as at:
        program = {"program": "say", "args": {"text": "x"}}
        approvals = set[str]()
        for seconds in (2, 2.0, "2", "2.0"):
            params = {"name": "run_command", "arguments": {**program, "seconds": seconds}}
            (answer,) = await at.ask([("tools/call", params)])
            approvals.add(json.loads(answer["result"]["content"][0]["text"])["data"]["approval"])
    assert len(approvals) == 2, "seconds is a number: 2.0 is right as it is, and the other three are 2"
