"""What the house looks like in figures, for a before and an after: `python bench/house.py [FOLDER_OF_A_CHECKOUT]`.

Nothing is imported of what is measured: the figures are counted in the texts of the modules. Complexity is the number
of ways through a function (one, and one more for each branch, loop, handler, condition and part of a condition), and D
begins at 21.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

D = 21
_WAYS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.Assert, ast.comprehension)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OPTIONS = re.compile(r"(?:Options|OverStore|Declared\w*)$")
# Methods of the transport that become operations, as a text in the code tells them apart.
_METHODS = ("resources/list", "resources/read", "tools/list", "tools/call", "prompts/list", "prompts/get")
_ROOT = (
    "octavo.app",
    "octavo.app.compose",
    "octavo.app.composition",
    "octavo.app.registries",
    "octavo.app.server",
)


def modules(folder: Path) -> dict[str, tuple[Path, ast.Module, str]]:
    found = {}
    for path in sorted((folder / "src").rglob("*.py")):
        names = path.relative_to(folder / "src").with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        name = ".".join(names[:-1] if names[-1] == "__init__" else names)
        found[name] = (path, ast.parse(text), text)
    return found


def imported(name: str, path: Path, tree: ast.Module, known: set[str]) -> set[str]:
    """The modules of the house that one imports, wherever in it."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            found |= {f"{base}.{one.name}" if f"{base}.{one.name}" in known else base for one in node.names}
    return (found & known) - {name}


def complexity(function: ast.AST) -> int:
    ways = 1
    for node in _own(function):
        ways += isinstance(node, _WAYS)
        if isinstance(node, ast.BoolOp):
            ways += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            ways += len(node.ifs)
        elif isinstance(node, ast.Match):
            ways += len(node.cases)
    return ways


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, and not in one inside of it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            yield child
            yield from _own(child)


def calls_of(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


def kinds_asked(tree: ast.Module) -> int:
    """`isinstance` on the options of a kind of source."""
    asked = 0
    for call in calls_of(tree, "isinstance"):
        names = (one.id for one in ast.walk(call.args[-1]) if isinstance(one, ast.Name))
        asked += any(_OPTIONS.search(name) for name in names)
    return asked


def keys_read(text: str) -> int:
    """Places that read the arguments of a call by a key."""
    return len(re.findall(r"\barguments(?:\.get\(|\[)\"", text))


def figures(folder: Path) -> dict[str, int]:
    house = modules(folder)
    known = set(house)
    edges = {name: imported(name, path, tree, known) for name, (path, tree, _) in house.items()}
    importers = Counter(one for targets in edges.values() for one in targets)
    functions = [node for _, tree, _ in house.values() for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    seam = ("octavo.core.ports.source", "octavo.core.values", "octavo.core.arguments", "octavo.core.operations")
    texts = {name: text for name, (_, _, text) in house.items()}
    classes = Counter(
        node.name for _, tree, _ in house.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    lines = {name: text.count("\n") for name, text in texts.items()}
    return {
        "modules": len(house),
        "edges": sum(map(len, edges.values())),
        "modules with one importer": sum(count == 1 for count in importers.values()),
        "modules with one importer and under 60 lines": sum(
            count == 1 and lines[name] < 60 for name, count in importers.items()
        ),
        "class names that stand more than once": sum(count > 1 for count in classes.values()),
        "fan-out of the composition root": len(set().union(*(edges.get(name, set()) for name in _ROOT))),
        "isinstance on options of kinds": sum(kinds_asked(tree) for _, tree, _ in house.values()),
        "`Any` at the seam (core: ports, model, arguments, operations)": sum(
            isinstance(node, ast.Name) and node.id == "Any"
            for name in seam
            if name in house
            for node in ast.walk(house[name][1])
        ),
        "places that read arguments by key": sum(
            keys_read(text) for name, text in texts.items() if not name.startswith("octavo.tools.builtin")
        ),
        "modules that list three methods or more": sum(
            sum(f'"{method}"' in text for method in _METHODS) >= 3 for text in texts.values()
        ),
        "modules that build calls": sum(
            any(calls_of(tree, "Call")) and name != "octavo.core.values" for name, (_, tree, _) in house.items()
        ),
        "functions of complexity D or worse": sum(complexity(one) >= D for one in functions),
        "lines of src": sum(lines.values()),
    }


if __name__ == "__main__":
    for what, number in figures(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]).items():
        print(f"{number:>7,}  {what}")
