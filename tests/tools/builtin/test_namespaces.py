"""`list` where more is served than files: namespaces, their collections, and filters over all of them."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.core.errors import InvalidParams, NotFound

pytestmark = pytest.mark.anyio

MIXED = """
sources:
  files: {kind: file, roots: [./work/files], extensions: [.txt]}
  store: {kind: file, roots: [./work/handbook], expose: false, extensions: [.md]}
  sops: {kind: sop, store: store}
  facts:
    kind: memory
    scheme: facts
    resources:
      office/hours: {text: "10-19", name: Opening hours, metadata: {status: active}}
agents: {brand: {}, press: {}, nobody: {}}
policy:
  - {who: brand, may: [list, read], what: ["file://*", "facts://*", "sop://brand/*"]}
  - {who: press, may: [list, read], what: "sop://brand/press"}
"""
SOP = "---\nid: {0}\ntitle: {1}\nversion: 1.0.0\nstatus: {2}\nfunction: func-{3}\n---\n"
FILES = {
    "files/a.txt": "a",
    "files/notes/b.txt": "bb",
    "handbook/sops/brand/brief.md": SOP.format("sop-brief", "브리프", "active", "brand"),
    "handbook/sops/brand/press.md": SOP.format("sop-press", "보도자료", "draft", "brand"),
    "handbook/sops/hr/pay.md": SOP.format("sop-pay", "급여", "active", "hr"),
}


@pytest.fixture
async def tools(serve: Any) -> Any:
    return await serve(MIXED, FILES)


async def lines(tools: Any, **asked: Any) -> list[str]:
    said: str = await tools.text("list", who="brand", **asked)
    return said.splitlines()


@pytest.mark.parametrize("target", ["", ".", "/"])
async def test_without_a_target_each_namespace_is_told_with_what_stands_in_it(tools: Any, target: str) -> None:
    assert await lines(tools, target=target) == [
        "file://", "file://a.txt  1 bytes", "file://notes/", "sop://", "sop://brand/", "facts://", "facts://office/"
    ]  # fmt: skip
    assert await lines(tools, target=target, depth=1) == ["file://", "sop://", "facts://"]
    assert (
        await tools.text("list", who="nobody", target=target)
        == "The folder is empty: nothing is in it that you may see"
    )


async def test_a_collection_is_shown_for_the_sake_of_one_entry_in_it(tools: Any) -> None:
    assert await tools.text("list", who="press") == "sop://\nsop://brand/"
    assert (await tools.text("list", who="press", target="sop://")) == "brand/"
    listed = await tools.data("list", who="press", target="sop://brand")
    assert [entry["uri"] for entry in listed["entries"]] == ["sop://brand/press"]


async def test_the_names_that_are_told_can_be_listed_and_read(tools: Any) -> None:
    entries = (await tools.data("list", who="brand", depth=0))["entries"]
    assert [entry["name"] for entry in entries if entry["uri"].endswith("://")] == ["file", "sop", "facts"]
    for entry in entries:
        if entry["type"] == "directory":
            assert (await tools.data("list", who="brand", target=entry["uri"]))["entries"]
        else:
            assert (await tools("read", who="brand", target=entry["uri"])).content


async def test_pages_go_on_from_namespace_to_namespace(tools: Any) -> None:
    whole = [entry["uri"] for entry in (await tools.data("list", who="brand", depth=0))["entries"]]
    for limit in (1, 2, 3):
        got, asked = list[str](), dict[str, Any]()
        while True:
            page = await tools.data("list", who="brand", depth=0, limit=limit, **asked)
            got += [entry["uri"] for entry in page["entries"]]
            if "cursor" not in page:
                break
            asked = {"cursor": page["cursor"]}
        assert got == whole
    with pytest.raises(InvalidParams):
        await tools("list", who="brand", cursor="nonsense")


async def test_a_tree_and_an_order_reach_over_all_of_them(tools: Any) -> None:
    assert (await lines(tools, depth=0, form="tree"))[:4] == [
        "file://",
        "  a.txt  1 bytes",
        "  notes/",
        "    b.txt  2 bytes",
    ]
    by_size = [line.split("  ")[0] for line in await lines(tools, depth=0, sort="size") if not line.endswith("/")]
    assert by_size[2:] == ["facts://office/hours", "file://notes/b.txt", "file://a.txt"]
    assert await lines(tools, pattern="*/*.txt", depth=0, filter={"mimeType": "text/*"}) == [
        "file://notes/b.txt  2 bytes"
    ]


@pytest.mark.seed("O2", "O16")
async def test_a_filter_picks_entries_out_of_one_or_all(tools: Any) -> None:
    assert [line.split("  ")[:2] for line in await lines(tools, filter={"status": "active"})] == [
        ["sop://brand/brief", "브리프"],
        ["facts://office/hours", "Opening hours"],
    ]
    assert [line.split("  ")[0] for line in await lines(tools, target="sop://", filter={"function": "brand"})] == [
        "brand/brief",
        "brand/press",
    ]
    draft = await tools.data("list", who="brand", target="sop://brand?status=draft")
    assert [(entry["name"], entry["metadata"]["status"]) for entry in draft["entries"]] == [("보도자료", "draft")]
    for asked in ({"filter": {"status": "deprecated"}}, {"target": "sop://brand?status=deprecated"}):
        assert await lines(tools, **asked) == ["Nothing here fits"]
    with pytest.raises(NotFound):
        await lines(tools, target="sop://hr?status=active")
    with pytest.raises(InvalidParams):
        await lines(tools, target="sop://brand?colour=red")
