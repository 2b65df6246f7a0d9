"""`octavo` itself is what authors import: all of it, lazily, and nothing else."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import octavo
from octavo.core import errors
from octavo.core.ports.source import ABILITIES

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "octavo"
PUBLIC = {
    # addresses and values
    "Ref", "Entry", "Content", "Page", "Change", "Template", "Suggestion", "Revision", "Edited", "Undone", "Past",
    "NameQuery", "ContentQuery",
    # sources and abilities
    "Source", "Watches", "Completes", "Suggests", "SuggestsMore", "Offers", "Stamps", "Aliases", "Rejects", "Levels",
    "Filters", "Folders", "Searches", "Writes", "Edits", "Arranges", "Undoes", "refuse_unknown", "revise",
    "check_hidden", "Shown",
    # kinds
    "SourceKind", "Host", "Needs", "SourceFolder", "Over", "AddressTemplate", "Objection", "SourceOptions", "Cache",
    "FilePath",
    "Secret", "Scheme", "Flag", "Count", "Size", "Time",
    # errors
    "OctavoError", "InvalidParams", "Unauthenticated", "NotFound", "Forbidden", "ApprovalRequired", "InputRequired",
    "RateLimited", "TooLarge", "Conflict", "Timeout", "SourceUnavailable", "ProtocolError", "InternalError",
    "Unrecorded",
    # tools, prompts, plugins, tests
    "tool", "ToolContext", "Plugin", "Hints", "ToolResult", "Text", "Image", "Audio", "Embedded", "Link", "Answer",
    "PromptInfo", "PromptArgument", "PromptResult", "PromptMessage", "testing",
}  # fmt: skip


def python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True).stdout


def test_every_name_is_importable_and_is_what_stands_deeper() -> None:
    assert {*dir(octavo)} == PUBLIC
    for name in PUBLIC:
        found = getattr(octavo, name)
        assert getattr(octavo, name) is found
        if name not in ("testing", "check_hidden") and hasattr(found, "__name__"):
            assert found.__name__ in (name, "Annotated"), name


def test_nothing_else_is_public() -> None:
    held = json.loads(python("import json, octavo; print(json.dumps([*vars(octavo)]))"))
    assert {name for name in held if not name.startswith("_")} == {"core"}  # a folder of it that was imported
    assert not hasattr(octavo, "Principal")


def test_importing_it_loads_nothing_else() -> None:
    code = "import sys; before = {*sys.modules}; import octavo; print(*sorted({*sys.modules} - before))"
    assert python(code).split() == ["octavo", "octavo.core", "octavo.core.version"]


def test_a_name_loads_no_more_than_it_needs() -> None:
    code = "import sys; from octavo import {}; print(*sys.modules)"
    heavy = {"pydantic", "pytest", "mcp", "octavo.app", "octavo.config"}
    for names in ("Ref, Entry, Content, Page, Change, Source, Writes, NotFound", "tool", "SourceKind, Host, Needs"):
        assert not heavy & {*python(code.format(names)).split()}, names
    assert "mcp" not in python(code.format("SourceOptions, ToolContext, Plugin")).split()


def test_type_checkers_are_told_the_same_names_and_no_others() -> None:
    """A module with `__getattr__` has any name to them, so they must not see it."""
    tree = ast.parse((SRC / "__init__.py").read_text(encoding="utf-8"))
    told, hidden = (node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(told.test) == "TYPE_CHECKING" and ast.unparse(hidden.test) == "not TYPE_CHECKING"
    assert [node.name for node in hidden.body if isinstance(node, ast.FunctionDef)] == ["__getattr__"]
    places: dict[str, str] = {}
    for node in told.body:
        if isinstance(node, ast.ImportFrom):
            places |= {one.asname or one.name: node.module or "" for one in node.names}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            places[ast.unparse(node.targets[0])] = places.pop(node.value.id)
    assert places == octavo._PLACES  # type: ignore[attr-defined]


def test_all_errors_and_all_abilities_are_there() -> None:
    assert {one.__name__ for one in errors.ALL} <= PUBLIC
    assert {one.__name__ for one in ABILITIES.values()} <= PUBLIC


def test_the_page_lists_all_of_it() -> None:
    page = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)
    sentences = re.findall(r"^`(?:OctavoError|testing)`.*$", page, re.MULTILINE)
    named = {name for text in (*rows, *sentences) for name in re.findall(r"`(\w+)`", text)}
    assert named - {"SourceSuite", "FaultSuite", "ToolSuite"} == PUBLIC


def test_the_page_of_sources_says_the_word_of_each_ability() -> None:
    page = (ROOT / "docs" / "writing-a-source.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)) == {
        ability.__name__: word for word, ability in ABILITIES.items()
    }


def imported_of_octavo(code: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return {name for name in found if name.split(".")[0] == "octavo"}


def test_what_authors_are_shown_imports_nothing_deeper() -> None:
    from octavo.cli import _starters

    shown = {
        "octavo new tool": _starters.TOOL.format(name="a", title="A"),
        "octavo new source": _starters.SOURCE.format(name="a", module="a_source", type="A", title="A"),
        "its test": _starters.SOURCE_TEST.format(name="a", module="a_source", type="A", title="A"),
        "conformance": (ROOT / "conformance" / "plugin.py").read_text(encoding="utf-8"),
        "a package": (ROOT / "tests/house/installed/acme_shelf.py").read_text(encoding="utf-8"),
    }
    for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("examples/**/*.md")]:
        for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)):
            shown[f"{page.name} {number}"] = code
    assert len(shown) > 10
    for place, code in shown.items():
        assert imported_of_octavo(code) <= {"octavo", "octavo.testing"}, place


def test_no_room_comes_in_by_the_front_door() -> None:
    """It leads to rooms that stand above: whoever came in by it would be in all of them."""
    for path in SRC.rglob("*.py"):
        if path != SRC / "__init__.py":
            assert "octavo" not in imported_of_octavo(path.read_text(encoding="utf-8")), path
