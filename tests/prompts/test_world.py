"""Prompt files that other programs use, taken as they are (P13, P1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from octavo.prompts.loader import PromptProblem, load
from octavo.prompts.template import PromptTemplate, TemplateMessage, TextPart
from octavo.tools.schema import compile_schema
from octavo.transport.mcp import shapes

pytestmark = pytest.mark.seed("P13", "P1")


def loaded(folder: Path, files: dict[str, str]) -> tuple[dict[str, PromptTemplate], list[PromptProblem]]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    templates, problems = load([folder], compile_schema)
    return {one.info.name: one for one in templates}, problems


def said(template: PromptTemplate, **values: Any) -> list[tuple[str, str]]:
    (variant,) = template.variants.values()
    found: list[tuple[str, str]] = []
    for message in variant.messages:
        assert isinstance(message, TemplateMessage)
        (part,) = message.parts
        assert isinstance(part, TextPart)
        found.append((message.role, part.fill(values)))
    return found


def test_a_prompt_in_markdown_keeps_its_name_and_model_and_fills_in_what_it_asks_for(tmp_path: Path) -> None:
    text = (
        "---\nname: Review\ndescription: Reviews a file\nmodel: some-model\ntools: [search, edit]\n---\n"
        "# Review\n\nLook at ${input:file:the path} with {{care}}.\n"
    )
    prompts, problems = loaded(tmp_path, {"review.prompt.md": text})
    info = prompts["review"].info
    assert (problems, info.title, info.description) == ([], "Review", "Reviews a file")
    assert info.metadata == {"name": "Review", "model": "some-model", "tools": ["search", "edit"]}
    assert [(one.name, one.description, one.required) for one in info.arguments] == [
        ("file", "the path", False),
        ("care", None, False),
    ]
    assert shapes.prompt(info)["_meta"]["dev.octavo/metadata"] == info.metadata
    assert said(prompts["review"], file="a.py", care="love") == [("user", "# Review\n\nLook at a.py with love.")]
    assert said(prompts["review"], file="a.py") == [("user", "# Review\n\nLook at a.py with {{care}}.")]


def test_a_slash_command_takes_its_arguments_as_one_text(tmp_path: Path) -> None:
    text = "---\nargument-hint: '[issue number]'\n---\nFix the issue $ARGUMENTS, not $ARGUMENTSX.\n"
    prompts, _ = loaded(tmp_path, {"fix-issue.md": text, "plain.md": "Say hello.\n"})
    (argument,) = prompts["fix-issue"].info.arguments
    assert (argument.name, argument.description, argument.required) == ("arguments", "[issue number]", False)
    assert said(prompts["fix-issue"], arguments="12") == [("user", "Fix the issue 12, not $ARGUMENTSX.")]
    assert said(prompts["fix-issue"]) == [("user", "Fix the issue , not $ARGUMENTSX.")]
    assert prompts["plain"].info.description == "plain"


@pytest.mark.parametrize(
    "hint", ["[issue]", "[issue] [priority]", "[issue, priority]", "<issue> | all", "issue: a number"]
)
def test_a_slip_in_front_matter_costs_neither_the_hint_nor_the_rest(tmp_path: Path, hint: str) -> None:
    text = f"---\nargument-hint: {hint}\ndescription: Fix: an issue\nmodel: m\n---\nFix $ARGUMENTS.\n"
    prompts, _ = loaded(tmp_path, {"fix.md": text})
    info = prompts["fix"].info
    assert (info.description, info.arguments[0].description) == ("Fix: an issue", hint)
    assert info.metadata["model"] == "m" and said(prompts["fix"], arguments="12") == [("user", "Fix 12.")]


def test_a_rule_above_a_prompt_is_a_part_of_it(tmp_path: Path) -> None:
    text = "---\nNote: be brief.\n\nSum it up.\n"
    prompts, _ = loaded(tmp_path, {"sum.md": text})
    assert said(prompts["sum"]) == [("user", text.strip())]


def test_an_agent_is_a_system_text_and_examples_in_it_stay_examples(tmp_path: Path) -> None:
    text = "---\ndescription: An agent\n---\nWrite {{name}} and ${{ secrets.KEY }} and {% raw %} as they are.\n"
    prompts, _ = loaded(tmp_path, {"helper.agent.md": text})
    assert prompts["helper"].info.arguments == ()
    assert said(prompts["helper"]) == [("system", "Write {{name}} and ${{ secrets.KEY }} and {% raw %} as they are.")]


def test_code_in_a_prompt_has_no_variables(tmp_path: Path) -> None:
    text = "Use {{topic}}.\n\n```yaml\nkey: {{value}}\non: ${{ github.event }}\n```\n"
    prompts, _ = loaded(tmp_path, {"p.prompt.md": text})
    assert [one.name for one in prompts["p"].info.arguments] == ["topic"]
    assert "{{value}}" in said(prompts["p"], topic="x")[0][1]


def test_a_list_of_messages_asks_for_all_its_inputs(tmp_path: Path) -> None:
    text = (
        "name: Summariser\ndescription: Shortens\nmodel: m\nmodelParameters: {temperature: 0.5}\nmessages:\n"
        "  - {role: system, content: You shorten.}\n  - role: user\n    content: |\n      Text: {{input}}\n"
        "testData: [{input: x}]\n"
    )
    prompts, problems = loaded(tmp_path, {"summary.prompt.yml": text})
    info = prompts["summary"].info
    assert (problems, info.title) == ([], "Summariser")
    assert info.metadata == {"name": "Summariser", "model": "m", "modelParameters": {"temperature": 0.5}}
    assert [(one.name, one.required) for one in info.arguments] == [("input", True)]
    assert said(prompts["summary"], input="abc") == [("system", "You shorten."), ("user", "Text: abc\n")]


def test_what_is_put_in_is_data_and_never_a_template(tmp_path: Path) -> None:
    prompts, _ = loaded(tmp_path, {"p.prompt.md": "{{a}} {{b}} ${input:c} $ARGUMENTS"})
    values = {"a": "{{b}}", "b": "${input:c}", "c": "$ARGUMENTS", "arguments": "{% if x %}"}
    assert said(prompts["p"], **values) == [("user", "{{b}} ${input:c} $ARGUMENTS {% if x %}")]


def test_what_is_no_prompt_in_a_folder_of_prompts_is_named(tmp_path: Path) -> None:
    files = {
        "README.md": "# About\n",
        "security.md": "Check it.",
        "CLAUDE.md": "x",
        "style.instructions.md": "x",
        "notes.txt": "x",
        "more/a.md": "x",
        "good.md": "x",
    }
    prompts, problems = loaded(tmp_path, files)
    assert [*prompts] == ["good", "security"]
    named = {Path(one.path).name for one in problems}
    assert named == {"README.md", "CLAUDE.md", "style.instructions.md", "notes.txt", "more"}
    assert all(one.remark for one in problems)
    assert "prompts.dirs" in next(one.reason for one in problems if one.path.endswith("more"))


@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        ("a.prompt.md", "---\ndescription: x\n---\n\n", 1, "no text"),
        ("a.prompt.yml", "name: x\n", 1, "messages"),
        ("a.prompt.yml", "messages:\n  - {role: tool, content: x}\n", 2, "role"),
        ("a.prompt.yml", "messages:\n  - {role: user, content: [1]}\n", 2, "content"),
        ("a.prompt.yml", "messages: [\n", 1, "YAML"),
    ],
)
def test_a_broken_one_is_said_with_its_line(tmp_path: Path, name: str, text: str, line: int, reason: str) -> None:
    _, (problem,) = loaded(tmp_path, {name: text})
    assert (problem.line, problem.remark) == (line, False)
    assert reason in problem.reason


def test_front_matter_that_is_no_yaml_costs_a_key_and_not_the_prompt(tmp_path: Path) -> None:
    prompts, problems = loaded(tmp_path, {"p.prompt.md": "---\ndescription: a: b: c\n---\n# Title\n\nDo it.\n"})
    assert problems == []
    assert (prompts["p"].info.title, said(prompts["p"])) == ("Title", [("user", "# Title\n\nDo it.")])


def test_names_in_any_letters_become_ids(tmp_path: Path) -> None:
    prompts, _ = loaded(tmp_path, {"코드 리뷰.prompt.md": "x", "a b&c.md": "y"})
    assert sorted(prompts) == ["a-b-c", "코드-리뷰"]


def test_a_prompt_of_ours_may_have_such_a_name(tmp_path: Path) -> None:
    text = "id: ours\ndescription: d\nmessages:\n  - {role: user, content: [{type: text, text: hi}]}\n"
    prompts, problems = loaded(tmp_path, {"x.prompt.yml": text})
    assert ([*prompts], problems) == (["ours"], [])
