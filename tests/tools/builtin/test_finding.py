"""`list` and `search`: what is shown, in which form, page by page, and to whom."""

from __future__ import annotations

import base64
from textwrap import dedent
from typing import Any

import pytest
from tests.tools.builtin.conftest import WRITABLE

from octavo.core.errors import InvalidParams, NotFound

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T4", "F6")]

TREE: dict[str, str | bytes] = {
    "readme.md": "hello",
    "docs/a.md": "alpha beta\nsecond\n",
    "docs/deep/b.md": "Beta\n",
    "docs/deep/er/c.txt": "x" * 100,
    "src/main.py": "def beta():\n    return 1\n",
    "한글/문서.md": "안녕하세요\n",
}


async def names(tools: Any, **asked: Any) -> list[str]:
    return [entry["uri"].removeprefix("file://") for entry in (await tools.data("list", **asked))["entries"]]


async def test_one_level_is_listed_with_folders_and_sizes(serve: Any) -> None:
    tools = await serve(files=TREE)
    result = await tools("list")
    entries = result.structured["entries"]
    assert [(one["uri"], one["name"], one["type"], one.get("size")) for one in entries] == [
        ("file://docs", "docs", "directory", None),
        ("file://readme.md", "readme.md", "file", 5),
        ("file://src", "src", "directory", None),
        ("file://한글", "한글", "directory", None),
    ]
    assert entries[1]["modified"].endswith("Z")
    assert result.content[0].text.splitlines() == ["docs/", "readme.md  5 bytes", "src/", "한글/"]


@pytest.mark.parametrize("target", ["docs", "docs/", "file://docs", "file://docs/"])
async def test_a_folder_is_listed_to_a_depth(serve: Any, target: str) -> None:
    tools = await serve(files=TREE)
    assert await names(tools, target=target) == ["docs/a.md", "docs/deep"]
    assert await names(tools, target=target, depth=2) == ["docs/a.md", "docs/deep", "docs/deep/b.md", "docs/deep/er"]
    assert len(await names(tools, target=target, depth=0)) == 5


async def test_an_absolute_address_is_listed_like_a_relative_one(serve: Any) -> None:
    tools = await serve(files=TREE)
    assert await names(tools, target=f"file://{tools.root}/docs") == ["docs/a.md", "docs/deep"]


async def test_a_tree_is_indented(serve: Any) -> None:
    tools = await serve(files=TREE)
    said = await tools.text("list", target="docs", depth=0, form="tree")
    assert said.splitlines() == [
        "a.md  18 bytes", "deep/", "  b.md  5 bytes", "  er/", "    c.txt  100 bytes",
    ]  # fmt: skip


async def test_a_pattern_chooses_and_sizes_sort(serve: Any) -> None:
    tools = await serve(files=TREE)
    assert await names(tools, depth=0, pattern="*.md") == ["docs/a.md", "docs/deep/b.md", "readme.md", "한글/문서.md"]
    assert await names(tools, depth=0, pattern="docs/**/*.txt") == ["docs/deep/er/c.txt"]
    by_size = await tools.data("list", depth=0, sort="size", limit=2)
    assert [one["name"] for one in by_size["entries"]] == ["c.txt", "main.py"]
    more = await tools.data("list", depth=0, sort="size", limit=2, cursor=by_size["cursor"])
    assert [one["name"] for one in more["entries"]] == ["a.md", "문서.md"]
    with pytest.raises(InvalidParams, match="tree"):
        await tools("list", form="tree", sort="size")


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_pages_give_everything_once(serve: Any, depth: int, limit: int) -> None:
    files = {f"{a}/{b}/{c}.txt": "x" for a in "abc" for b in "de" for c in "fgh"} | {"z.txt": ""}
    tools = await serve(files=files)
    whole = await names(tools, depth=depth, limit=1000)
    got, asked = list[str](), dict[str, Any]()
    for _ in range(60):
        page = await tools.data("list", depth=depth, limit=limit, **asked)
        got += [one["uri"].removeprefix("file://") for one in page["entries"]]
        if "cursor" not in page:
            break
        asked = {"cursor": page["cursor"]}
    assert got == whole
    assert len(set(got)) == len(got)


async def test_a_long_listing_stays_inside_of_the_budget(serve: Any) -> None:
    tools = await serve(files={f"{n:04d}-{'name' * 30}.txt": "" for n in range(400)})
    result = await tools("list", limit=1000)
    assert "cursor" in result.structured
    assert len(result.content[0].text) + len(str(result.structured)) < 64_000


async def test_nothing_is_an_empty_list(serve: Any) -> None:
    tools = await serve()
    assert await tools.data("list") == {"entries": []}
    with pytest.raises(InvalidParams):
        await tools("list", cursor="nonsense")


async def test_names_are_found_by_part_or_pattern(serve: Any) -> None:
    tools = await serve(files=TREE)

    async def found(query: str, **asked: Any) -> list[str]:
        files = (await tools.data("search", query=query, kind="names", **asked))["files"]
        return [one["uri"].removeprefix("file://") for one in files]

    assert await found("DEEP") == ["docs/deep/b.md", "docs/deep/er/c.txt"]
    assert await found("*.md", target="docs") == ["docs/a.md", "docs/deep/b.md"]
    assert await found("문서") == ["한글/문서.md"]


async def test_lines_are_found_and_grouped_by_file(serve: Any) -> None:
    tools = await serve(files=TREE)
    result = await tools("search", query="beta", context=1)
    assert result.structured["files"] == [
        {"uri": "file://docs/a.md", "hits": [{"line": 1, "column": 7, "text": "alpha beta", "after": ["second"]}]},
        {"uri": "file://docs/deep/b.md", "hits": [{"line": 1, "column": 1, "text": "Beta"}]},
        {
            "uri": "file://src/main.py",
            "hits": [{"line": 1, "column": 5, "text": "def beta():", "after": ["    return 1"]}],
        },
    ]
    assert result.content[0].text.splitlines()[:3] == ["docs/a.md", "  1: alpha beta", "  2- second"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"query": "Beta"}, ["b.md"]),
        ({"query": "Beta", "case": False}, ["a.md", "b.md", "main.py"]),
        ({"query": "bet"}, ["a.md", "b.md", "main.py"]),
        ({"query": "bet", "word": True}, []),
        ({"query": r"^def \w+", "regex": True}, ["main.py"]),
        ({"query": "beta", "include": ["*.md"]}, ["a.md", "b.md"]),
        ({"query": "beta", "exclude": ["docs/*"]}, ["main.py"]),
        ({"query": "beta", "target": "docs/deep"}, ["b.md"]),
        ({"query": "안녕"}, ["문서.md"]),
    ],
)
async def test_a_query_can_be_narrowed(serve: Any, asked: dict[str, Any], found: list[str]) -> None:
    tools = await serve(files=TREE)
    files = (await tools.data("search", **asked))["files"]
    assert [one["uri"].rpartition("/")[2] for one in files] == found


async def test_hits_come_page_by_page(serve: Any) -> None:
    tools = await serve(files={f"{n:02d}.txt": "needle\nneedle\n" for n in range(30)})
    got, asked = list[str](), dict[str, Any]()
    for _ in range(40):
        page = await tools.data("search", query="needle", limit=7, **asked)
        got += [one["uri"] for one in page["files"]]
        if "cursor" not in page:
            break
        asked = {"cursor": page["cursor"]}
    assert got == sorted(set(got))
    assert len(got) == 30


async def test_hits_stay_inside_of_the_budget(serve: Any) -> None:
    line = "needle " + "word " * 60 + "\n"
    tools = await serve(files={"a.txt": line * 900, "b.txt": line})
    result = await tools("search", query="needle", limit=1000)
    assert len(result.content[0].text) + len(str(result.structured)) < 64_000
    assert [(one["uri"], one.get("more")) for one in result.structured["files"]] == [
        ("file://a.txt", True), ("file://b.txt", None),
    ]  # fmt: skip
    assert "[more hits in this file]" in result.content[0].text


async def test_a_secret_is_not_found_by_guessing(serve: Any) -> None:
    tools = await serve(files={"a.txt": "key = AKIAQ3EGRJ5XTWMZPBR7\n"})
    for guess in ("AKIAQ3EGRJ5XTWMZPBR7", "AKIA"):
        assert await tools.data("search", query=guess) == {"files": []}


POLICY = """
    sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"], write: true}}
    agents: {brand: {}}
    policy:
      - {who: brand, may: [list, read, search], what: "file://*"}
      - {who: brand, may: "*", what: "file://hr/*", effect: deny, why: "HR is not for agents", hide: true}
"""


async def test_who_may_not_read_a_folder_sees_nothing_of_it(serve: Any) -> None:
    tools = await serve(POLICY, {"docs/a.md": "pay day", "hr/pay.md": "pay day"})
    for form in ("flat", "tree"):
        said = await tools("list", who="brand", depth=0, form=form)
        assert "hr" not in said.content[0].text + str(said.structured)
    for target in ("hr", "nowhere"):
        with pytest.raises(NotFound, match=f"^Resource not found: file://{target}$"):
            await tools.data("list", who="brand", target=target)
    assert len((await tools.data("search", who="brand", query="pay"))["files"]) == 1
    assert (await tools.data("search", who="brand", query="pay", kind="names"))["files"] == []
    result = await tools("read", who="brand", targets=["docs/a.md", "hr/pay.md"])
    assert "pay day" not in result.content[1].text


async def test_names_that_gitignore_names_are_left_out_too(serve: Any) -> None:
    tools = await serve(files={".gitignore": "build/\n", "src/kept.txt": "x", "build/made.txt": "x"})
    found = await tools.data("search", query="*.txt", kind="names")
    assert [file["uri"] for file in found["files"]] == ["file://src/kept.txt"]


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize("depth", [1, 2])
async def test_a_folder_is_seen_through_the_first_file_that_may_be_seen(serve: Any, depth: int, limit: int) -> None:
    rules = """
        sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"]}}
        agents: {brand: {}}
        policy:
          - {who: brand, may: [list], what: "file://*"}
          - {who: brand, may: "*", what: ["file://*/a.md", "file://closed/*"], effect: deny}
    """
    files = {f"{folder}/{name}.md": "" for folder in ("closed", "half", "open") for name in "ab"}
    files |= {f"many/x/{n:03d}/a.md": "" for n in range(120)} | {"many/y/a.md": "", "none/a.md": "", "top.md": ""}
    tools = await serve(rules.replace("file://*/a.md", "file://**/a.md"), files)
    got, asked = list[str](), dict[str, Any]()
    for _ in range(20):
        page = await tools.data("list", who="brand", depth=depth, limit=limit, **asked)
        got += [one["uri"].removeprefix("file://") for one in page["entries"]]
        if "cursor" not in page:
            break
        asked = {"cursor": page["cursor"]}
    below = ["half/b.md", "open/b.md", "many/x", "many/y"] if depth == 2 else []
    assert got == sorted([*below, "half", "many", "none", "open", "top.md"])


async def test_folders_of_several_roots_are_one(serve: Any, tmp_path: Any) -> None:
    for root, name in (("one", "d/x.md"), ("two", "d/a.md"), ("two", "e/b.md"), ("two", "only.md")):
        (tmp_path / root / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / root / name).write_text("", encoding="utf-8")
    tools = await serve('sources: {work: {kind: file, uris: relative, roots: [./one, ./two], extensions: ["*"]}}')
    assert await names(tools) == ["d", "e", "only.md"]
    assert [(await tools.data("list", limit=1))["entries"][0]["name"]] == ["d"]


async def test_a_folder_whose_files_lead_nowhere_is_empty(serve: Any) -> None:
    tools = await serve(files={"good/z.md": "z"})
    for folder in ("dead", "good"):
        (tools.root / folder).mkdir(exist_ok=True)
        (tools.root / folder / "a.md").symlink_to("nowhere.md")
    assert await names(tools) == ["dead", "good"]
    assert await names(tools, target="dead") == []


@pytest.mark.parametrize("spelling", ["relative", "absolute"])
async def test_targets_mean_the_same_in_every_spelling(serve: Any, spelling: str) -> None:
    source = f'{{kind: file, roots: [./work], extensions: ["*"], write: true, uris: {spelling}}}'
    tools = await serve(f"sources: {{work: {source}}}\ntoolsets: [files, filesystem]", TREE)
    root = str(tools.root)
    for target in ("", ".", "/", "file://", root, f"file://{root}"):
        assert (await tools.text("list", target=target)).splitlines()[:2] == ["docs/", "readme.md  5 bytes"]
        assert (await tools.text("search", query="beta", target=target)).splitlines()[0] == "docs/a.md"
    for target in ("docs", f"{root}/docs", f"file://{root}/docs"):
        assert (await tools.text("list", target=target)).splitlines() == ["a.md  18 bytes", "deep/"]
        assert await tools.text("list_directory", path=target) == "[FILE] a.md\n[DIR] deep"
    for target in ("readme.md", f"{root}/readme.md"):
        assert await tools.text("read", target=target) == "hello"
    assert (await tools.text("list_directory", path=".")).splitlines()[0] == "[DIR] docs"
    folder = (await tools.data("list"))["entries"][0]["uri"]
    assert (await tools.data("list", target=folder))["entries"][0]["name"] == "a.md"


async def test_a_file_over_the_read_limit_is_searched_in_parts(serve: Any) -> None:
    lines = [f"line {n} 일반 내용\n" for n in range(1, 20_001)]
    lines[14_999] = "the needle 바늘 is here\n"
    rules = 'sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"]}}\nlimits: {read: 100KB}'
    tools = await serve(rules, {"big.log": "".join(lines), "small.txt": "needle"})
    for query in ("needle 바늘", "NEEDLE 바늘".lower(), "바늘"):
        found = await tools.data("search", query=query, context=1)
        (hit,) = found["files"][0]["hits"]
        assert (found["files"][0]["uri"], hit["line"], hit["before"]) == (
            "file://big.log",
            15_000,
            ["line 14999 일반 내용"],
        )
    assert len((await tools.data("search", query="needle"))["files"]) == 2


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_a_cursor_says_nothing_to_its_bearer_and_cannot_be_made(serve: Any, limit: int) -> None:
    rules = """
        sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"]}}
        agents: {brand: {}, other: {}}
        policy:
          - {who: "*", may: [list, read, search], what: "file://*"}
          - {who: brand, may: "*", what: ["file://*-secret.txt", "file://hid/*"], effect: deny}
    """
    files = {f"{name}{end}.txt": "needle" for name in "abcdef" for end in ("", "-secret")} | {"hid/h.txt": "needle"}
    tools = await serve(rules, files)
    for tool, asked in (("list", {}), ("search", {"query": "needle"}), ("search", {"query": "txt", "kind": "names"})):
        page = await tools.data(tool, who="brand", limit=limit, **asked)
        cursor = page["cursor"]
        raw = base64.urlsafe_b64decode(cursor + "==")
        assert not any(word in raw for word in (b"txt", b"secret", b"hid", b"file"))
        for bad in (cursor[:-2], cursor[::-1], "W10", "\ud800"):
            with pytest.raises(InvalidParams):
                await tools.data(tool, who="brand", limit=limit, cursor=bad, **asked)
        with pytest.raises(InvalidParams):
            await tools.data(tool, who="other", limit=limit, cursor=cursor, **asked)


async def test_both_halves_of_a_list_tell_what_a_file_calls_itself_to_whoever_may_read_it(serve: Any) -> None:
    rules = """
    agents: {reader: {}, lister: {}}
    policy:
      - {who: reader, may: [list, read], what: "file://*"}
      - {who: lister, may: [list], what: "file://*"}
    """
    tools = await serve(WRITABLE + dedent(rules), {"a.md": "# 첫 문서\nwords\n", "plain.txt": "words"})
    assert "a.md  첫 문서  " in await tools.text("list", who="reader")
    told = (await tools.data("list", who="reader"))["entries"]
    assert [one.get("title") for one in told] == ["첫 문서", None]
    assert "문서" not in await tools.text("list", who="lister")
    assert not [one for one in (await tools.data("list", who="lister"))["entries"] if "title" in one]
