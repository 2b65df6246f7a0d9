"""Every fenced example holds: configurations load, commands parse, Python runs, links lead somewhere."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from octavo.app.configuration import load_text
from octavo.config.model import Config
from octavo.config.table import load_table
from octavo.prompts.loader import load as load_prompts
from octavo.tools.declarations import Outside, declared
from octavo.tools.plugins import load_plugin
from octavo.tools.schema import compile_schema

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


class AnyVariable(dict[str, str]):
    """An environment in which every variable is set, each to a value of its own."""

    def get(self, name: str, default: Any = None) -> Any:
        return f"value-of-{name}-long-enough"


def configurations(book: Any) -> list[Any]:
    """The examples that are whole configurations."""
    found = []
    for example in book.examples("yaml"):
        data = YAML(typ="safe", pure=True).load(example.body)
        if isinstance(data, dict) and "sources" in data:
            assert set(data) <= set(Config.model_fields), example.place
            found.append((example, data))
    return found


def furnish(folder: Path, data: Mapping[str, Any]) -> None:
    """Makes the folders and files that an example speaks of."""
    for source in data["sources"].values():
        for root in source.get("roots", ()):
            (folder / (root if isinstance(root, str) else root["path"])).mkdir(parents=True, exist_ok=True)
            if "history" in source:
                (folder / root / ".git/objects").mkdir(parents=True)
                (folder / root / ".git/HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        if source["kind"] == "git":
            (folder / source["path"]).mkdir(parents=True, exist_ok=True)
    for plugin in data.get("plugins", ()):
        file = folder / plugin["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("def register(octavo): ...\n", encoding="utf-8")
    for directory in (*data.get("prompts", {}).get("dirs", ()), *data.get("tools", {}).get("dirs", ())):
        (folder / directory).mkdir(parents=True, exist_ok=True)
    if checkpoints := data.get("audit", {}).get("checkpoints"):
        (folder / checkpoints["path"]).parent.mkdir(exist_ok=True)


def test_configurations_load_without_a_warning(book: Any, tmp_path: Path) -> None:
    examples = configurations(book)
    assert len(examples) >= 8
    for number, (example, data) in enumerate(examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        furnish(folder, data)
        loaded = load_text(example.body, file=folder / "octavo.yaml", environ=AnyVariable())
        assert loaded.warnings == (), example.place


def test_every_yaml_example_is_a_configuration_or_a_table_of_decisions(book: Any, tmp_path: Path) -> None:
    known = {example.place for example, _ in configurations(book)}
    for example in (one for one in book.examples("yaml") if one.place not in known):
        file = tmp_path / "table.yaml"
        file.write_text(example.body, encoding="utf-8")
        assert load_table(file).rows, example.place


def test_declared_tools_load(book: Any) -> None:
    async def nothing(*_: Any) -> Any:
        raise AssertionError("nothing runs here")

    examples = [example for example in book.examples("yml") if "messages:" not in example.body]
    assert examples
    for example in examples:
        tool = declared(example.body, Outside(nothing, frozenset({"grep"}), nothing))
        assert tool.info.description, example.place


def test_prompt_files_load(book: Any, tmp_path: Path) -> None:
    """They are fenced as yml, like tools, which have no messages."""
    found = {example.body: example for example in book.examples("yml") if "messages:" in example.body}
    examples = [*found.values()]  # once, in however many languages a page has it
    assert examples
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.yml").write_text(example.body, encoding="utf-8")
    templates, problems = load_prompts([tmp_path], compile_schema)
    assert (len(templates), problems) == (len(examples), [])


def test_json_and_toml_examples_parse(book: Any) -> None:
    for example in book.examples("json"):
        assert json.loads(example.body), example.place
    for example in book.examples("toml"):
        assert tomllib.loads(example.body), example.place


def lines(book: Any) -> Iterator[tuple[str, str]]:
    """Every line of an example that calls octavo."""
    for example in book.examples("console", "bash"):
        for number, line in enumerate(example.body.splitlines(), 1):
            text = line.removeprefix("$ ")
            if example.language == "console" and not line.startswith("$ "):
                continue  # what the command prints
            if re.match(r"octavo(\s|$)", text):
                yield f"{example.page}:{example.line + number}", text


def inline(book: Any) -> Iterator[tuple[str, str]]:
    """Commands inside sentences: `octavo serve DIR --http`."""
    for page in book.pages:
        for found in re.finditer(r"`(octavo [^`]+)`", book.prose(page)):
            yield page, found[1].partition(" > ")[0]


def parse(command: click.Command, path: str, arguments: list[str], parent: click.Context | None = None) -> None:
    """Raises a ClickException for arguments that the command does not take. Runs nothing."""
    if isinstance(command, click.Group):
        name, below, rest = command.resolve_command(click.Context(command, parent, info_name=path), arguments)
        assert below is not None and name is not None
        parse(below, f"{path} {name}", rest, click.Context(command, parent, info_name=path))
    else:
        command.make_context(path, arguments, parent)


def test_lines_that_call_octavo_parse(book: Any) -> None:
    group = pytest.importorskip("octavo.cli.group").octavo
    found = list(lines(book))
    assert len(found) > 20
    for place, line in found:
        try:
            parse(group, "octavo", shlex.split(line, comments=True)[1:])
        except click.ClickException as error:
            pytest.fail(f"{place}: {line}: {error.format_message()}")


def test_commands_in_sentences_exist(book: Any) -> None:
    group = pytest.importorskip("octavo.cli.group").octavo
    for page, line in inline(book):
        command: click.Command = group
        for word in shlex.split(line)[1:]:
            if not isinstance(command, click.Group):
                break
            assert word in command.commands or word.startswith("-"), f"{page}: {line}"
            command = command.commands.get(word, click.Command("option"))


def test_python_examples_run(book: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a module of its own; a plugin is loaded like any plugin."""
    examples = list(book.examples("python"))
    assert examples
    for number, example in enumerate(examples):
        if "from shelf import" in example.body:
            continue  # test_the_source_of_the_page_passes_the_suite runs it
        file = tmp_path / f"example_{number}.py"
        file.write_text(example.body, encoding="utf-8")
        if "def register(" in example.body:
            plugin = load_plugin(file)
            assert plugin.tools or plugin.prompts or plugin.sources, example.place
        else:
            exec(compile(example.body, example.place, "exec"), {"__name__": f"example_{number}"})


@pytest.mark.slow
def test_the_source_of_the_page_passes_the_suite(book: Any, tmp_path: Path) -> None:
    source, test = [e.body for e in book.examples("python") if e.page == "docs/writing-a-source.md"][:2]
    (tmp_path / "shelf.py").write_text(source, encoding="utf-8")
    (tmp_path / "test_shelf.py").write_text(test, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shelf.py"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def anchors(book: Any, page: str) -> set[str]:
    """As the usual viewers make them from headings."""
    found: set[str] = set()
    for _, text in book.headings(page):
        plain = re.sub(r"[^\w\- ]", "", text.replace("`", "").lower()).replace(" ", "-")
        found.add(plain)
    return found


def test_links_inside_the_repository_lead_somewhere(book: Any, root: Path) -> None:
    broken: list[str] = []
    for page in book.pages:
        for target in LINK.findall(book.prose(page)):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            file = (root / page).parent / path if path else root / page
            name = file.resolve().relative_to(root).as_posix() if file.resolve().is_relative_to(root) else ""
            if not file.exists() or (anchor and anchor not in anchors(book, name)):
                broken.append(f"{page}: {target}")
    assert broken == []


def test_pages_show_no_place_of_a_machine_and_no_registry(book: Any) -> None:
    """Examples must work anywhere: no home folders, no download addresses."""
    suspicious = re.compile(r"/(?:home|Users|root|work)/\w|pypi\.org|registry\.npmjs|index-url", re.IGNORECASE)
    assert [page for page, text in book.pages.items() if suspicious.search(text)] == []
