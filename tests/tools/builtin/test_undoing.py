"""`undo` keeps its word in every source that can be written, and nobody promises it where it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.tools.builtin.conftest import Serve, Tools

from octavo.core.errors import ApprovalRequired, Conflict, Forbidden, InvalidParams
from octavo.core.operations import arguments_of
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F5", "T4", "T5")]

# Each kind of source that can be written, by its scheme; and whether it can take back what was done.
PLUGIN = """
from collections.abc import Sequence
from octavo.core.values import Past, Undone
from octavo.core.ref import Ref
from octavo.sources.memory import MemorySource
import time

class Remembers(MemorySource):
    '''Takes back what was written and deleted.'''
    def __init__(self, *given):
        super().__init__(*given)
        self._past = []

    async def write(self, ref, body, *, by="", **asked):
        held = self._held.get(ref.segments)
        entry = await super().write(ref, body, by=by, **asked)
        self._keep("write", ref, by, held)
        return entry

    async def delete(self, ref, *, by="", **asked):
        held = self._held[ref.segments] if ref.segments in self._held else None
        await super().delete(ref, by=by, **asked)
        self._keep("delete", ref, by, held)

    def _keep(self, op, ref, by, held):
        past = Past(op, ref, None, time.time(), undone=False, id=str(len(self._past)))
        self._past.append((by, past, None if held is None else held.declared.body))

    async def history(self, by, limit=20, *, standing=False):
        return [past for who, past, _ in reversed(self._past) if who == by][:limit]

    async def undo(self, by, *, count=1, only=None):
        done = []
        for one in [one for one in reversed(self._past) if one[0] == by][:count]:
            self._past.remove(one)
            _, past, body = one
            if body is None:
                await super().delete(past.ref, if_match=None)
            else:
                await super().write(past.ref, body, if_match=None)
            done.append(Undone(past.op, past.ref, "restored"))
        return done

def register(octavo):
    octavo.source(MemorySource("forgets", {"a.txt": "one"}))
    octavo.source(Remembers("remembers", {"a.txt": "one"}))
"""
SOURCES = """
    sources:
      main: {kind: file, roots: [./work], extensions: ["*"], write: true}
      work: {kind: file, scheme: work, roots: [./one, ./two], extensions: ["*"], write: true}
      store: {kind: file, scheme: kept, roots: [./docs], extensions: ["*"], write: true, expose: false}
      docs: {kind: doc, store: store, path: docs}
      fixed: {kind: memory, scheme: fixed, resources: {a.txt: {text: one}}}
    plugins: [{path: ./plugin.py}]
    agents: {ann: {}, bob: {}}
"""
NEVER = '    policy: [{who: "*", may: "*", what: "**", approve: never}]\n'
FILES = ("file", "work")
OPS: dict[str, dict[str, Any]] = {
    "write a new one": {"tool": "write", "target": "new.txt", "content": "x"},
    "write": {"tool": "write", "target": "a.txt", "content": "two"},
    "append": {"tool": "write", "target": "a.txt", "content": "two", "mode": "append"},
    "edit": {"tool": "edit", "target": "a.txt", "edits": [{"old": "one", "new": "two"}]},
    "delete": {"tool": "delete", "target": "a.txt"},
    "delete a folder": {"tool": "delete", "target": "deep"},
    "move": {"tool": "move", "target": "a.txt", "to": "b.txt"},
    "move over another": {"tool": "move", "target": "a.txt", "to": "deep/c.txt", "overwrite": True},
    "copy": {"tool": "copy", "target": "a.txt", "to": "b.txt"},
    "make a folder": {"tool": "create_directory", "target": "new"},
}
SIMPLE = ("write a new one", "write", "append", "delete")  # what every source that can be written can do


def asked(scheme: str, op: str) -> tuple[str, dict[str, Any]]:
    given = dict(OPS[op])
    for key in ("target", "to"):
        if key in given:
            given[key] = f"{scheme}://{given[key]}"
    return given.pop("tool"), given


async def served(serve: Serve, tmp_path: Path, policy: str = NEVER) -> Tools:
    (tmp_path / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    for folder in ("work", "one", "two", "docs"):
        (tmp_path / folder / "deep").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "a.txt").write_text("one", encoding="utf-8")
        (tmp_path / folder / "deep" / "c.txt").write_text("deep", encoding="utf-8")
    (tmp_path / "docs" / "docs").mkdir(exist_ok=True)
    (tmp_path / "docs" / "docs" / "d.md").write_text("---\ntitle: D\n---\none", encoding="utf-8")
    return await serve(SOURCES + policy)


async def everything(tools: Tools, scheme: str) -> dict[str, Any]:
    """What a source holds, folders too."""
    works = tools.octavo.works

    async def ask(op: Any, ref: Ref, **arguments: Any) -> Any:
        return await works.ask(
            Call(op, ref, works.identity.launched("ann"), Trail(), str(ref), arguments_of(op, arguments))
        )

    held: dict[str, Any] = {
        str(entry.ref): (await ask("read", entry.ref)).body for entry in (await ask("list", Ref(scheme))).items
    }
    folders = await ask("folders", Ref(scheme), depth=None, most=100) if scheme in FILES else ()
    return held | dict.fromkeys(map(str, folders))


ROWS = [
    *((scheme, op) for scheme in FILES for op in OPS),
    *(("remembers", op) for op in SIMPLE),
]


@pytest.mark.parametrize("by", ["newest", "target"])
async def test_undo_takes_back_every_change_in_every_source_that_says_so(serve: Serve, tmp_path: Path, by: str) -> None:
    tools = await served(serve, tmp_path)
    for scheme, op in ROWS:
        before = await everything(tools, scheme)
        tool, given = asked(scheme, op)
        done = await tools.text(tool, who="ann", **given)
        assert await everything(tools, scheme) != before, (scheme, op)
        assert ("undo brings it back" in done) is (tool == "delete"), (scheme, op)
        where = f"{scheme}://" if scheme == "remembers" else given["to" if tool == "copy" else "target"]
        undone = (await tools.data("undo", who="ann", **({} if by == "newest" else {"target": where})))["undone"]
        assert len(undone) == 1 and undone[0]["uri"].startswith(f"{scheme}://"), (scheme, op)
        assert await everything(tools, scheme) == before, (scheme, op)
    assert (await tools.data("undo", who="ann"))["undone"] == []


@pytest.mark.parametrize("op", SIMPLE)
async def test_where_nothing_can_be_taken_back_nobody_promises_it(serve: Serve, tmp_path: Path, op: str) -> None:
    tools = await served(serve, tmp_path)
    tool, given = asked("forgets", op)
    assert "undo" not in await tools.text(tool, who="ann", **given)
    assert (await tools.data("undo", who="ann"))["undone"] == []
    with pytest.raises(InvalidParams, match="cannot undo"):
        await tools("undo", who="ann", target="forgets://")


@pytest.mark.parametrize("op", SIMPLE)
async def test_a_human_is_asked_only_where_nothing_can_be_taken_back(serve: Serve, tmp_path: Path, op: str) -> None:
    tools = await served(serve, tmp_path, "")
    tool, given = asked("forgets", op)
    with pytest.raises(ApprovalRequired):
        await tools(tool, who="ann", **given)
    for scheme in (*FILES, "remembers"):
        tool, given = asked(scheme, op)
        await tools(tool, who="ann", **given)
    await tools("undo", who="ann", count=3)


@pytest.mark.parametrize("scheme", ["fixed", "doc"])
async def test_what_cannot_be_written_is_neither_changed_nor_undone(serve: Serve, tmp_path: Path, scheme: str) -> None:
    tools = await served(serve, tmp_path)
    for call in ("write", "delete", "undo"):
        more = {"content": "x"} if call == "write" else {}
        with pytest.raises(Forbidden):
            await tools(call, who="ann", target=f"{scheme}://a.txt", **more)


async def test_undo_without_a_target_takes_back_the_newest_changes_of_the_caller_over_all_sources(
    serve: Serve, tmp_path: Path
) -> None:
    tools = await served(serve, tmp_path)
    for n, scheme in enumerate(("work", "file", "remembers", "work", "file")):
        await tools("write", who="ann", target=f"{scheme}://n{n}.txt", content="x")
    await tools("write", who="bob", target="work://bob.txt", content="x")
    first = (await tools.data("undo", who="ann"))["undone"]
    more = (await tools.data("undo", who="ann", count=10))["undone"]
    told = [one["uri"] for one in (*first, *more)]
    assert told == [
        "file:///work/n4.txt",
        "work://n3.txt",
        "remembers://n2.txt",
        "file:///work/n1.txt",
        "work://n0.txt",
    ]
    assert (tmp_path / "one" / "bob.txt").exists()


async def test_a_target_is_taken_back_past_newer_changes_elsewhere(serve: Serve, tmp_path: Path) -> None:
    tools = await served(serve, tmp_path)
    await tools("write", who="ann", target="work://a.txt", content="two")
    await tools("delete", who="ann", target="work://deep")
    await tools("write", who="ann", target="work://new.txt", content="x")
    await tools("undo", who="ann", target="work://deep/c.txt")  # which went with its folder
    assert (tmp_path / "one" / "deep" / "c.txt").read_text(encoding="utf-8") == "deep"
    await tools("undo", who="ann", target="work://a.txt")
    assert (tmp_path / "one" / "a.txt").read_text(encoding="utf-8") == "one"
    assert (tmp_path / "one" / "new.txt").exists()
    assert (await tools.data("undo", who="ann", target="work://a.txt"))["undone"] == []


async def test_where_one_cannot_be_taken_back_those_before_it_stay_taken_back(serve: Serve, tmp_path: Path) -> None:
    tools = await served(serve, tmp_path)
    for scheme in ("work", "file", "work"):
        await tools("write", who="ann", target=f"{scheme}://{scheme}.txt", content="x")
    (tmp_path / "work" / "file.txt").write_text("by somebody else", encoding="utf-8")
    undone = (await tools.data("undo", who="ann", count=3))["undone"]
    assert [one["uri"] for one in undone] == ["work://work.txt"]
    with pytest.raises(Conflict, match=r"file:///work/file\.txt has changed since"):
        await tools("undo", who="ann", count=3)


async def test_what_its_caller_may_no_longer_write_is_not_taken_back(serve: Serve, tmp_path: Path) -> None:
    tools = await served(serve, tmp_path)
    await tools("write", who="ann", target="work://a.txt", content="two")
    tools = await serve(SOURCES + NEVER.replace('"**"', '["tool://*", "file://*"]'))
    with pytest.raises(Forbidden):
        await tools("undo", who="ann")
    assert (tmp_path / "one" / "a.txt").read_text(encoding="utf-8") == "two"
