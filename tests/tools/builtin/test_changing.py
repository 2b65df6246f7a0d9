"""`write`, `edit`, `move`, `copy`, `delete`, `create_directory`, `undo`: nothing is damaged, nothing half done."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from typing import Any

import pytest

from octavo.core.errors import Conflict, Forbidden, InvalidParams, OctavoError, SourceUnavailable
from octavo.core.ref import Ref
from octavo.tools.builtin import SearchKinds, file_tools
from octavo.tools.builtin.answer_budget import Budget, Media
from octavo.tools.builtin.filesystem import filesystem_tools
from octavo.tools.builtin.seeds import seed_tools
from octavo.transport.mcp import shapes

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T4", "F5", "B4")]

BUDGET, MEDIA = Budget(64_000, 20_000), Media(700_000)
SECRET = "AKIAQ3EGRJ5XTWMZPBR7"


async def test_a_file_is_created_replaced_and_appended_to(serve: Any) -> None:
    tools = await serve()
    made = await tools.data("write", target="새 폴더/글.md", content="하나\n", mode="create")
    assert (made["uri"], made["size"]) == ("file://새%20폴더/글.md", 7)
    with pytest.raises(Conflict):
        await tools("write", target="새 폴더/글.md", content="x", mode="create")
    await tools("write", target="새 폴더/글.md", content="둘\n")
    await tools("write", target="새 폴더/글.md", content="셋\n", mode="append")
    assert (tools.root / "새 폴더/글.md").read_text(encoding="utf-8") == "둘\n셋\n"
    await tools("write", target="b.bin", base64="AAH/")
    assert (tools.root / "b.bin").read_bytes() == b"\0\1\xff"


@pytest.mark.parametrize(
    "wrong",
    [{}, {"content": "x", "base64": "eA=="}, {"base64": "!"}, {"base64": "eA==", "encoding": "cp949"}],
)
async def test_what_to_write_must_be_clear(serve: Any, wrong: dict[str, str]) -> None:
    tools = await serve()
    with pytest.raises(InvalidParams):
        await tools("write", target="a.txt", **wrong)
    assert not (tools.root / "a.txt").exists()


async def test_a_stale_version_is_a_conflict(serve: Any) -> None:
    tools = await serve(files={"a.md": "one\n"})
    known = await tools.data("info", target="a.md")
    await tools("write", target="a.md", content="two\n", if_match=known["etag"])
    edits = [{"old": "two", "new": "three"}]
    for call in (
        tools("write", target="a.md", content="x", if_match=known["version"]),
        tools("edit", target="a.md", edits=edits, if_match=known["version"]),
        tools("delete", target="a.md", if_match=known["etag"]),
        tools("move", target="a.md", to="b.md", if_match=known["etag"]),
    ):
        with pytest.raises(Conflict):
            await call
    assert (tools.root / "a.md").read_text(encoding="utf-8") == "two\n"


async def test_an_edit_answers_with_diff_and_places(serve: Any) -> None:
    tools = await serve(files={"a.md": "one\ntwo\nthree\n"})
    asked = {"target": "a.md", "edits": [{"old": "one", "new": "1"}, {"old": "three", "new": "3"}]}
    dry = await tools("edit", **asked, dry_run=True)
    assert dry.structured["diff"].splitlines()[2:] == ["@@ -1,3 +1,3 @@", "-one", "+1", " two", "-three", "+3"]
    assert "Would change" in dry.content[0].text and "+3" in dry.content[0].text
    assert (tools.root / "a.md").read_text(encoding="utf-8") == "one\ntwo\nthree\n"
    done = await tools.data("edit", **asked)
    assert (done["added"], done["removed"]) == (2, 2)
    assert [place["line"] for place in done["places"]] == [1, 3]
    assert (tools.root / "a.md").read_text(encoding="utf-8") == "1\ntwo\n3\n"
    assert done["version"] == (await tools.data("info", target="a.md"))["version"]


async def test_a_patch_applies(serve: Any) -> None:
    tools = await serve(files={"a.md": "one\ntwo\nthree\n"})
    diff = (await tools.data("edit", target="a.md", edits=[{"old": "two", "new": "2"}], dry_run=True))["diff"]
    await tools("edit", target="a.md", patch=diff)
    assert (tools.root / "a.md").read_text(encoding="utf-8") == "one\n2\nthree\n"
    with pytest.raises(InvalidParams, match="Hunk 1"):
        await tools("edit", target="a.md", patch=diff)
    with pytest.raises(InvalidParams, match="one of the two"):
        await tools("edit", target="a.md")


async def test_an_ambiguous_edit_is_refused_with_line_numbers(serve: Any) -> None:
    tools = await serve(files={"a.md": "x\ny\nx\n"})
    with pytest.raises(InvalidParams, match="line 1, 3"):
        await tools("edit", target="a.md", edits=[{"old": "y", "new": "z"}, {"old": "x", "new": "z"}])
    assert (tools.root / "a.md").read_text(encoding="utf-8") == "x\ny\nx\n"
    await tools("edit", target="a.md", edits=[{"old": "x", "new": "z", "expected": "all"}])
    assert (tools.root / "a.md").read_text(encoding="utf-8") == "z\ny\nz\n"


@pytest.mark.parametrize("encoding", ["cp949", "utf-16", "utf-8-sig"])
async def test_an_edit_keeps_encoding_and_line_ends(serve: Any, encoding: str) -> None:
    text = "첫째 줄입니다. 안녕하세요\r\n둘째 줄입니다. 반갑습니다\r\n셋째\n"
    tools = await serve(files={"글.txt": text.encode(encoding)})
    await tools("edit", target="글.txt", edits=[{"old": "둘째 줄입니다.", "new": "가운데 줄입니다.\n하나 더"}])
    expected = text.replace("둘째 줄입니다.", "가운데 줄입니다.\r\n하나 더")
    assert (tools.root / "글.txt").read_bytes() == expected.encode(encoding)


async def test_a_secret_survives_an_edit_of_another_line(serve: Any) -> None:
    tools = await serve(files={"a.txt": f"key = {SECRET}\nport = 1\n"})
    done = await tools("edit", target="a.txt", edits=[{"old": "port = 1", "new": "port = 2"}])
    assert (tools.root / "a.txt").read_text(encoding="utf-8") == f"key = {SECRET}\nport = 2\n"
    assert SECRET not in done.content[0].text + str(done.structured)
    with pytest.raises(OctavoError) as refused:
        await tools("edit", target="a.txt", edits=[{"old": f"key = {SECRET[:-1]}x", "new": ""}])
    assert SECRET not in str(refused.value)


async def test_a_mark_never_takes_the_place_of_a_secret(serve: Any) -> None:
    tools = await serve(files={"a.txt": f"key = {SECRET}\nport = 1\n"})
    seen = await tools.text("read", target="a.txt")
    for call in (
        tools("write", target="a.txt", content=seen.replace("1", "2")),
        tools("edit", target="a.txt", edits=[{"old": "port = 1", "new": seen}]),
        tools("edit", target="a.txt", patch="@@ -2 +2 @@\n-port = 1\n+" + seen.splitlines()[0] + "\n"),
    ):
        with pytest.raises(InvalidParams, match="stands for a secret"):
            await call
    assert (tools.root / "a.txt").read_text(encoding="utf-8") == f"key = {SECRET}\nport = 1\n"


async def test_files_move_and_are_copied_and_never_over_others_unasked(serve: Any) -> None:
    tools = await serve(files={"a.md": "a", "b.md": "b"})
    assert (await tools.data("copy", target="a.md", to="new/c.md"))["uri"] == "file://new/c.md"
    for name in ("copy", "move"):
        with pytest.raises(Conflict):
            await tools(name, target="a.md", to="b.md")
    await tools("move", target="a.md", to="b.md", overwrite=True)
    assert not (tools.root / "a.md").exists()
    assert (tools.root / "b.md").read_text(encoding="utf-8") == "a"
    with pytest.raises(Forbidden):
        await tools("move", target="b.md", to="../b.md")


async def test_what_was_done_can_be_undone(serve: Any) -> None:
    tools = await serve(files={"a.md": "a"})
    await tools("create_directory", target="x/y")
    assert (tools.root / "x/y").is_dir()
    await tools("write", target="a.md", content="changed")
    await tools("delete", target="a.md")
    assert not (tools.root / "a.md").exists()
    undone = (await tools.data("undo"))["undone"]
    assert [(one["op"], one["uri"]) for one in undone] == [("delete", "file://a.md")]
    assert (tools.root / "a.md").read_text(encoding="utf-8") == "changed"
    assert len((await tools.data("undo", count=2))["undone"]) == 2
    assert (tools.root / "a.md").read_text(encoding="utf-8") == "a"


async def test_a_source_without_write_has_no_tools_to_write(serve: Any) -> None:
    tools = await serve(
        'sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"]}}', {"a.md": "a"}
    )
    with pytest.raises(InvalidParams, match="Unknown tool"):
        await tools("write", target="a.md", content="b")


def test_the_descriptions_are_small_and_whole() -> None:
    everything = SearchKinds(ranked=True, usual="ranked")
    for write, count in ((False, 5), (True, 12)):
        tools = file_tools(write=write, budget=BUDGET, media=MEDIA, searches=everything)
        offered = [shapes.tool(tool.info) for tool in tools]
        assert len(offered) == count
        assert len(json.dumps({"tools": offered}, ensure_ascii=False).encode()) / 4 < 2_500
        for one in offered:
            assert one["title"] and one["annotations"]["openWorldHint"] is True
            assert one["inputSchema"]["additionalProperties"] is False
            assert ("outputSchema" in one) is (one["name"] != "read")


def test_what_only_reads_says_so() -> None:
    files = partial(file_tools, budget=BUDGET, media=MEDIA)
    filesystem = partial(filesystem_tools, budget=BUDGET, media=MEDIA)
    for toolset in (files, filesystem, partial(seed_tools, budget=BUDGET)):
        reading = {tool.info.name for tool in toolset(write=False)}
        for tool in toolset(write=True):
            assert tool.info.hints.read_only is (tool.info.name in reading)
            assert not (tool.info.lane_safe and not tool.info.hints.read_only)


UNDOING = """
    sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"], write: true}}
    agents: {maker: {}}
    policy:
      - {who: maker, may: [list, read, write, delete], what: ["file://mine/*", "file://lost/*"]}
      - {who: maker, may: [invoke], what: "tool://*"}
"""


async def test_only_what_the_policy_has_looked_at_is_undone(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody with the same name changes one more thing, between the look and the deed."""
    tools = await serve(UNDOING)
    source = tools.octavo.works.dispatch.source("file")
    await tools("write", who="maker", target="mine/a.md", content="a")
    undo = type(source).undo

    async def late(self: Any, by: str, **asked: Any) -> Any:
        await self.write(Ref.parse("file://secret.md"), "x", if_match=None, by=by)
        return await undo(self, by, **asked)

    monkeypatch.setattr(type(source), "undo", late)
    with pytest.raises(Conflict, match="meanwhile"):
        await tools("undo", who="maker")
    assert (tools.root / "secret.md").exists() and (tools.root / "mine/a.md").exists()


async def test_what_is_undone_already_hides_nothing_from_the_policy(serve: Any) -> None:
    tools = await serve(UNDOING)
    source = tools.octavo.works.dispatch.source("file")
    await source.write(Ref.parse("file://secret.md"), "x", if_match=None, by="maker")  # when it still might
    await tools("write", who="maker", target="mine/a.md", content="a")
    await tools("undo", who="maker")
    with pytest.raises(Forbidden):
        await tools("undo", who="maker")
    assert (tools.root / "secret.md").exists()


@pytest.mark.parametrize("op", ["move", "copy"])
@pytest.mark.parametrize("to", [".git/a", "b.txt/c", "link/c"])
async def test_a_refused_move_or_copy_names_the_end_that_is_refused(serve: Any, op: str, to: str) -> None:
    tools = await serve(files={"a.txt": "a", "b.txt": "b", "d/x.txt": "x"})
    (tools.root / "link").symlink_to("d")
    with pytest.raises(OctavoError) as refused:
        await tools(op, target="a.txt", to=to)
    told = f"{refused.value.message} {refused.value.data}"
    assert f"file://{to}" in told and "a.txt" not in told


GUARDED = """
    sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"], write: true}}
    agents: {maker: {}}
    policy:
      - {who: maker, may: [list, read, write, delete], what: "file://mine/*"}
      - {who: maker, may: [invoke], what: "tool://*"}
"""


async def test_a_rule_against_the_other_end_names_it(serve: Any) -> None:
    tools = await serve(GUARDED, {"mine/a.txt": "a"})
    for op in ("move", "copy"):
        with pytest.raises(Forbidden) as refused:
            await tools(op, who="maker", target="mine/a.txt", to="other/b.txt")
        assert refused.value.message == "Access denied to resource: file://other/b.txt"
        assert refused.value.data["required_permission"] == "write"


async def test_a_link_can_be_deleted_by_whoever_may_delete_it_and_know_where_it_leads(serve: Any) -> None:
    tools = await serve(GUARDED, {"mine/a.txt": "a", "other/b.txt": "b"})
    for place in ("mine", "other"):
        (tools.root / place / "ln.txt").symlink_to("a.txt" if place == "mine" else "b.txt")
    (tools.root / "mine/across.txt").symlink_to("../other/b.txt")
    for name in ("other/ln.txt", "mine/across.txt"):
        with pytest.raises(Forbidden):
            await tools("delete", who="maker", target=name)
    await tools("delete", who="maker", target="mine/ln.txt")
    await tools("undo", who="maker")
    assert {p.name: os.readlink(p) for p in (tools.root / "mine").iterdir() if p.is_symlink()} == {
        "ln.txt": "a.txt", "across.txt": "../other/b.txt"
    }  # fmt: skip
    assert (tools.root / "other/b.txt").read_text(encoding="utf-8") == "b"


async def test_a_removed_journal_is_told_and_nothing_is_changed(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    tools = await serve(files={"b.txt": "b"})
    await tools("write", target="b.txt", content="before")
    source = tools.octavo.works.dispatch.source("file")
    shutil.rmtree(source._journal_path)
    for name, asked in (
        ("write", {"target": "b.txt", "content": "x"}),
        ("write", {"target": "new.txt", "content": "x"}),
        ("delete", {"target": "b.txt"}),
        ("undo", {}),
    ):
        for _ in range(3):
            with pytest.raises(SourceUnavailable) as refused:
                await tools(name, **asked)
            assert "journal folder" in str(refused.value.data["why"])
    assert [line for line in caplog.messages if "journal" in line] == [
        f"Nothing in file:// is changed: its journal {source._journal_path} was removed; restart to begin a new one"
    ]
    assert "no journal" in tools.octavo.ailing()["file"], "readiness and doctor tell of it"
    assert await tools.text("read", target="b.txt") == "before"
    assert not (tools.root / "new.txt").exists()
