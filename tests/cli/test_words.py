"""Sentences for people: one file a language, complete, and each of them said somewhere."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

import click
import pytest

from octavo.cli._words import HELP, catalogue, languages, translated
from octavo.cli.group import octavo

if TYPE_CHECKING:
    from conftest import Run

SOURCE = Path(__file__).parents[2] / "src" / "octavo"
ENGLISH = catalogue("en")
# Rooms whose every sentence is known in every language.
TRANSLATED = (
    "config/checks/whole.py", "config/checks/rules.py", "config/checks/patterns.py", "config/yaml.py",
    "config/units.py", "config/words.py", "sources/catalog/agent_checks.py", "sources/catalog/unserved.py",
    "sources/catalog/links.py", "config/load.py", "config/model.py", "config/sections/http.py",
    "config/sections/web.py", "config/sections/search.py", "config/sections/commands.py",
    "config/sections/conditions.py", "config/reference.py", "config/toml.py", "sources/catalog/options.py",
    "sources/file/options.py", "sources/file/kind.py", "sources/git/options.py", "sources/memory/options.py",
    "prompts/loader.py", "prompts/definition.py", "prompts/jsonc.py", "prompts/world.py", "tools/folder.py",
    "text/frontmatter.py", "text/handwritten.py", "app/listeners.py", "cli/serve.py", "cli/explain.py",
)  # fmt: skip
# Parts of other sentences, and what is said to programs.
PARTS = {
    "{}{}: the same files would have two addresses", "is the same folder as", "lies inside", " and more",
    "there is {}{}", "is not served as a document", "leads nowhere", "a link {}", "{} {}",
    " and {} more", ", {} others",
    "is no YAML: ", "{} {} file{}",
    "serving MCP at {}", "{} is {}", "is no prompt file: those end with ",
    "JSON has no such number", "undefined alias", "another document", "{} {}: the same files would have two addresses",
}  # fmt: skip


def placeholders(text: str) -> list[str]:
    return sorted(name for _, name, *_ in Formatter().parse(text) if name)


def _described(tree: ast.AST) -> Iterator[ast.AST]:
    """What stands in the documentation, in the help, which has a test of its own, and in the log, which is English."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (word.value for word in node.keywords if word.arg in ("description", "help", "short_help"))
            name = ast.unparse(node.func)
            if name == "written":
                yield from node.args[2:]
            elif name.startswith("logger."):
                yield from node.args


def sentences(file: Path) -> Iterator[str]:
    """Every text of a module that has a space in it, with {} for what is filled in; no descriptions, no patterns."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    below = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    below |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    below |= {id(one) for part in _described(tree) for one in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in below:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def test_every_language_has_the_same_sentences_with_the_same_places() -> None:
    assert {"en", "ko"} <= languages()
    for code in languages():
        other = catalogue(code)
        assert list(other) == list(ENGLISH), code
        assert {key: placeholders(text) for key, text in other.items()} == {
            key: placeholders(text) for key, text in ENGLISH.items()
        }, code
        assert all(text.strip() for text in other.values()), code


@pytest.mark.parametrize("name", ["serve", "init", "check", "explain"])
def test_the_help_of_a_command_is_korean(name: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8")
    told = run(name, "--help").stdout
    assert told.startswith(f"사용법: octavo {name} [OPTIONS]") and "\n옵션:\n" in told
    command = octavo.commands[name]
    texts = [command.help or "", *(one.help or "" for one in command.params if isinstance(one, click.Option))]
    for paragraph in (" ".join(one.split()) for text in texts for one in text.split("\n\n")):
        if not paragraph.startswith("For example"):
            assert translated(paragraph, HELP) != paragraph
        assert paragraph not in " ".join(told.split())
    width = max(sum(2 if east_asian_width(one) in "WF" else 1 for one in line) for line in told.splitlines())
    assert width <= 80, told


def test_every_sentence_is_said_and_none_is_missing() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in (SOURCE / "cli").rglob("*.py"))
    asked = set(re.findall(r"""["']((?:say|serve|list|check|explain|init)\.[a-z_]+)["']""", code))
    asked |= {f"progress.{key}" for key in re.findall(r"""progress\("([a-z_]+)"\)""", code)}
    asked |= {f"say.{kind}" for kind in re.findall(r"""\bsay\("([a-z]+)\"""", code)}
    asked = {key for key in asked if not key.startswith("serve.http") and not key.endswith("_")}
    rooms = ("say", "serve", "list", "check", "explain", "init", "progress")
    asked |= set(re.findall(r"""english\(["']([a-z_.]+)["']""", code))
    mine = {key for key in ENGLISH if key.partition(".")[0] in rooms}
    assert sorted(mine - asked) == [] and sorted(asked - mine) == []


def test_what_other_rooms_say_is_said_as_it_is_known_here() -> None:
    said = [text for file in SOURCE.rglob("*.py") if "messages" not in file.parts for text in sentences(file)]
    patterns = [re.compile(re.escape(text).replace(r"\{\}", ".+"), re.DOTALL) for text in set(said) if " " in text]
    plain = "\n".join(said)
    for key, text in ENGLISH.items():
        if key.startswith("problem."):
            filled = text.format(**dict.fromkeys(placeholders(text), "x"))
            behind = filled.partition(": ")[2]  # what stands at a key of a file
            assert any(one.fullmatch(filled) or (behind and one.fullmatch(behind)) for one in patterns) or any(
                part in plain for part in [filled.removesuffix(" x"), filled.removesuffix("x")]
            ), f"{key}: nobody says {text!r}"


@pytest.mark.parametrize("file", TRANSLATED)
def test_every_sentence_of_a_room_is_known_in_korean(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8")
    for text in sentences(SOURCE / file):
        is_one = re.match(r"[a-z{]", text.strip()) and len(text.split()) > 2 and not re.search(r"[\\^]", text)
        if is_one and text not in PARTS:
            filled = text.replace("{}", "x")
            known = [filled, f"x: {filled}"]
            assert any(translated(one) != one for one in known), f"{file}: {text!r} has no translation"


def test_check_and_explain_speak_korean_and_programs_are_told_in_english(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    english = json.loads(run("check", "--json").stdout)
    monkeypatch.setenv("LANG", "ko_KR.UTF-8")
    monkeypatch.delenv("LC_ALL")
    monkeypatch.delenv("LC_MESSAGES", raising=False)
    assert "정책\n  규칙" in run("check").stdout
    assert json.loads(run("check", "--json").stdout) == english
    refused = run("explain", "agent-brand", "read", "sop://hr/salary-policy")
    assert refused.stdout.startswith("agent-brand: sop://hr/salary-policy에 대한 read 거부\n  근거 policy[")
    config = folder / "octavo.yaml"
    config.write_text(
        config.read_text(encoding="utf-8").replace("store: handbook", "stor: handbook", 1), encoding="utf-8"
    )
    told = run("check")
    assert "octavo: 오류: " in told.stderr and "알 수 없는 키입니다 (store을(를) 뜻했습니까?)" in told.stderr
    assert "unknown key" in run("check", "--json").stdout


def test_explain_tells_conditions_and_its_own_reasons_in_korean(
    run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty / "docs").mkdir()
    (empty / "docs" / "a.md").write_text("---\nstatus: draft\n---\n# A\n", encoding="utf-8")
    (empty / "octavo.yaml").write_text(
        "version: 1\nagents: {bot: {}}\n"
        "sources: {all: {kind: file, roots: [.], expose: false}, docs: {kind: doc, store: all, path: docs}}\n"
        "policy:\n  - who: bot\n    may: [list, read]\n    what: doc://*\n"
        "    when: {metadata: {status: [active, final]}, time: {hours: '09:00-18:00', zone: Asia/Seoul}}\n",
        encoding="utf-8",
    )
    asked = ("explain", "bot", "read", "doc://a", "--at", "2026-11-16T10:00+09:00")
    monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8")
    told = run(*asked).stdout.splitlines()
    assert told == [
        "bot: doc://a에 대한 read 거부",
        "  policy[0]: 허용 status: active 또는 final, 시각 09:00-18:00 (Asia/Seoul): 성립하지 않음",
        "  이유: 허용하는 규칙이 없습니다",
    ]
    found = json.loads(run(*asked, "--json").stdout)
    assert found["why"] == "no rule allows it"
    assert [one["condition"] for one in found["conditions"]] == [
        "when status is active or final and the time is 09:00-18:00 (Asia/Seoul)"
    ]


def test_a_language_that_is_not_there_is_english(run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "fr_FR.UTF-8")
    assert run("check").stderr.startswith("octavo: error: there is no octavo.yaml")
