"""Every built-in tool, called: one table that three clients walk from top to bottom, and what it must leave on disk.

A new tool gets a row here. The clients compare what they call with `tools/list`, so a tool without a row fails.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True)
class Call:
    """One call and what must come back: pieces of the text, pieces of the structured content, kinds of the blocks."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    says: Sequence[str] = ()
    gives: Mapping[str, Any] | None = None  # None: no structured content
    kinds: Sequence[str] = ("text",)
    fails: bool = False


class Answered(NamedTuple):
    """What a client made of an answer."""

    text: str
    structured: Mapping[str, Any] | None
    kinds: Sequence[str]
    is_error: bool


FILES = (
    Call("list", {"target": "docs"}, ["guide.md", "한국"], {"entries": ...}),
    Call("list", {"depth": 0, "form": "tree"}, ["소개.md", "plan.txt"], {"entries": ...}),
    # As clients really send them: whole numbers with a point or as text, null and "" for what is not given.
    Call("list", {"target": "docs", "depth": 1.0, "limit": "5", "cursor": ""}, ["guide.md"], {"entries": ...}),
    Call("read", {"target": "docs/guide.md", "head": 1.0, "tail": None, "targets": [], "as": ""}, ["# Guide"]),
    Call("read", {"target": "docs/한국/소개.md"}, ["안녕하세요, 옥타보입니다."]),
    Call("read", {"targets": ["notes/plan.txt", "none.txt"]}, ["plan", "NotFound"], kinds=("text", "text")),
    Call("read", {"target": "pixel.png"}, kinds=("image",)),
    Call(
        "read",
        {"target": "notes/plan.txt", "shape": "resource"},
        ["structured content"],
        {"uri": "file://notes/plan.txt", "name": "plan.txt", "contents": ...},
    ),
    Call("info", {"target": "notes/plan.txt"}, ["size: 5"], {"type": "file", "size": 5, "lines": 1}),
    Call("info", {"target": "docs"}, ["is a folder"], {"type": "directory"}),
    Call("search", {"query": "옥타보"}, ["소개.md"], {"files": ...}),
    Call("search", {"query": "*.txt", "kind": "names"}, ["notes/plan.txt"], {"files": ...}),
    Call("write", {"target": "new/가.txt", "content": "one\n"}, ["Wrote"], {"uri": "file://new/가.txt", "size": 4}),
    Call(
        "write",
        {"target": "new/가.txt", "content": "two\n", "mode": "append"},
        ["Appended"],
        {"uri": "file://new/가.txt", "size": 8},
    ),
    Call("write", {"target": "new/가.txt", "content": "x", "mode": "create"}, ["file://new/가.txt"], fails=True),
    Call(
        "edit",
        {"target": "new/가.txt", "edits": [{"old": "two", "new": "둘"}]},
        ["-two", "+둘"],
        {"uri": "file://new/가.txt", "added": 1, "removed": 1, "diff": ...},
    ),
    Call("edit", {"target": "new/가.txt", "edits": [{"old": "three", "new": "3"}]}, ["not in the text"], fails=True),
    Call("copy", {"target": "new/가.txt", "to": "new/나.txt"}, ["Copied"], {"uri": "file://new/나.txt"}),
    Call("move", {"target": "new/나.txt", "to": "moved/나.txt"}, ["Moved"], {"uri": "file://moved/나.txt"}),
    Call("create_directory", {"target": "empty/inner"}, ["is a folder"], {"uri": "file://empty/inner"}),
    Call("delete", {"target": "notes/plan.txt"}, ["Deleted"], {"uri": "file://notes/plan.txt"}),
    Call("undo", {}, ["notes/plan.txt: restored"], {"undone": ...}),
    Call("changes", {"target": "new"}, ["call again with after"], {"changes": ..., "next": ...}),
)
FILES_LEAVE = {"new/가.txt": "one\n둘\n", "moved/나.txt": "one\n둘\n", "notes/plan.txt": "plan\n"}

FILESYSTEM = (
    Call("read_file", {"path": "notes/plan.txt"}, ["plan"], {"content": "plan\n"}),
    Call("read_text_file", {"path": "{root}/docs/guide.md", "head": 1}, ["# Guide"], {"content": "# Guide"}),
    Call("read_text_file", {"path": "docs/guide.md", "head": 1.0, "tail": None}, ["# Guide"], {"content": "# Guide"}),
    Call("read_media_file", {"path": "pixel.png"}, kinds=("image",)),
    Call("read_multiple_files", {"paths": ["notes/plan.txt", "none.txt"]}, ["plan", "Error"], {"content": ...}),
    Call("list_directory", {"path": "docs"}, ["[FILE] guide.md", "[DIR] 한국"], {"content": ...}),
    Call("list_directory_with_sizes", {"path": "docs"}, ["Total: 1 files, 1 directories"], {"content": ...}),
    Call("directory_tree", {"path": "docs"}, ['"소개.md"'], {"content": ...}),
    Call("search_files", {"path": ".", "pattern": "**/*.md"}, ["{root}/docs/guide.md"], {"content": ...}),
    Call("get_file_info", {"path": "notes/plan.txt"}, ["size: 5", "isFile: true"], {"content": ...}),
    Call("list_allowed_directories", {}, ["{root}"], {"content": ...}),
    Call("write_file", {"path": "{root}/a.txt", "content": "하나\n"}, ["Successfully wrote"], {"content": ...}),
    Call(
        "edit_file",
        {"path": "a.txt", "edits": [{"oldText": "하나", "newText": "둘"}]},
        ["-하나", "+둘"],
        {"content": ...},
    ),
    Call("edit_file", {"path": "a.txt", "edits": [{"oldText": "0", "newText": "1"}]}, ["not in the text"], fails=True),
    Call("create_directory", {"path": "made/here"}, ["Successfully created"], {"content": ...}),
    Call("move_file", {"source": "a.txt", "destination": "made/b.txt"}, ["Successfully moved"], {"content": ...}),
)
FILESYSTEM_LEAVES = {"made/b.txt": "둘\n", "notes/plan.txt": "plan\n"}

SEED = (
    Call("file-reader", {"path": "docs/guide.md"}, ["# Guide\n"]),
    Call("readFile", {"path": "docs/한국/소개.md"}, ["안녕하세요, 옥타보입니다.\n"]),
    Call("readFile", {"path": "none.md"}, ["none.md"], fails=True),
    Call("createDirectory", {"path": "made"}, ["is a folder"]),
    Call("writeFile", {"path": "made/x.txt", "content": "x\n"}, ["Wrote"]),
    Call("deleteFile", {"path": "notes/plan.txt"}, ["Deleted"]),
)
SEED_LEAVES = {"made/x.txt": "x\n", "docs/guide.md": "# Guide\n"}

TOOLSETS: Mapping[str, tuple[Sequence[Call], Mapping[str, str]]] = {
    "files": (FILES, FILES_LEAVE),
    "filesystem": (FILESYSTEM, FILESYSTEM_LEAVES),
    "seed": (SEED, SEED_LEAVES),
}


def calls_of(toolset: str, root: Path) -> list[Call]:
    """The rows of a toolset, with the served directory in place of `{root}`."""
    return [
        Call(
            row.tool,
            {key: _placed(value, root) for key, value in row.arguments.items()},
            [_placed(piece, root) for piece in row.says],
            row.gives,
            row.kinds,
            row.fails,
        )
        for row in TOOLSETS[toolset][0]
    ]


def _placed(value: Any, root: Path) -> Any:
    return value.replace("{root}", str(root)) if isinstance(value, str) else value


def check(calls: Sequence[Call], answers: Sequence[Answered], listed: Sequence[str]) -> None:
    """Every tool that is listed was called, and every call was answered as the table says."""
    assert sorted({call.tool for call in calls}) == sorted(listed)
    assert len(answers) == len(calls)
    for call, answer in zip(calls, answers, strict=True):
        shown = f"{call.tool} {dict(call.arguments)} answered {answer}"
        assert answer.is_error is call.fails, shown
        assert list(answer.kinds) == list(call.kinds), shown
        for piece in call.says:
            assert piece in answer.text, shown
        if call.gives is None:
            assert answer.structured is None or call.fails, shown
            continue
        assert answer.structured is not None, shown
        for key, value in call.gives.items():
            assert key in answer.structured, shown
            assert value is ... or answer.structured[key] == value, shown


def check_disk(toolset: str, root: Path) -> None:
    for name, text in TOOLSETS[toolset][1].items():
        assert (root / name).read_text(encoding="utf-8") == text
    stray = [path for path in root.rglob("*") if path.name.startswith(".")]
    assert stray == []
