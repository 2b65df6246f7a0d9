"""Errors that say what to do, and nothing that is hidden: `python -m tests.security.wrong_calls` is the long form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.security.wrong_calls import door, house, walk

from octavo.transport.mcp.codes import WireError

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F6", "F8", "T3", "O13", "A12")]


@pytest.mark.parametrize(("kind", "era"), [("stdio", "modern"), ("http", "2025-11-25")])
async def test_every_wrong_call_is_told_what_is_wrong_what_was_expected_and_what_to_do(
    tmp_path: Path, kind: str, era: str
) -> None:
    async with house(tmp_path) as octavo, door(octavo, kind, era) as at:
        seen = await walk(octavo, tmp_path, at, era, most=10)
    assert seen.findings == []
    assert len(seen.asked) > 60 and sum(seen.asked.values()) > 600


async def test_an_answer_that_says_too_little_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(self: WireError, name: str) -> dict[str, Any]:
        return {"code": self.code, "message": "no", "data": {}}

    monkeypatch.setattr(WireError, "of_tool", bare)
    async with house(tmp_path) as octavo, door(octavo, "stdio", "modern") as at:
        seen = await walk(octavo, tmp_path, at, "modern", most=10, methods=False)
    assert {one.why for one in seen.findings} >= {"no reason", "no toolName"}


async def test_a_missing_file_a_folder_and_an_extension_that_is_not_served_are_told_apart(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo, door(octavo, "stdio", "modern") as at:
        uris = ("file://open/none.md", "file://open", "file://open/picture.exe", "file://open/none.exe", "file://board")
        answers = await at.ask([("resources/read", {"uri": uri}) for uri in uris])
    missing, folder, unserved, none, hidden = (one["error"] for one in answers)
    assert missing == {
        "code": -32602,
        "message": "Resource not found: file://open/none.md",
        "data": {"uri": "file://open/none.md"},
    }
    assert folder["data"]["reason"] == "is_folder" and "list it" in folder["message"]
    assert (unserved["code"], unserved["data"]["extension"]) == (-32003, ".exe")
    assert "The extension .exe is not served here; served are .csv, .json, .md, .txt" in unserved["data"]["why"]
    assert none["data"]["why"] == unserved["data"]["why"], "the name alone decides, whether or not there is a file"
    assert hidden["data"]["reason"] == "forbidden", "a folder that may not be listed is a name like any other"


async def test_a_template_is_completed_as_the_seed_writes_it(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo, door(octavo, "stdio", "modern") as at:

        async def completed(uri: str, name: str, value: str, **given: str) -> Any:
            params = {
                "ref": {"type": "ref/resource", "uri": uri},
                "argument": {"name": name, "value": value},
                "context": {"arguments": given},
            }
            (answer,) = await at.ask([("completion/complete", params)])
            return answer

        for template in ("sop://{function}/{name}", "sop://{function}/{name}{?version,view,range}"):
            functions = await completed(template, "function", "br")
            names = await completed(template, "name", "", function="brand")
            assert functions["result"]["completion"]["values"] == ["brand"], template
            assert names["result"]["completion"]["values"] == ["plan"], template
        wrong = (await completed("sop://{function}/{name}", "nmae", ""))["error"]
        assert "did you mean name?" in wrong["message"]
        unknown = await completed("sop://board/{name}", "name", "")
        assert unknown["error"]["data"] == {"reason": "unknown_template"}


async def test_an_unknown_filter_is_told_the_filters_of_all_that_was_listed(tmp_path: Path) -> None:
    """Every namespace that was asked has its own."""
    async with house(tmp_path) as octavo, door(octavo, "stdio", "modern") as at:
        asked = [
            ("tools/call", {"name": "list", "arguments": {"filter": {"functon": "brand"}, **more}})
            for more in ({}, {"depth": 0}, {"sort": "modified"}, {"target": "sop://"}, {"target": "file://"})
        ]
        *everywhere, sops, files = [one["result"]["content"][0]["text"] for one in await at.ask(asked)]
    assert "did you mean function?" in sops and "agent" in sops and "agent" not in files.partition("known are")[2]
    for text in everywhere:
        assert "did you mean function?" in text and sops.partition("known are: ")[2].split(", ")[0] in text


async def test_what_must_be_an_object_is_said_without_words_of_python(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo, door(octavo, "stdio", "modern") as at:
        asked = [
            ("subscriptions/listen", {"notifications": 5}),
            ("completion/complete", {"ref": 5, "argument": 5}),
            ("prompts/get", {"name": "x", "arguments": 5}),
        ]
        for answer in await at.ask(asked):
            problems = answer["error"]["data"]["validationErrors"]
            assert {one["message"] for one in problems} == {"Input should be a valid object"}, problems


async def test_a_word_that_is_none_of_several_is_told_all_of_them(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo, door(octavo, "stdio", "modern") as at:
        arguments = {"target": "file://open/a.md", "content": "x", "mode": "foo"}
        (answer,) = await at.ask([("tools/call", {"name": "write", "arguments": arguments})])
    problems = answer["result"]["_meta"]["dev.octavo/error"]["data"]["validationErrors"]
    expected = '"foo" is not one of "upsert", "create", "overwrite", "append"'
    assert problems == [{"path": "/mode", "message": expected}]


async def test_an_unknown_filter_is_refused_with_the_near_ones(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo, door(octavo, "stdio", "modern") as at:
        asked = [
            ("resources/list", {"filter": {"mimetype": "text/markdown"}}),
            ("resources/list", {"filter": {"under": "sop://", "statsu": "active"}}),
            ("tools/call", {"name": "list", "arguments": {"filter": {"statsu": "active"}, "target": "sop://"}}),
            ("resources/list", {"filter": {"under": "sop://", "status": "deprecated"}}),
            ("tools/call", {"name": "list", "arguments": {"filter": {"status": "active"}, "depth": 0}}),
        ]
        first, second, third, right, everywhere = await at.ask(asked)
    assert (
        first["error"]["data"]["reason"] == "unknown_filter" and "did you mean mimeType?" in first["error"]["message"]
    )
    assert "did you mean status?" in second["error"]["message"]
    assert "did you mean status?" in third["result"]["content"][0]["text"]
    assert right["result"]["resources"] == []
    assert [one["uri"] for one in everywhere["result"]["structuredContent"]["entries"]] == ["sop://brand/plan"]
