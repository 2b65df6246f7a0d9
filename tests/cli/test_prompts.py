"""`octavo prompts` and `octavo new prompt`: what an agent would get, without a client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run


@pytest.mark.seed("P6")
def test_prompts_are_listed_and_rendered_as_an_agent_gets_them(run: Run, folder: Path) -> None:
    listed = run("prompts", "list", "--as", "agent-brand")
    assert "summarise  uris [length] [audience] [focus] [lang]\n    요약하기\n" in listed.stdout
    names = [one["name"] for one in json.loads(run("prompts", "list", "--json").stdout)["prompts"]]
    assert {"summarise", "reviewCode", "campaign_brief", "explain_sop"} <= set(names)
    uris = 'uris=["doc://policies/leave"]'
    korean = run("prompts", "render", "summarise", uris, "--as", "agent-brand")
    assert (
        korean.stdout.startswith("[system]\n당신은 문서를 요약합니다.")
        and "--- doc://policies/leave\n" in korean.stdout
    )
    english = run("prompts", "render", "summarise", uris, "length=one-line", "--locale", "en-GB", "--json")
    shape = json.loads(english.stdout)
    assert [one["role"] for one in shape["messages"]] == ["system", "user"]
    assert shape["messages"][1]["content"][0]["text"] == "Summarise the document below.\nOne sentence."


@pytest.mark.seed("P4")
def test_a_refusal_says_why_and_shows_nothing(run: Run, folder: Path) -> None:
    refused = run("prompts", "render", "summarise", 'uris=["sop://hr/grievance"]', "--as", "agent-brand")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "Access denied to resource: sop://hr/grievance" in refused.stderr


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        (("nope",), 1, "Unknown prompt: nope"),
        (("a/b",), 1, "Unknown prompt: a/b"),
        (("summarise",), 1, "uris"),
        (("summarise", "uris"), 2, "KEY=VALUE"),
        (("summarise", "uris=x", "uris=y"), 2, "each once"),
        (("summarise", "--locale", "korean!"), 2, "no language tag"),
        (("summarise", "--as", "nobody"), 2, "there is no agent nobody"),
    ],
)
def test_what_is_wrong_is_said(run: Run, folder: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    result = run("prompts", "render", *arguments)
    assert (result.exit_code, says in result.stderr) == (code, True), result.stderr


@pytest.mark.seed("P6")
def test_a_prompt_that_is_begun_holds_and_is_never_written_over(run: Run, folder: Path) -> None:
    begun = run("new", "prompt", "weekly_report", "--title", '주간 보고: "이번 주" #1')
    file = folder / "handbook/prompts/weekly_report.yaml"
    assert (begun.exit_code, begun.stdout) == (0, f"prompt://weekly_report  {file}\n")
    assert (run("check").exit_code, run("new", "prompt", "weekly_report").exit_code) == (0, 1)
    shown = run("prompts", "render", "weekly_report", "uri=doc://policies/leave", "note=급함", "--locale", "ko")
    assert "할 일을 적습니다. 덧붙임: 급함" in shown.stdout
    for name in ("../x", ".x", "a b", ""):
        assert run("new", "prompt", name).exit_code == 1
    assert run("new", "sop", "brand/x").exit_code == 2, "everything else needs a title"


@pytest.mark.seed("P5")
def test_check_names_the_line_of_a_broken_prompt(run: Run, folder: Path) -> None:
    text = "id: x\ndescription: d\nmessages:\n  - role: user\n    content:\n      - type: text\n        text: |\n"
    file = folder / "handbook/prompts/x.yaml"
    file.write_text(text + "          Fine.\n          {% if nope %}\n          {% endif %}\n", encoding="utf-8")
    result = run("check")
    assert result.exit_code != 0
    assert f"{file}:9" in result.stderr + result.stdout and "{{nope}} is not declared" in result.stderr + result.stdout
