"""Folders are there, also where nothing is in them; and what is not there is said not to be."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound

pytestmark = pytest.mark.anyio

BOTH = """
    sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"], write: true}}
    toolsets: [files, filesystem, seed]
"""
FILES = {"a.md": "x x", "docs/a.md": "alpha", "docs/deep/b.md": "beta"}


async def names(tools: Any, **asked: Any) -> list[str]:
    return [one["uri"].removeprefix("file://") for one in (await tools.data("list", **asked))["entries"]]


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("write", {"target": "/etc/octavo/x", "content": "x"}),
        ("writeFile", {"path": "/etc/octavo/x", "content": "x"}),
        ("write_file", {"path": "/etc/octavo/x", "content": "x"}),
        ("create_directory", {"target": "/docs/new"}),
        ("createDirectory", {"path": "/docs/new"}),
        ("move", {"target": "a.md", "to": "/b.md"}),
        ("read", {"target": "/a.md"}),
        ("list", {"target": "/docs"}),
    ],
)
async def test_a_path_with_a_leading_slash_is_never_taken_for_one_inside(
    serve: Any, tool: str, asked: dict[str, Any]
) -> None:
    tools = await serve(BOTH.replace(", filesystem", "") if tool == "create_directory" else BOTH, FILES)
    before = sorted(tools.root.rglob("*"))
    with pytest.raises(Forbidden) as refused:
        await tools(tool, **asked)
    assert "no leading slash" in str(refused.value.data["why"])
    assert sorted(tools.root.rglob("*")) == before


@pytest.mark.parametrize(("sets", "argument"), [("files, filesystem", "target"), ("filesystem, files", "path")])
async def test_of_two_tools_of_one_name_that_of_the_first_set_is_offered(serve: Any, sets: str, argument: str) -> None:
    tools = await serve(BOTH.replace("files, filesystem", sets), FILES)
    await tools("create_directory", **{argument: "docs/new"})
    assert "docs/new" in await names(tools, target="docs")


async def test_an_empty_folder_is_shown_and_known(serve: Any) -> None:
    tools = await serve(BOTH, FILES)
    await tools("createDirectory", path="docs/new/er")
    assert await names(tools, target="docs") == ["docs/a.md", "docs/deep", "docs/new"]
    assert await names(tools, target="docs/new") == ["docs/new/er"]
    assert await names(tools, target="docs/new/er") == []
    assert "folder is empty" in await tools.text("list", target="docs/new/er")
    assert (await tools.data("info", target="docs/new/er"))["type"] == "directory"
    assert "[DIR] new" in await tools.text("list_directory", path="docs")
    assert await tools.text("list_directory", path="docs/new/er") == ""
    assert "isDirectory: true" in await tools.text("get_file_info", path="docs/new/er")
    assert '"name": "er"' in await tools.text("directory_tree", path="docs")
    assert (await tools.text("search_files", path="docs", pattern="**/er")).endswith("/docs/new/er")


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_pages_give_empty_folders_once_and_in_order(serve: Any, depth: int, limit: int) -> None:
    tools = await serve(BOTH, {"b/x.md": "", "b/y/z.md": "", "d.md": ""})
    for folder in ("a/a", "a/b", "b/a", "b/y/a", "c", "e", "f/g"):
        (tools.root / folder).mkdir(parents=True)
    got, asked = list[str](), dict[str, Any]()
    for _ in range(30):
        page = await tools.data("list", depth=depth, limit=limit, **asked)
        assert len(page["entries"]) <= max(limit, 2)
        got += [one["uri"].removeprefix("file://") for one in page["entries"]]
        if "cursor" not in page:
            break
        asked = {"cursor": page["cursor"]}
    everything = (str(place.relative_to(tools.root)) for place in tools.root.rglob("*"))
    assert got == sorted((one for one in everything if one.count("/") < depth), key=lambda p: p.split("/"))


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("list", {"target": "nope"}),
        ("info", {"target": "nope"}),
        ("list", {"target": "nope", "sort": "size"}),
        ("list_directory", {"path": "nope"}),
        ("list_directory_with_sizes", {"path": "nope"}),
        ("directory_tree", {"path": "nope"}),
        ("search_files", {"path": "nope", "pattern": "*"}),
        ("get_file_info", {"path": "nope"}),
    ],
)
async def test_a_missing_folder_is_not_an_empty_one(serve: Any, tool: str, asked: dict[str, Any]) -> None:
    tools = await serve(BOTH, FILES)
    with pytest.raises(NotFound, match="nope") as absent:
        await tools(tool, **asked)
    assert absent.value.data == {"uri": "file://nope"}


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("read", {"target": "docs"}),
        ("readFile", {"path": "docs"}),
        ("read_text_file", {"path": "docs"}),
        ("edit", {"target": "docs", "edits": [{"old": "a", "new": "b"}]}),
        ("edit_file", {"path": "docs", "edits": [{"oldText": "a", "newText": "b"}]}),
    ],
)
async def test_a_folder_is_no_file(serve: Any, tool: str, asked: dict[str, Any]) -> None:
    tools = await serve(BOTH, FILES)
    with pytest.raises(InvalidParams, match="file://docs is a folder: list it"):
        await tools(tool, **asked)


@pytest.mark.parametrize("tool", ["list_directory", "directory_tree"])
async def test_a_file_is_no_folder(serve: Any, tool: str) -> None:
    tools = await serve(BOTH, FILES)
    with pytest.raises(InvalidParams, match=r"file://a\.md is a file, not a folder"):
        await tools(tool, path="a.md")


async def test_a_folder_that_the_policy_denies_or_that_is_hidden_is_not_there(serve: Any) -> None:
    rules = """
        sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"]}}
        toolsets: [files, filesystem]
        agents: {brand: {}}
        policy:
          - {who: brand, may: [list, read, search], what: "file://*"}
          - {who: brand, may: [invoke], what: "tool://*"}
          - {who: brand, may: "*", what: ["file://hid/*", "file://some/*.md"], effect: deny, hide: true}
    """
    tools = await serve(rules, {"hid/a.md": "", "some/a.md": "", "seen.md": ""})
    for folder in ("hid/empty", ".git/x", ".ssh"):
        (tools.root / folder).mkdir(parents=True)
    for depth in (1, 5):
        assert await names(tools, who="brand", depth=depth) == ["seen.md", "some"]
    assert await names(tools, who="brand", target="some") == []
    for target in ("hid", "hid/empty", ".git", ".git/x", ".ssh", "nope"):
        for tool, argument in (("list", "target"), ("info", "target"), ("list_directory", "path"), ("read", "target")):
            with pytest.raises(NotFound) as absent:
                await tools(tool, who="brand", **{argument: target})
            words = f"ENOENT: no such file or directory, scandir '{target}'"
            said = words if tool == "list_directory" else f"Resource not found: file://{target}"
            assert absent.value.message == said


async def test_an_empty_folder_of_a_later_root_is_judged_by_its_own_path(serve: Any, tmp_path: Any) -> None:
    for folder in ("one/kept", "two/hid", "two/kept", "two/more"):
        (tmp_path / folder).mkdir(parents=True)
    tools = await serve(f"""
        sources: {{work: {{kind: file, uris: relative, roots: [./one, ./two], extensions: ["*"]}}}}
        agents: {{brand: {{}}}}
        policy:
          - {{who: brand, may: [list], what: "file://*"}}
          - {{who: brand, may: "*", what: "file://{tmp_path}/two/hid/*", effect: deny}}
    """)
    assert await names(tools, who="brand") == ["kept", "more"]


async def test_the_set_filesystem_advises_what_it_has(serve: Any) -> None:
    tools = await serve(BOTH, {**FILES, "b.md": "b", "long.md": "line\n" * 100_000})
    with pytest.raises(InvalidParams) as several:
        await tools("edit_file", path="a.md", edits=[{"oldText": "x", "newText": "y"}])
    assert "`oldText`" in several.value.message
    assert "expected" not in several.value.message
    for destination in ("b.md", "docs"):
        with pytest.raises(Conflict, match=f"already exists: {destination}: choose another name"):
            await tools("move_file", source="a.md", destination=destination)
    end = (await tools.text("read_text_file", path="long.md"))[-120:]
    assert "head and tail" in end
    assert "file://long.md?range=FROM-TO" in end


async def test_search_files_looks_at_every_file(serve: Any) -> None:
    many = {f"d{number:03}/f{leaf:03}.md": "" for number in range(51) for leaf in range(200)}
    tools = await serve(f"{BOTH}    limits: {{time: 60s}}\n", {**many, "d000/deep/x.target": "", "zz/y.target": ""})
    found = await tools.text("search_files", path=".", pattern="**/*.target")
    assert found.splitlines() == ["/work/d000/deep/x.target", "/work/zz/y.target"]
    assert len(many) > 10_000


async def test_and_says_where_it_stopped_if_there_was_no_time_for_all(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = await serve(BOTH, {f"{name}.md": "" for name in "abc"})
    monkeypatch.setattr("octavo.tools.context.Deadline.left", property(lambda _: -1.0))
    found = await tools.text("search_files", path=".", pattern="*.md")
    assert found.splitlines()[0].endswith("a.md")
    assert "[there was time for 1 files alone, up to a.md: what comes behind it was not looked at." in found


@pytest.mark.parametrize("kind", ["names", "content"])
async def test_a_search_in_what_is_not_there_says_so(serve: Any, kind: str) -> None:
    tools = await serve(files={"docs/a.md": "x"})
    assert (await tools.data("search", query="nothing", kind=kind, target="docs"))["files"] == []
    with pytest.raises(NotFound):
        await tools("search", query="nothing", kind=kind, target="none")
