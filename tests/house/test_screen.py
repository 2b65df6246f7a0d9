"""Whatever a command prints goes through one door, where what a terminal cannot show is escaped."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import octavo

CLI = Path(octavo.__file__).parent / "cli"
DOOR = {"_screen.py": "the door", "_progress.py": "one line of a terminal, of numbers"}
PRINTS = {"echo", "secho", "echo_via_pager", "print", "write_stdout"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}


def printed(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in PRINTS:
            yield called.id
        if isinstance(called, ast.Attribute):
            on = called.value.attr if isinstance(called.value, ast.Attribute) else ""
            if called.attr in PRINTS or (called.attr in ("write", "writelines") and on in (*STREAMS, "buffer")):
                yield called.attr


def test_commands_print_through_one_door() -> None:
    found = {
        str(file.relative_to(CLI)): [*printed(file.read_text(encoding="utf-8"))] for file in sorted(CLI.rglob("*.py"))
    }
    assert {name for name, calls in found.items() if calls} == set(DOOR)


def test_it_would_see_one_that_goes_by() -> None:
    for text in ("click.echo(x)", "print(x)", "sys.stdout.write(x)", "click.secho(x)", "sys.stdout.buffer.write(x)"):
        assert [*printed(text)] != [], text
