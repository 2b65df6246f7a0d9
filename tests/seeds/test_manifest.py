"""The manifest and the tests hold each other: no requirement without a test, no test of an unknown requirement."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from octavo.core.errors import InternalError
from octavo.transport.mcp.codes import Codes

TESTS = Path(__file__).parents[1]
# How many ids each part of the catalogue has.
CATALOGUE = {"F": 12, "T": 12, "P": 13, "O": 18, "A": 14, "B": 12}
SEED_LINES = {"000": 274, "001": 654, "002": 256, "003": 485, "004": 407}


def _manifest() -> ModuleType:
    name = "octavo_seeds_manifest"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("manifest.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


manifest = _manifest()
TREES = {
    path.relative_to(TESTS).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(TESTS.rglob("*.py"))
}


def _called(function: ast.expr, name: str) -> bool:
    """To write out every call of every test would take seconds."""
    return isinstance(function, ast.Attribute) and name.endswith(function.attr) and ast.unparse(function) == name


def marks(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The ids of every `@pytest.mark.seed(...)`, with their line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node.func, "pytest.mark.seed"):
            for argument in node.args:
                assert isinstance(argument, ast.Constant), f"line {node.lineno}: ids are written out"
                yield node.lineno, str(argument.value)


def functions(tree: ast.AST) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


MARKED = [(f"{path}:{line}", name) for path, tree in TREES.items() for line, name in marks(tree)]


def test_the_manifest_has_every_id_of_the_catalogue() -> None:
    expected = {f"{part}{number}" for part, count in CATALOGUE.items() for number in range(1, count + 1)}
    assert set(manifest.REQUIREMENTS) == expected


def test_every_requirement_says_something() -> None:
    assert [name for name, one in manifest.REQUIREMENTS.items() if len(one.note) < 5 or len(one.note) > 120] == []


def test_what_is_done_or_partial_has_a_test() -> None:
    shown = {name for _, name in MARKED}
    claimed = {name for name, one in manifest.REQUIREMENTS.items() if one.status != "planned"}
    assert sorted(claimed - shown) == [], "no test is marked with these"


def test_no_test_names_an_unknown_id() -> None:
    assert [(place, name) for place, name in MARKED if name not in manifest.REQUIREMENTS] == []


def test_no_test_names_a_planned_id() -> None:
    early = [(place, name) for place, name in MARKED if manifest.REQUIREMENTS[name].status == "planned"]
    assert early == [], "say in tests/seeds/manifest.py what is there now: partial(...)"


def test_every_example_has_a_place_and_stands_once() -> None:
    places = [(example.place, example.what) for example in manifest.EXAMPLES]
    assert [place for place, count in Counter(places).items() if count > 1] == []
    for example in manifest.EXAMPLES:
        found = re.fullmatch(r"(00[0-4]):(\d+)", example.place)
        assert found is not None and 1 <= int(found[2]) <= SEED_LINES[found[1]], example.place
    order = [tuple(map(int, example.place.split(":"))) for example in manifest.EXAMPLES]
    assert order == sorted(order), "in the order of the seeds, so that a gap is seen"


def test_every_seed_has_its_examples() -> None:
    assert {example.place[:3] for example in manifest.EXAMPLES} == set(SEED_LINES)


@pytest.mark.parametrize("example", manifest.EXAMPLES, ids=lambda example: f"{example.place} {example.fate}")
def test_an_example_is_shown_decided_or_planned(example: Any) -> None:
    if example.fate == "shown":
        path, _, function = example.by.partition("::")
        assert path in TREES and function in functions(TREES[path]), f"there is no test {example.by}"
        return
    requirement = manifest.REQUIREMENTS[example.by]
    if example.fate == "planned":
        assert requirement.status != "done", f"{example.by} is done: name the test that shows this example"


@pytest.mark.seed("F8", "A12")
def test_internal_error_has_its_code() -> None:
    for modern in (False, True):
        assert Codes(strict=False).encode(InternalError("Internal error"), modern=modern).code == -32603


def test_a_mark_is_found_wherever_it_stands() -> None:
    text = '@pytest.mark.seed("F1", "F2")\ndef test_x(): ...\nclass T:\n    pytestmark = [pytest.mark.seed("A1")]\n'
    assert [name for _, name in marks(ast.parse(text))] == ["F1", "F2", "A1"]
