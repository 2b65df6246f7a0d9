"""If it is not documented it does not exist."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import click
import pytest
from pydantic import BaseModel

from octavo.app.configuration import KINDS as REGISTRY
from octavo.config.model import Config
from octavo.config.schema import schema
from octavo.core import errors
from octavo.core.ports.source import ABILITIES
from octavo.core.values import VERBS
from octavo.pipeline.chain import ORDER
from octavo.pipeline.redact.rules.book import rules_for
from octavo.pipeline.redact.rules.personal import GROUPS
from octavo.tools.context import ToolContext

KINDS = {record.name: record.options for record in REGISTRY}


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that stand somewhere in a type."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models(argument)


def keys(model: type[BaseModel]) -> Iterator[str]:
    """Every key below a model, as the file writes it, with the keys above it."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        yield key
        for below in models(field.annotation):
            if below not in KINDS.values():
                yield from (f"{key}.{rest}" for rest in keys(below))


def documented(text: str) -> set[str]:
    """The keys of the tables, without the words that stand for names of the user's choice."""
    found = re.findall(r"^\| `([A-Za-z_.\[\]0-9]+)` \|", text, re.MULTILINE)
    return {re.sub(r"\.(NAME|ID|PATH|VARIABLE)\b", "", key).replace("[]", "") for key in found}


def test_every_configuration_key_has_its_row(book: Any) -> None:
    page = book["docs/configuration.md"]
    top = set(keys(Config)) - {"sources", *(key for key in Config.model_fields if documented_below(key))}
    assert sorted(top - documented(page)) == []
    assert [key for key in Config.model_fields if (2, f"`{key}`") not in book.headings("docs/configuration.md")] == []


def documented_below(key: str) -> bool:
    """Sections whose own row is their heading."""
    return any(True for _ in models(Config.model_fields[key].annotation))


@pytest.mark.parametrize("kind", KINDS)
def test_every_option_of_a_source_has_its_row(kind: str, book: Any) -> None:
    page = book["docs/configuration.md"]
    section = page.partition(f"### `kind: {kind}`")[2].partition("\n##")[0]
    assert section, f"kind {kind} has no heading"
    assert sorted({f"sources.{key}" for key in keys(KINDS[kind])} - documented(section)) == []


def test_the_schema_has_all_kinds() -> None:
    entry = schema(REGISTRY)["properties"]["sources"]["additionalProperties"]
    assert set(entry["discriminator"]["mapping"]) == set(KINDS) == set(REGISTRY.names)


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_has_a_page_with_the_same_headings(kind: str, book: Any) -> None:
    page = kind if kind in ("file", "git", "memory") else "catalog"
    headings = [text for level, text in book.headings(f"docs/sources/{page}.md") if level == 2]
    assert headings == ["Install", "Credentials", "Options", "Limits", "Events"]


def test_every_fold_has_its_heading(book: Any) -> None:
    folds = [text.lower() for level, text in book.headings("docs/architecture.md") if level == 3]
    assert tuple(folds) == ORDER


def test_every_room_has_its_row(book: Any, root: Path) -> None:
    rooms = [path for path in (root / "src" / "octavo").iterdir() if (path / "__init__.py").is_file()]
    assert [room.name for room in rooms if f"| `{room.name}` |" not in book["docs/architecture.md"]] == []


@pytest.mark.parametrize("kind", errors.ALL)
def test_every_error_has_its_heading_and_its_row(kind: type[errors.OctavoError], book: Any) -> None:
    page = book["docs/errors.md"]
    assert (2, kind.__name__) in book.headings("docs/errors.md")
    assert re.search(rf"^\| \[`{kind.__name__}`\].*`{kind.reason}`", page, re.MULTILINE)


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from commands(f"{path} {name}", below)


def test_every_command_and_option_is_described(book: Any) -> None:
    group = pytest.importorskip("octavo.cli.group").octavo
    page = book["docs/cli.md"]
    headings = book.headings("docs/cli.md")
    for path, command in commands("octavo", group):
        assert (2, f"`{path}`") in headings, path
        section = page.partition(f"## `{path}`\n")[2].partition("\n## ")[0]
        options = [name for one in command.params if isinstance(one, click.Option) for name in one.opts]
        assert [name for name in options if name not in section] == [], path


def test_every_make_target_has_its_row(book: Any, root: Path) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[0].split()
    assert [target for target in targets if f"| `make {target}` |" not in book["CONTRIBUTING.md"]] == []


def test_every_verb_ability_rule_and_member_is_named(book: Any) -> None:
    assert [verb for verb in VERBS if f"| `{verb}` |" not in book["docs/policy.md"]] == []
    page = book["docs/writing-a-source.md"]
    assert [ability for ability in ABILITIES.values() if f"`{ability.__name__}`" not in page] == []
    assert [rule.name for rule in rules_for(GROUPS) if f"`{rule.name}`" not in book["docs/redaction.md"]] == []
    members = [name for name in vars(ToolContext) if not name.startswith("_") and name != "call"]
    assert [name for name in members if not re.search(rf"`{name}[`(]", book["docs/plugins.md"])] == []


def test_every_row_of_what_a_number_gives_names_its_test(book: Any, root: Path) -> None:
    head = "| what happens | what a number from before gives | shown by |\n|---|---|---|\n"
    rows = book["docs/subscriptions.md"].partition(head)[2].partition("\n\n")[0].splitlines()
    shown = {found[1] for row in rows if (found := re.search(r"\| `(test_\w+)` \|$", row))}
    code = (root / "tests/app/test_durable_feed.py").read_text(encoding="utf-8")
    assert len(shown) == len(rows) > 0
    assert shown <= {*re.findall(r"^async def (test_\w+)\(", code, re.MULTILINE)}


def test_every_page_is_reached_from_the_readme(book: Any) -> None:
    seen, waiting = set[str](), ["README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            here = Path(page).parent
            links = re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", book.pages.get(page, ""))
            waiting += [Path(*_normal((here / link).parts)).as_posix() for link in links]
    assert sorted(set(book.pages) - seen - {"README.ko.md"}) == []


def _normal(parts: tuple[str, ...]) -> list[str]:
    kept: list[str] = []
    for part in parts:
        if part == "..":
            kept.pop()
        else:
            kept.append(part)
    return kept


def test_generated_parts_are_up_to_date(generate: ModuleType, root: Path) -> None:
    stale = [path.relative_to(root).as_posix() for path in generate.stale()]
    assert stale == [], "run: python docs/generate.py"


def test_every_generated_part_stands_somewhere(generate: ModuleType, book: Any) -> None:
    text = "\n".join(book.pages.values())
    assert [name for name in generate.PARTS if f"<!-- generated: {name} -->" not in text] == []


def test_both_readmes_have_the_same_headings_in_the_same_order(book: Any) -> None:
    english, korean = book.headings("README.md"), book.headings("README.ko.md")
    assert [level for level, _ in english] == [level for level, _ in korean]
    links = re.findall(r"\]\(([^)]+)\)", book["README.md"])[1:]
    theirs = [f"docs/ko/{one[5:]}" if f"docs/ko/{one.removeprefix('docs/')}" in book.pages else one for one in links]
    assert theirs == re.findall(r"\]\(([^)]+)\)", book["README.ko.md"])[1:], "Korean pages where there are some"


def test_the_korean_readme_marks_the_pages_that_are_in_english(book: Any) -> None:
    table = book["README.ko.md"].partition("\n## 문서\n")[2].partition("\n[변경")[0]
    for page, mark in re.findall(r"\]\(([^)]+)\)( \(영어\))?", table):
        assert bool(mark) != page.startswith("docs/ko/"), page


def test_both_readmes_have_the_same_examples(book: Any) -> None:
    def said(page: str) -> list[list[str]]:
        bodies = [one.body for one in book.examples("bash", "console", "json", "toml") if one.page == page]
        commands = [[line.partition("#")[0].rstrip() for line in body.splitlines()] for body in bodies]
        return [[line for line in lines if not line.startswith("octavo: error")] for lines in commands]

    assert said("README.md") == said("README.ko.md")


def test_the_changes_have_a_section_for_this_version(book: Any, root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [text for level, text in book.headings("CHANGELOG.md") if level == 2]
    assert versions[0] == project["version"]
    section = book["CHANGELOG.md"].partition(f"## {project['version']}")[2]
    assert re.search(r"^### (Added|Changed|Fixed|Security)$", section, re.MULTILINE)


def test_decisions_are_numbered_short_and_say_their_cost(book: Any) -> None:
    records = sorted(page for page in book.pages if re.match(r"docs/decisions/\d{4}-", page))
    numbers = [int(Path(page).name[:4]) for page in records]
    assert numbers == sorted(set(numbers))
    assert re.findall(r"^\| (\d+) \| \[", book["docs/decisions/README.md"], re.MULTILINE) == [*map(str, numbers)]
    for page in records:
        text = book[page]
        assert re.match(rf"# {int(Path(page).name[:4])}\. ", text), page
        assert all(f"**{part}.**" in text for part in ("Question", "Choice", "Cost")), page
        assert len(text.split()) < 400, f"{page} is longer than a page"


def test_every_korean_page_is_that_of_an_english_one(book: Any) -> None:
    """The same headings, links, examples, tables and points in the same order: who changes one sees the other."""

    def shape(page: str) -> tuple[object, ...]:
        prose = re.sub(r"`[^`]*`", "", book.prose(page))
        links = [_target(page, link) for link in re.findall(r"\]\(([^)]+)\)", prose)]
        fences = book.examples("console", "bash", "json", "yaml", "yml", "toml", "text")
        printed = "".join(re.findall(r"<!-- generated: (?s:.*?)<!-- end of ", book[page]))  # in the page's language
        examples = [(one.language, one.body) for one in fences if one.page == page and one.body not in printed]
        tables = [line.count("|") for line in prose.splitlines() if line.startswith("|")]
        points = sum(line.startswith("- ") for line in prose.splitlines())
        return [level for level, _ in book.headings(page)], links[1:], examples, tables, points

    korean = [page for page in book.pages if page.startswith("docs/ko/")]
    assert korean
    for page in korean:
        assert shape(page) == shape(page.replace("docs/ko/", "docs/")), page


def _target(page: str, link: str) -> str:
    """Where a link of a page leads, as its English one would say it. Headings have other names."""
    if ":" in link:
        return link
    path, hash_, _ = link.partition("#")
    file = Path(*_normal((Path(page).parent / path).parts)).as_posix() if path else page
    return file.replace("docs/ko/", "docs/") + hash_
