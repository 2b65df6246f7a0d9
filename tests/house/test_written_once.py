"""What several rooms need is written once: cursors, sizes, the mark of redaction, maps with an end."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "octavo"


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SRC.rglob("*.py")):
        yield path.relative_to(SRC).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def is_number(node: ast.expr, *numbers: int) -> bool:
    return isinstance(node, ast.Constant) and node.value in numbers and not isinstance(node.value, bool)


def a_size(node: ast.AST) -> bool:
    """`64 * 1024`, `1 << 20`, `4 << 20`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.left, ast.Constant | ast.BinOp):
        return False
    if isinstance(node.op, ast.LShift):
        return is_number(node.right, 10, 16, 18, 20, 24, 28)
    return isinstance(node.op, ast.Mult) and is_number(node.right, 1024)


def a_mark(node: ast.AST) -> bool:
    """The beginning of one, as a text or in an expression; docstrings may show the whole."""
    if not isinstance(node, ast.Constant):
        return False
    text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
    return isinstance(text, str) and "redacted:" in text and " " not in text


def a_reason(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "invalid_cursor"


def the_oldest_goes(node: ast.AST) -> bool:
    """`del kept[next(iter(kept))]`, and `if len(kept) >= most: kept.clear()`."""
    if isinstance(node, ast.Delete):
        return any(isinstance(one, ast.Subscript) and "next(iter(" in ast.unparse(one.slice) for one in node.targets)
    if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and len(node.body) == 1:
        counted = ast.unparse(node.test.left)
        return counted.startswith("len(") and ast.unparse(node.body[0]) == f"{counted[4:-1]}.clear()"
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".popitem")  # of an OrderedDict


# What is looked for, and where it stands. A further place says here why it is another thing.
ONCE: dict[str, tuple[Callable[[ast.AST], bool], dict[str, str]]] = {
    "sizes": (
        a_size,
        {"core/sizes.py": "they are made here"},
    ),
    "the mark of redaction": (a_mark, {"core/marks.py": "it is made here"}),
    "the reason of a cursor that is refused": (a_reason, {"core/cursor.py": "it is given here"}),
    "maps with an end": (
        the_oldest_goes,
        {"core/memo.py": "they are here", "search/index.py": "a set of words, which forgets all at once"},
    ),
}


@pytest.mark.parametrize("what", ONCE)
def test_it_is_written_once(what: str) -> None:
    found, places = ONCE[what]
    assert {name for name, tree in trees() if any(map(found, ast.walk(tree)))} == {*places}


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("sizes", "MOST = 4 << 20"),
        ("sizes", "MOST = 64 * 1024"),
        ("the mark of redaction", r'MARK = re.compile(r"\[redacted:[a-z]+\]")'),
        ("the mark of redaction", 'START = b"[redacted:"'),
        ("the reason of a cursor that is refused", 'raise InvalidParams("no", reason="invalid_cursor")'),
        ("maps with an end", "if len(self._kept) >= MOST:\n    self._kept.clear()"),
        ("maps with an end", "del self._kept[next(iter(self._kept))]"),
        ("maps with an end", "self._kept.popitem(last=False)"),
    ],
)
def test_a_second_one_is_noticed(what: str, code: str) -> None:
    assert any(map(ONCE[what][0], ast.walk(ast.parse(code))))
