"""Tools of the operator's own: Python functions and declarations in folders that the configuration names.

Code here runs in this process, with its rights, like a plugin. A file that is broken is told with its line, and the
others load.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from msgspec import Struct

from octavo.core.errors import Conflict, OctavoError
from octavo.core.foundation import LINKED, Changeable, nothing_changes
from octavo.tools.declarations import Outside, declared
from octavo.tools.functions import tool_of
from octavo.tools.modules import CodeError, beside, run_file
from octavo.tools.registry import Tool

MAX_FILES: Final = 500
NOTHING: Final = Outside()


class ToolProblem(Struct, frozen=True):
    path: str
    reason: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}{'' if self.line is None else f':{self.line}'}: {self.reason}"


def files_in(directories: Iterable[Path]) -> list[Path]:
    """What would be loaded, in order. Helpers begin with `_`, tests with `test_`."""
    return [file for file in watched(directories) if not file.name.startswith(("_", "test_"))][:MAX_FILES]


def watched(directories: Iterable[Path]) -> list[Path]:
    """With the helpers: what a change of changes tools."""
    return [
        file
        for directory in directories
        for file in sorted(directory.iterdir() if directory.is_dir() else ())
        if file.suffix in (".py", ".yaml", ".yml") and not file.name.startswith(".") and file.is_file()
    ]


def load_tools(
    directories: Sequence[Path],
    register: Callable[[Tool], None],
    outside: Outside = NOTHING,
    *,
    max_answer: int = 0,
    changeable: Changeable = nothing_changes,
) -> list[ToolProblem]:
    """Registers every tool that can be used; gives what is wrong with the rest."""
    problems: list[ToolProblem] = []
    with beside(directories, changeable):
        for file in files_in(directories):
            if changeable(file):
                problems.append(ToolProblem(str(file), LINKED))
                continue
            found, wrong = _of_python(file, max_answer) if file.suffix == ".py" else _of_yaml(file, outside, max_answer)
            problems += wrong
            for tool in found:
                try:
                    register(tool)
                except Conflict:
                    said = f"there is a tool {tool.info.name} already: give it another name"
                    problems.append(ToolProblem(str(file), said))
                except OctavoError as error:
                    problems.append(ToolProblem(str(file), error.message))
    return problems


def _of_python(file: Path, max_answer: int) -> tuple[Sequence[Tool], Sequence[ToolProblem]]:
    try:
        module = run_file(file)
    except CodeError as error:
        return (), (ToolProblem(str(file), error.message, error.line),)
    tools: list[Tool] = []
    problems: list[ToolProblem] = []
    for function in functions_of(module):
        try:
            tools.append(tool_of(function, max_answer=max_answer))
        except OctavoError as error:
            problems.append(ToolProblem(str(file), f"{error}", function.__code__.co_firstlineno))
    if not tools and not problems:
        problems.append(
            ToolProblem(str(file), "has no function: a tool is a function whose name does not begin with _")
        )
    return tools, problems


def _of_yaml(file: Path, outside: Outside, max_answer: int) -> tuple[Sequence[Tool], Sequence[ToolProblem]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
        return (declared(text, outside, max_answer=max_answer),), ()
    except (OSError, UnicodeDecodeError):
        return (), (ToolProblem(str(file), "cannot be read as text in UTF-8"),)
    except OctavoError as error:
        return (), (ToolProblem(str(file), error.message),)


def functions_of(module: ModuleType) -> list[Any]:
    """The functions that the module itself defines and shows, in the order of the file."""
    found = [
        one
        for name, one in vars(module).items()
        if inspect.isfunction(one) and one.__module__ == module.__name__ and not name.startswith("_")
    ]
    return sorted(found, key=lambda function: function.__code__.co_firstlineno)
