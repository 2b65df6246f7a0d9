"""A tool of one's own in a minute, called as an agent would; a source with a test beside it that passes (T10)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run

pytestmark = pytest.mark.seed("T10")

CONFIGURATION = """
sources: {files: {kind: file, roots: [./docs]}}
agents: {agent-brand: {}, agent-other: {}}
tools: {dirs: [./tools]}
policy:
  - {who: agent-brand, may: "*", what: "**"}
  - {who: agent-other, may: [invoke], what: "tool://first_words"}
"""


@pytest.fixture
def office(empty: Path) -> Path:
    (empty / "docs").mkdir()
    (empty / "docs" / "a.md").write_text("one two three", encoding="utf-8")
    (empty / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    return empty


def test_a_new_tool_is_there_and_answers_at_once(run: Run, office: Path) -> None:
    begun = run("new", "tool", "first_words", "--title", "First words of a text")
    assert begun.exit_code == 0 and begun.stdout == f"tool://first_words  {office / 'tools' / 'first_words.py'}\n"
    assert run("check").exit_code == 0
    called = run("tools", "test", "first_words", "uri=file://a.md", "limit=2", "--as", "agent-brand")
    assert (called.exit_code, called.stdout) == (0, '{"result": ["one", "two"]}\n')
    said = json.loads(run("tools", "test", "first_words", "uri=file://a.md", "--as", "agent-brand", "--json").stdout)
    assert said["structuredContent"] == {"result": ["one", "two", "three"]} and said["isError"] is False
    listed = run("tools", "--as", "agent-brand", "--json")
    assert "first_words" in [one["name"] for one in json.loads(listed.stdout)["tools"]]


def test_it_is_called_with_the_rights_of_the_agent_and_its_mistakes_are_told(run: Run, office: Path) -> None:
    run("new", "tool", "first_words")
    for arguments, says in (
        (("uri=file://a.md", "--as", "agent-other"), "Access denied"),
        (("uri=file://a.md",), "Access denied"),
        (("url=file://a.md", "--as", "agent-brand"), "did you mean uri?"),
        (("uri=file://b.md", "--as", "agent-brand"), "not found"),
        (("uri=file://a.md", "limit=many", "--as", "agent-brand"), 'not of type "integer"'),
    ):
        called = run("tools", "test", "first_words", *arguments)
        assert called.exit_code == 1 and says in called.stderr, called.stderr
    assert "Unknown tool" in run("tools", "test", "nope", "--as", "agent-brand").stderr
    assert run("tools", "test", "first_words", "uri").exit_code == 2


def test_what_a_tool_prints_does_not_stand_in_its_answer(run: Run, office: Path) -> None:
    (office / "tools").mkdir()
    (office / "tools" / "loud.py").write_text(
        "from octavo.tools import tool\n\n@tool(read_only=True)\ndef loud(x: str) -> str:\n"
        "    'Prints.'\n    print('noise')\n    return x\n",
        encoding="utf-8",
    )
    called = run("tools", "test", "loud", "x=1", "--as", "agent-brand")
    assert (called.stdout, "noise" in called.stderr) == ("1\n", True)


@pytest.mark.seed("T5")
def test_before_a_function_that_says_nothing_of_itself_is_called_a_human_is_asked(run: Run, office: Path) -> None:
    (office / "tools").mkdir()
    (office / "tools" / "quiet.py").write_text(
        "def quiet() -> str:\n    'Does something.'\n    return 'done'\n", encoding="utf-8"
    )
    called = run("tools", "test", "quiet", "--as", "agent-brand")
    assert called.exit_code == 1 and "Approval" in called.stderr and "done" not in called.stdout
    text = (office / "octavo.yaml").read_text(encoding="utf-8")
    allowed = '  - {who: agent-brand, may: [invoke], what: "tool://quiet", approve: never}\n'
    (office / "octavo.yaml").write_text(text.rstrip() + "\n" + allowed, encoding="utf-8")
    assert run("tools", "test", "quiet", "--as", "agent-brand").stdout == "done\n"


def test_check_tells_what_is_wrong_with_a_tool(run: Run, office: Path) -> None:
    (office / "tools").mkdir()
    (office / "tools" / "wrong.py").write_text("\ndef wrong(x):\n    'No type.'\n", encoding="utf-8")
    checked = run("check")
    assert checked.exit_code == 1
    assert f"{office / 'tools' / 'wrong.py'}:2" in checked.stderr and "no type hint" in checked.stderr


def test_a_tool_is_begun_without_a_configuration_and_never_over_another(run: Run, empty: Path) -> None:
    begun = run("new", "tool", "count")
    assert begun.exit_code == 0 and "tools: {dirs: [./tools]}" in begun.stderr
    again = run("new", "tool", "count")
    assert again.exit_code == 2 and "is there already" in again.stderr
    for name in ("a-b", "class", "_x", "../x", "1a"):
        assert run("new", "tool", name).exit_code == 2


@pytest.mark.slow
def test_a_new_source_passes_the_suite_that_stands_beside_it_and_is_served(run: Run, office: Path) -> None:
    begun = run("new", "source", "help-desk")
    assert begun.exit_code == 0 and "plugins: [{path: ./plugins/help_desk_source.py}]" in begun.stderr
    (office / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "plugins/test_help_desk_source.py"]
    done = subprocess.run(command, cwd=office, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr
    text = (office / "octavo.yaml").read_text(encoding="utf-8")
    text = text.replace("sources: {", "sources: {help-desk: {kind: help-desk}, ")
    (office / "octavo.yaml").write_text(f"{text}plugins: [{{path: ./plugins/help_desk_source.py}}]\n", encoding="utf-8")
    assert "help-desk://hello.md" in run("ls", "--as", "agent-brand").stdout


def test_a_source_is_named_like_a_scheme(run: Run, empty: Path) -> None:
    for name in ("Tickets", "a_b", "../x", "class"):
        assert run("new", "source", name).exit_code == 2
    assert run("new", "sop", "x").exit_code == 2
