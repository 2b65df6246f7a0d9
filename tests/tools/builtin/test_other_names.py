"""The toolsets `seed` and `filesystem`: other names, arguments and shapes for the same."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound
from octavo.core.ref import Ref
from octavo.core.tools import Image, Text
from octavo.tools.builtin.answer_budget import Budget, Media
from octavo.tools.builtin.filesystem import filesystem_tools
from octavo.tools.builtin.seeds import seed_tools

pytestmark = pytest.mark.anyio

ALL = """
    sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"], write: true}}
    toolsets: [seed, filesystem]
"""
FILES: dict[str, str | bytes] = {
    "test.txt": "integration test content",
    "docs/a.md": "one\r\ntwo\r\nthree\r\n",
    "docs/deep/b.md": "b",
    "node_modules/x/y.md": "y",
    "p.png": b"\x89PNG\r\n\x1a\n",
}


@pytest.mark.seed("T12")
@pytest.mark.parametrize("name", ["file-reader", "readFile"])
async def test_the_readers_of_the_seeds_give_one_block_equal_to_the_file(serve: Any, name: str) -> None:
    tools = await serve(ALL, FILES)
    for path in ("test.txt", "file://test.txt"):
        result = await tools(name, path=path)
        assert result.content == (Text("integration test content"),)
        assert not result.is_error
    with pytest.raises(NotFound):
        await tools(name, path="nonexistent.txt")
    with pytest.raises(Forbidden):
        await tools(name, path="../forbidden.txt")
    with pytest.raises(InvalidParams) as wrong:
        await tools(name)
    assert wrong.value.data["toolName"] == name


@pytest.mark.seed("T12")
async def test_the_writers_of_the_seeds_write(serve: Any) -> None:
    tools = await serve(ALL, FILES)
    await tools("createDirectory", path="new")
    await tools("writeFile", path="file://new/a.txt", content="안녕")
    assert (tools.root / "new/a.txt").read_text(encoding="utf-8") == "안녕"
    await tools("deleteFile", path="new/a.txt")
    assert not (tools.root / "new/a.txt").exists()


def test_aliases_name_what_they_are_aliases_of() -> None:
    from octavo.tools.builtin import filesystem, seeds

    budget = Budget(64_000, 20_000)
    official = filesystem_tools(write=True, budget=budget, media=Media(700_000))
    for module, made in ((seeds, seed_tools(write=True, budget=budget)), (filesystem, official)):
        assert {tool.info.name for tool in made} - {"list_allowed_directories"} == set(module.CANONICAL)


async def test_a_path_of_the_machine_or_a_relative_one(serve: Any) -> None:
    tools = await serve(ALL, FILES)
    for path in ("test.txt", str(tools.root / "test.txt")):
        result = await tools("read_text_file", path=path)
        assert result.content[0].text == "integration test content"
        assert result.structured == {"content": "integration test content"}
    with pytest.raises(Forbidden):
        await tools("read_file", path="/etc/hostname")


async def test_the_ends_of_a_text(serve: Any) -> None:
    tools = await serve(ALL, FILES)
    assert await tools.text("read_text_file", path="docs/a.md", head=2) == "one\r\ntwo"
    assert await tools.text("read_text_file", path="docs/a.md", tail=1) == "three"
    with pytest.raises(InvalidParams):
        await tools("read_file", path="docs/a.md", head=1, tail=1)


async def test_several_files_and_media(serve: Any) -> None:
    tools = await serve(ALL, FILES)
    said = await tools.text("read_multiple_files", paths=["test.txt", "missing.txt", "docs/deep/b.md"])
    first, second, third = said.split("\n---\n")
    assert (first, third) == ("test.txt:\nintegration test content\n", "docs/deep/b.md:\nb\n")
    assert second.startswith("missing.txt: Error - ")
    assert (await tools("read_media_file", path="p.png")).content == (Image(b"\x89PNG\r\n\x1a\n", "image/png"),)


async def test_a_directory_in_all_forms(serve: Any) -> None:
    tools = await serve(ALL, FILES)
    assert await tools.text("list_directory", path=".") == (
        "[DIR] docs\n[DIR] node_modules\n[FILE] p.png\n[FILE] test.txt"
    )
    assert await tools.text("list_directory", path=str(tools.root / "docs")) == "[FILE] a.md\n[DIR] deep"
    sizes = (await tools.text("list_directory_with_sizes", path=".", sortBy="size")).split("\n")
    assert sizes[0] == "[FILE] test.txt" + " " * 29 + "24 B"
    assert sizes[-2:] == ["Total: 2 files, 2 directories", "Combined size: 32 B"]
    tree = json.loads(await tools.text("directory_tree", path=".", excludePatterns=["node_modules", "*.png"]))
    assert tree == [
        {
            "name": "docs",
            "type": "directory",
            "children": [
                {"name": "a.md", "type": "file"},
                {"name": "deep", "type": "directory", "children": [{"name": "b.md", "type": "file"}]},
            ],
        },
        {"name": "test.txt", "type": "file"},
    ]


async def test_files_are_found_by_pattern(serve: Any) -> None:
    tools = await serve(ALL, FILES)

    async def found(pattern: str, *exclude: str) -> list[str]:
        said = await tools.text("search_files", path=".", pattern=pattern, excludePatterns=list(exclude))
        return [one.removeprefix("/work/") for one in said.split("\n")]

    assert await found("*.txt") == ["test.txt"]
    assert await found("**/*.md", "node_modules") == ["docs/a.md", "docs/deep/b.md"]
    assert await found("docs/*") == ["docs/a.md", "docs/deep"]
    assert await found("*.rs") == ["No matches found"]


async def test_changes_answer_in_the_words_that_are_known(serve: Any) -> None:
    tools = await serve(ALL, FILES)
    assert await tools.text("write_file", path="n.md", content="x") == "Successfully wrote to n.md"
    assert await tools.text("create_directory", path="k") == "Successfully created directory k"
    with pytest.raises(Conflict):
        await tools("move_file", source="n.md", destination="test.txt")
    assert await tools.text("move_file", source="n.md", destination="k/n.md") == "Successfully moved n.md to k/n.md"
    edits = [{"oldText": "two", "newText": "2"}]
    diff = await tools.text("edit_file", path="docs/a.md", edits=edits, dryRun=True)
    assert diff.startswith("```diff\n--- docs/a.md\n") and diff.endswith("```\n\n") and "\n+2\r\n" in diff
    await tools("edit_file", path="docs/a.md", edits=edits)
    assert (tools.root / "docs/a.md").read_bytes() == b"one\r\n2\r\nthree\r\n"


async def test_facts_are_lines(serve: Any) -> None:
    tools = await serve(ALL, FILES)
    lines = (await tools.text("get_file_info", path="test.txt")).split("\n")
    assert lines[0] == "size: 24" and lines[1].startswith("modified: ")
    assert lines[2:] == ["isDirectory: false", "isFile: true"]
    assert "isDirectory: true" in await tools.text("get_file_info", path="docs")
    assert (await tools.text("list_allowed_directories")).startswith("Allowed directories:\n")


PLAIN = 'sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"], write: true}}\n'


@pytest.mark.seed("T12")
async def test_the_names_of_the_seeds_are_understood_without_being_listed(serve: Any) -> None:
    tools = await serve(PLAIN, FILES)
    registry = tools.octavo.works.tools
    listed = {entry.name for entry in (await registry.list(Ref("tool"), cursor=None, limit=100)).items}
    assert listed.isdisjoint({"file-reader", "readFile", "writeFile", "createDirectory", "deleteFile"})
    assert (await tools("file-reader", path="test.txt")).content == (Text("integration test content"),)
    await tools("createDirectory", path="new")
    await tools("writeFile", path="new/a.txt", content="안녕")
    assert await tools.text("readFile", path="file://new/a.txt") == "안녕"
    await tools("deleteFile", path="new/a.txt")
    assert {entry.name for entry in (await registry.list(Ref("tool"), cursor=None, limit=100)).items} == listed


@pytest.mark.seed("T12")
async def test_a_read_only_server_does_not_know_the_writers_of_the_seeds(serve: Any) -> None:
    tools = await serve(PLAIN.replace(", write: true", ""), FILES)
    assert await tools.text("file-reader", path="test.txt") == "integration test content"
    with pytest.raises(InvalidParams, match="Unknown tool"):
        await tools("writeFile", path="a.txt", content="x")


@pytest.mark.seed("T12")
@pytest.mark.parametrize("toolsets", ["files", "files, seed, filesystem"])
async def test_another_name_is_no_way_around_a_rule(serve: Any, toolsets: str) -> None:
    rules = """
        toolsets: [%s]
        agents: {reader: {}, writer: {}, nobody: {}}
        policy:
          - {who: [reader, writer, nobody], may: [list, read, write, delete], what: "file://*"}
          - {who: writer, may: [invoke], what: ["tool://write", "tool://create_directory"]}
          - {who: nobody, may: [invoke], what: "tool://*"}
          - {who: nobody, may: "*", what: ["tool://read", "tool://write", "tool://delete"], effect: deny}
    """
    tools = await serve(PLAIN + dedent(rules % toolsets), FILES)
    assert await tools.text("file-reader", who="reader", path="test.txt") == "integration test content"
    await tools("writeFile", who="writer", path="new.txt", content="x")
    for who, name, asked in (
        ("reader", "writeFile", {"content": "x"}),
        ("reader", "deleteFile", {}),
        ("writer", "deleteFile", {}),
        ("nobody", "file-reader", {}),
        ("nobody", "readFile", {}),
        ("nobody", "writeFile", {"content": "x"}),
        ("nobody", "deleteFile", {}),
    ):
        with pytest.raises(Forbidden):
            await tools(name, who=who, path="test.txt", **asked)
    assert (tools.root / "test.txt").read_text(encoding="utf-8") == "integration test content"


async def test_a_plugin_may_have_a_name_of_the_seeds(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(
        "from octavo.core.tools import Hints\n"
        "HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)\n"
        "def register(octavo):\n"
        "    @octavo.tool('readFile', description='mine', hints=HINTS)\n"
        "    async def mine(ctx, asked):\n"
        "        return 'mine'\n",
        encoding="utf-8",
    )
    tools = await serve(PLAIN + "plugins: [{path: ./plugin.py}]\n", FILES)
    assert await tools.text("readFile") == "mine"
