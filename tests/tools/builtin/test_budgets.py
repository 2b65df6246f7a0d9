"""No answer of a built-in tool is larger than `limits.answer`, however much there is to tell."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.core.tools import Image, Link, Text, ToolResult
from octavo.text.tokens import tokens
from octavo.transport.mcp import shapes

pytestmark = [pytest.mark.anyio, pytest.mark.seed("B5", "A5")]

_TOOLS = Ref("tool")
BYTES, TOKENS, MEDIA = 16_000, 4_000, 20_000
ENVELOPE = 500  # braces and keys around the texts

SMALL = f"""
    sources: {{work: {{kind: file, roots: [./work], extensions: ["*"], write: true}}}}
    toolsets: [files, filesystem, seed]
    limits: {{answer: {BYTES}, answer_tokens: {TOKENS}, media: {MEDIA}, read: 200KB}}
"""
PROSE = "".join(f"{n} all work and no play makes a long file, 일만 하고\n" for n in range(3_000))
LARGE = "".join(f"{n} a line of a file that is over the read limit\n" for n in range(8_000))


def _world() -> dict[str, str | bytes]:
    wide = {f"wide/{'long name ' * 8}{n:04d}.txt": "needle\n" for n in range(250)}
    deep = {f"tree/{a}/{b}/{c}/{'n' * 40}.md": "needle\n" for a in range(6) for b in range(6) for c in range(4)}
    return {
        **wide, **deep, "prose.txt": PROSE, "large.log": LARGE, "one.txt": "가" * 60_000, "ends.txt": "\n" * 60_000,
        "hits.txt": ("needle " + "한글 " * 100 + "\n") * 300, "photo.png": b"\x89PNG" + b"x" * 30_000,
        "sound.wav": b"RIFF" + b"\0" * 30_000, "blob.bin": b"\0" * 30_000, "small.bin": b"\0" * 100,
    }  # fmt: skip


EDIT = {"target": "prose.txt", "edits": [{"old": "all work", "new": "no work", "expected": "all"}]}
MANY = [f"wide/{'long name ' * 8}{n:04d}.txt" for n in range(40)]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list", {"limit": 1000}),
    ("list", {"target": "wide", "limit": 1000}),
    ("list", {"target": "wide", "limit": 1000, "sort": "size"}),
    ("list", {"depth": 0, "limit": 1000, "form": "tree"}),
    ("read", {"target": "prose.txt"}),
    ("read", {"target": "prose.txt", "line_numbers": True}),
    ("read", {"target": "large.log"}),
    ("read", {"target": "large.log", "tail": 7000}),
    ("read", {"target": "one.txt"}),
    ("read", {"target": "ends.txt"}),
    ("read", {"targets": ["prose.txt", "large.log", *MANY, "missing.txt", "x" * 5000]}),
    ("read", {"target": "prose.txt", "shape": "resource"}),
    ("read", {"target": "blob.bin", "shape": "resource"}),
    ("read", {"target": "blob.bin"}),
    ("read", {"target": "sound.wav"}),
    ("read", {"targets": ["small.bin", "photo.png", "sound.wav"]}),
    ("info", {"target": "prose.txt"}),
    ("search", {"query": "needle", "limit": 1000, "context": 20}),
    ("search", {"query": "needle", "target": "hits.txt", "limit": 1000, "context": 20}),
    ("search", {"query": "name", "kind": "names", "limit": 1000}),
    ("edit", EDIT),
    ("edit", {**EDIT, "dry_run": True}),
    ("write", {"target": "new.txt", "content": PROSE}),
    ("move", {"target": "wide", "to": "wider"}),
    ("copy", {"target": "tree/0", "to": "forest"}),
    ("create_directory", {"target": "new"}),
    ("delete", {"target": "tree/0"}),
    ("undo", {"count": 3}),
    ("changes", {"limit": 1000}),
    ("read_file", {"path": "prose.txt"}),
    ("read_text_file", {"path": "large.log"}),
    ("read_text_file", {"path": "prose.txt", "head": 2900}),
    ("read_text_file", {"path": "large.log", "tail": 7900}),
    ("read_media_file", {"path": "sound.wav"}),
    ("read_media_file", {"path": "blob.bin"}),
    ("read_multiple_files", {"paths": ["prose.txt", "large.log", "blob.bin", *MANY, "missing.txt", "x" * 5000]}),
    ("list_directory", {"path": "wide"}),
    ("list_directory_with_sizes", {"path": "wide"}),
    ("directory_tree", {"path": "."}),
    ("directory_tree", {"path": "wide"}),
    ("search_files", {"path": ".", "pattern": "**/*"}),
    ("get_file_info", {"path": "prose.txt"}),
    ("list_allowed_directories", {}),
    ("write_file", {"path": "new.txt", "content": PROSE}),
    ("edit_file", {"path": "prose.txt", "edits": [{"oldText": PROSE, "newText": PROSE.upper()}]}),
    ("move_file", {"source": "wide", "destination": "wider"}),
    ("file-reader", {"path": "prose.txt"}),
    ("readFile", {"path": "large.log"}),
    ("writeFile", {"path": "new.txt", "content": PROSE}),
    ("createDirectory", {"path": "new"}),
    ("deleteFile", {"path": "tree/0"}),
]


def _size(result: ToolResult) -> int:
    """Bytes of the texts, as UTF-8: what stands in a message beside pictures, before JSON escapes anything."""
    told = [shapes.block(block) for block in result.content if not isinstance(block, Image)]
    texts = [_strings(told), _strings(result.structured or {})]
    return sum(len(text.encode()) for found in texts for text in found)


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [part for pair in value.items() for part in (str(pair[0]), *_strings(pair[1]))]
    return [part for one in value for part in _strings(one)] if isinstance(value, list | tuple) else [str(value)]


async def test_every_tool_stays_inside_of_the_budget(serve: Any) -> None:
    tools = await serve(SMALL, _world())
    offered = {entry.name for entry in (await tools.octavo.works.tools.list(_TOOLS, cursor=None, limit=100)).items}
    assert offered == {name for name, _ in CALLS}
    for name, asked in CALLS:
        try:
            result = await tools(name, **asked)
        except OctavoError as refused:
            assert len(str(refused)) < 2_000, (name, refused)
            continue
        assert _size(result) <= BYTES + ENVELOPE, (name, asked.keys(), _size(result))
        said = " ".join(block.text for block in result.content if isinstance(block, Text))
        assert tokens(said) <= TOKENS, (name, asked.keys(), tokens(said))
        if name in ("move", "move_file", "delete", "deleteFile", "copy", "edit", "edit_file"):
            await tools("undo")


async def test_what_an_alias_cuts_says_so_and_how_to_go_on(serve: Any) -> None:
    tools = await serve(SMALL, _world())
    for name in ("read_text_file", "file-reader"):
        for path in ("prose.txt", "large.log"):
            result = await tools(name, path=path)
            text = result.content[0].text
            assert text[:1000] in (PROSE + LARGE)
            assert text.splitlines()[-1].startswith("[cut here: ")
            assert text.endswith(f"the resource file://{path}?range=FROM-TO gives any bytes of it]")
            assert isinstance(result.content[1], Link)
    listed = await tools.text("list_directory", path="wide")
    assert "more are not shown: name a folder below]" in listed.splitlines()[-1]


async def test_a_tree_that_is_too_large_is_json_of_fewer_levels_and_a_note(serve: Any) -> None:
    tools = await serve(SMALL, {path: body for path, body in _world().items() if path.startswith("tree")})
    result = await tools("directory_tree", path=".")
    tree = json.loads(result.content[0].text)
    assert tree == json.loads(result.structured["content"])
    assert [one["name"] for one in tree[0]["children"]] == [str(n) for n in range(6)]
    assert "levels fit" in result.content[1].text
    small = await tools("directory_tree", path="tree/0/0")
    assert len(small.content) == 1
    assert json.loads(small.content[0].text)[0]["children"][0]["type"] == "file"


async def test_what_one_file_does_not_need_is_for_the_others(serve: Any) -> None:
    tools = await serve(SMALL, _world())
    several = await tools("read", targets=["prose.txt", *MANY[:10]])
    alone = await tools("read", targets=[*MANY[:10], "prose.txt"])
    assert len(alone.content[10].text) > 4 * len(several.content[0].text)


async def test_the_budgets_have_a_least_size(tmp_path: Path) -> None:
    from octavo.app.configuration import load
    from octavo.config.problems import ConfigError

    file = tmp_path / "octavo.yaml"
    file.write_text("version: 1\nlimits: {answer: 4KB, answer_tokens: 10}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as wrong:
        load(file, environ={})
    assert "16000" in str(wrong.value) and "4000" in str(wrong.value)


async def test_pictures_and_sound_have_a_budget_of_their_own(serve: Any) -> None:
    tools = await serve(SMALL, {"a.png": b"\x89PNG" + b"x" * 9_000, "b.wav": b"RIFF" + b"\0" * 15_000})
    one = await tools("read", target="a.png")
    assert isinstance(one.content[0], Image)
    both = await tools("read", targets=["a.png", "b.wav"])
    sizes = [len(base64.b64decode(shapes.block(block)["data"])) for block in both.content if isinstance(block, Image)]
    assert sum(sizes) <= MEDIA and "larger than an answer may be" in both.content[2].text
