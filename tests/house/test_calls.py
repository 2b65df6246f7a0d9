"""Calls are made in one place, and what each operation is given is read by its name."""

from __future__ import annotations

import ast
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "octavo"
# The value itself, the builder, and a world for tests of tools that has no limits.
MAKES_CALLS = {"core/values.py", "core/calls.py", "testing/tool_suite.py"}


def test_calls_are_made_in_one_place() -> None:
    making = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Call"
    }
    assert making == MAKES_CALLS


def test_nothing_is_read_out_of_a_call_by_key() -> None:
    reading = [
        f"{path.relative_to(SRC)}:{node.lineno}"
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "arguments"
        and isinstance(node.slice, ast.Constant)
    ]
    assert reading == []
