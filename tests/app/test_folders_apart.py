"""An absolute address is its own root: with several folders, nothing that is asked of one happens in another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.app.asking import ask

from octavo.app import Octavo
from octavo.app.configuration import load_text, zero
from octavo.config.load import Loaded
from octavo.core.delivery import Delivery
from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, OctavoError
from octavo.core.glob import Glob
from octavo.core.query import ContentQuery, NameQuery, TextQuery
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry, shown
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F1")]


@pytest.fixture(autouse=True)
def base(tmp_path: Path) -> Path:
    """`both.md` is in both, `a.md` and `b.md` in one; `folder/in-b.md` only in the second."""
    for name in ("A/both.md", "A/a.md", "A/folder/in-a.md", "B/both.md", "B/b.md", "B/folder/in-b.md", "B/own/x.md"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"words of {name}\n", encoding="utf-8")
    return tmp_path


@asynccontextmanager
async def serving(base: Path, loaded: Loaded) -> AsyncIterator[Octavo]:
    async with Octavo(loaded, state=StateDirectory.open(base / "state")) as octavo:
        yield octavo


def folders(base: Path) -> Loaded:
    return zero(base / "A", base / "B", write=True, environ={"HOME": str(base)})


def configured(base: Path, policy: str, more: str = "") -> Loaded:
    text = (
        f"version: 1\nsources:\n  work: {{kind: file, write: true, extensions: ['*'], roots: [./A, ./B]{more}}}\n"
        f"toolsets: [files, filesystem]\nagents: {{me: {{}}}}\npolicy:\n{policy}"
    )
    return load_text(text, file=base / "octavo.yaml", environ={})


def loads(base: Path) -> list[tuple[Loaded, str, str]]:
    """What serves them, and how their folders are known there."""
    relative = configured(base, '  - {who: "*", may: "*", what: "*"}\n', ", uris: relative")
    return [(folders(base), f"{base}/A", f"{base}/B"), (relative, "/A", "/B"), (relative, f"{base}/A", f"{base}/B")]


def tree(base: Path) -> dict[str, str]:
    return {
        str(file.relative_to(base)): file.read_text(encoding="utf-8")
        for root in ("A", "B")
        for file in sorted((base / root).rglob("*"))
        if file.is_file()
    }


async def refused(octavo: Octavo, op: Any, uri: str, arguments: Any = {}) -> type[OctavoError]:
    with pytest.raises(OctavoError) as caught:
        await ask(octavo, None, op, uri, arguments)
    return type(caught.value)


async def tool(octavo: Octavo, name: str, **given: Any) -> Any:
    return await ask(octavo, None, "invoke", f"tool://{name}", given)


async def found(octavo: Octavo, scope: str, query: Any) -> list[str]:
    page: Any = await ask(octavo, None, "search", scope, {"query": query}, limit=100)
    return sorted(str(one.ref).rpartition("/")[2] for one in page.items)


@pytest.mark.parametrize("number", range(3))
async def test_what_only_another_folder_has_is_not_there(base: Path, number: int) -> None:
    loaded, first, second = loads(base)[number]
    before = tree(base)
    async with serving(base, loaded) as octavo:
        for uri in (f"file://{first}/b.md", "file://b.md?root=1", f"file://{second}/a.md"):
            for op in ("read", "stat", "delete"):
                assert await refused(octavo, op, uri) is NotFound, (op, uri)
            assert await refused(octavo, "write", uri, {"body": "x", "mode": "append", "if_match": "1"}) is Conflict
            assert await refused(octavo, "move", uri, {"to": Ref.parse(f"file://{first}/moved.md")}) is NotFound
        assert await refused(octavo, "delete", f"file://{first}/own") is NotFound
        assert await refused(octavo, "read", f"file://{first}/own") is NotFound
        assert await refused(octavo, "read", f"file://{second}/own") is InvalidParams
        assert tree(base) == before
        assert (await ask(octavo, None, "read", "file://b.md")).body == "words of B/b.md\n"


@pytest.mark.parametrize("number", range(3))
async def test_a_file_is_made_in_the_folder_that_its_address_names(base: Path, number: int) -> None:
    loaded, first, second = loads(base)[number]
    async with serving(base, loaded) as octavo:
        for place, there, name in (
            (first, "A", "b.md"), (second, "B", "a.md"), (first, "A", "own/new.md"), (second, "B", "new.md"),
        ):  # fmt: skip
            await ask(octavo, None, "write", f"file://{place}/{name}", {"body": f"made {name}"})
            assert (base / there / name).read_text(encoding="utf-8") == f"made {name}"
        assert (base / "B/b.md").read_text(encoding="utf-8") == "words of B/b.md\n"
        await ask(octavo, None, "copy", f"file://{first}/a.md", {"to": Ref.parse(f"file://{first}/own/x.md")})
        assert (base / "A/own/x.md").exists()
        assert (base / "B/own/x.md").read_text(encoding="utf-8") == "words of B/own/x.md\n"
        await ask(octavo, None, "undo", f"file://{second}", {"count": 1})
        assert not (base / "B/new.md").exists()
        assert (base / "A/own/x.md").exists()
        await ask(octavo, None, "delete", f"file://{first}/b.md")
        assert (base / "B/b.md").exists()


@pytest.mark.parametrize("number", range(3))
async def test_lists_and_searches_of_a_folder_hold_nothing_of_another(base: Path, number: int) -> None:
    loaded, first, second = loads(base)[number]
    async with serving(base, loaded) as octavo:
        for root, own in ((first, ["a.md", "both.md", "in-a.md"]), (second, ["b.md", "both.md", "in-b.md", "x.md"])):
            page: Any = await ask(octavo, None, "list", f"file://{root}", limit=100)
            assert sorted(one.ref.name for one in page.items) == own
            assert await found(octavo, f"file://{root}", NameQuery("*.md")) == own
            assert await found(octavo, f"file://{root}", ContentQuery(text="words")) == own
            assert await found(octavo, f"file://{root}/folder", ContentQuery(text="words")) == own[2:3]
            ranked = await found(octavo, f"file://{root}", TextQuery("words"))
            with anyio.fail_after(30):
                while len(ranked) < len(own):  # the index learns
                    ranked = await found(octavo, f"file://{root}", TextQuery("words"))
            assert ranked == own
            asked = {"argument": "path", "prefix": f"{root}/folder/", "given": {}, "template": "file://{+path}"}
            assert await ask(octavo, None, "complete", "file://", asked) == [f"{root}/folder/{own[2]}"] or number == 2


async def test_the_tools_of_the_file_system_server_stay_in_the_folder_of_a_path(base: Path) -> None:
    loaded = configured(base, '  - {who: "*", may: "*", what: "*"}\n')
    async with serving(base, loaded) as octavo:
        before = tree(base)
        with pytest.raises(NotFound):
            await tool(octavo, "read_text_file", path="/A/b.md")
        with pytest.raises(NotFound):
            await tool(octavo, "edit_file", path="/A/b.md", edits=[{"oldText": "words", "newText": "gone"}])
        with pytest.raises(NotFound):
            await tool(octavo, "delete", target="/A/b.md")
        assert tree(base) == before
        said = {
            name: repr(await tool(octavo, name, **given))
            for name, given in (
                ("list_directory", {"path": "/A"}),
                ("directory_tree", {"path": "/A"}),
                ("search_files", {"path": "/A", "pattern": "**/*.md"}),
                ("list", {"target": "/A", "depth": 0}),
                ("search", {"target": "/A", "query": "words", "kind": "content"}),
            )
        }
        for name, text in said.items():
            assert "a.md" in text, name
            assert not [one for one in ("b.md", "in-b.md", "own") if one in text], (name, text)
        await tool(octavo, "write_file", path="/A/b.md", content="new")
        assert (base / "A/b.md").read_text(encoding="utf-8") == "new"
        assert (base / "B/b.md").read_text(encoding="utf-8") == "words of B/b.md\n"


@pytest.mark.parametrize(
    ("what", "closed", "open_"),
    [
        ("file:///A/*", ["file:///A/both.md", "file://both.md", "file://both.md?root=1", "file:///A/new.md"],
         ["file:///B/both.md", "file://both.md?root=2", "file:///B/b.md"]),
        ("file:///B/*", ["file:///B/both.md", "file://both.md?root=2", "file://b.md", "file:///B/new.md"],
         ["file:///A/both.md", "file://both.md", "file://both.md?root=1"]),
        ("file://both.md", ["file:///A/both.md", "file:///B/both.md", "file://both.md", "file://both.md?root=1"],
         ["file:///A/a.md", "file:///B/b.md"]),
    ],
)  # fmt: skip
async def test_a_rule_holds_in_every_spelling(base: Path, what: str, closed: list[str], open_: list[str]) -> None:
    policy = f'  - {{who: "*", may: "*", what: "*"}}\n  - {{who: "*", may: "*", what: "{what}", effect: deny}}\n'
    async with serving(base, configured(base, policy)) as octavo:
        for _ in range(2):  # from the cache too
            for uri in open_:
                assert (await ask(octavo, None, "read", uri)).body.startswith("words of")
            for uri in closed:
                assert await refused(octavo, "read", uri) is Forbidden
                assert await refused(octavo, "write", uri, {"body": "x"}) is Forbidden


async def test_an_answer_is_not_kept_for_another_folder(base: Path) -> None:
    async with serving(base, folders(base)) as octavo:
        spellings = {"file://both.md": "A", f"file://{base}/A/both.md": "A", f"file://{base}/B/both.md": "B"}
        for _ in range(2):
            for uri, root in spellings.items():
                assert (await ask(octavo, None, "read", uri)).body == f"words of {root}/both.md\n"
        for uri in (f"file://{base}/A/both.md", "file://both.md"):
            await ask(octavo, None, "write", uri, {"body": uri})
            assert [(await ask(octavo, None, "read", one)).body for one in spellings][:2] == [uri, uri]
        (base / "A/both.md").unlink()
        await octavo.feed.followed(["file"])
        assert await refused(octavo, "read", f"file://{base}/A/both.md") is NotFound
        assert (await ask(octavo, None, "read", "file://both.md")).body == "words of B/both.md\n"


async def test_the_text_of_a_search_names_files_as_lists_do(base: Path) -> None:
    async with serving(base, folders(base)) as octavo:
        for kind in ("content", "names"):
            query = "words of B" if kind == "content" else "b*.md"
            result = await tool(octavo, "search", query=query, kind=kind)
            lines = result.content[0].text.splitlines()
            assert f"file://{base}/B/both.md" in lines
            assert not [line for line in lines if "?root=" in line]


async def test_the_text_of_a_list_tells_files_of_one_name_apart(base: Path) -> None:
    async with serving(base, folders(base)) as octavo:
        for given in ({}, {"sort": "size"}, {"form": "tree"}):
            lines = (await tool(octavo, "list", **given)).content[0].text.splitlines()
            both = [line for line in lines if line.startswith("both.md")]
            assert len(both) == 2, given
            assert both[1].endswith(f"  file://{base}/B/both.md"), given
            assert "file://" not in both[0], given


async def told_below(octavo: Octavo, target: str, after: int) -> list[str]:
    structured = (await tool(octavo, "changes", target=target, after=after)).structured
    return [f"{one['type'].removeprefix('resource/')} {one['uri']}" for one in structured["changes"]]


async def told_by_a_pattern(octavo: Octavo, pattern: str, heard: list[Change]) -> list[str]:
    """What whoever subscribed to the pattern is told of these changes."""
    who, glob = octavo.works.identity.launched(None), Glob(pattern)
    found: list[str] = []
    for change in heard:
        delivery = Delivery(octavo.works, change)

        def covers(ref: Ref, entry: Entry | None, of: Delivery = delivery) -> bool:
            return bool(of.covering({"": glob}, ref, shown(ref, entry)))

        told = delivery.told(who, wanted=covers)
        found += [f"{told.kind} {told.shown}"] if told is not None else []
    return found


async def heard_until(octavo: Octavo, act: Callable[[], object], count: int) -> list[Change]:
    heard: list[Change] = []
    enough = anyio.Event()

    def hear(change: Change) -> None:
        heard.append(change)
        if len(heard) == count:
            enough.set()

    leave = octavo.feed.subscribe(hear)
    act()
    with anyio.fail_after(30):
        await enough.wait()
    leave()
    return heard


async def test_changes_below_one_folder_tell_nothing_of_the_others(base: Path) -> None:
    """Of the first one too, whose files need no word about where they are."""
    async with serving(base, folders(base)) as octavo:
        await octavo.feed.followed(["file"])
        before = octavo.feed.number()

        def write() -> None:
            for name in ("A/a.md", "B/b.md", "B/both.md", "A/new.md", "B/later.md"):
                (base / name).write_text("other", encoding="utf-8")

        await heard_until(octavo, write, 5)
        a, b = f"file://{base}/A", f"file://{base}/B"
        assert sorted(await told_below(octavo, a, before)) == [f"created {a}/new.md", f"updated {a}/a.md"]
        of_b = [f"created {b}/later.md", f"updated {b}/b.md", f"updated {b}/both.md"]
        assert sorted(await told_below(octavo, b, before)) == of_b
        assert len(await told_below(octavo, "file://", before)) == 5


async def test_a_file_that_another_one_hid_has_not_moved_for_whoever_names_its_folder(base: Path) -> None:
    """Its plain address has come to mean another file. The address in lists is what it was."""
    async with serving(base, folders(base)) as octavo:
        await octavo.feed.followed(["file"])
        before, a, b = octavo.feed.number(), f"file://{base}/A", f"file://{base}/B"
        for act, kind in (((base / "A/both.md").unlink, "deleted"), (lambda: (base / "A/both.md").touch(), "created")):
            heard = await heard_until(octavo, act, 2)
            for pattern in ("file:///*", "file://*", f"{a}/*", f"{a}/both.md", "**"):
                assert await told_by_a_pattern(octavo, pattern, heard) == [f"{kind} {a}/both.md"], pattern
            assert await told_by_a_pattern(octavo, f"{b}/*", heard) == []
            assert await told_by_a_pattern(octavo, f"{b}/both.md", heard) == []
            plain = await told_by_a_pattern(octavo, "file://both.md", heard)
            assert [one.partition(" ")[0] for one in plain] == ["updated"]
        assert await told_below(octavo, a, before) == [f"deleted {a}/both.md", f"created {a}/both.md"]
        assert await told_below(octavo, b, before) == []


@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_a_list_gives_folders_addresses_of_the_form_that_files_have(base: Path, depth: int) -> None:
    """A relative one begins with a name that other programs take for a host, and write small."""
    (base / "A/Docs").mkdir()
    (base / "A/Docs/x.md").write_text("x", encoding="utf-8")
    async with serving(base, folders(base)) as octavo:
        told = (await tool(octavo, "list", depth=depth)).structured["entries"]
        found = {one["name"]: one["uri"] for one in told if one["type"] == "directory"}
        a, b = f"file://{base}/A", f"file://{base}/B"
        assert found == {"Docs": f"{a}/Docs", "folder": f"{a}/folder", "own": f"{b}/own"}
        for uri in found.values():
            assert (await tool(octavo, "list", target=uri)).structured["entries"]
        in_both = (await tool(octavo, "list", target="folder")).structured["entries"]
        assert {one["uri"] for one in in_both} == {f"{a}/folder/in-a.md", f"{b}/folder/in-b.md"}


async def test_a_change_of_a_file_that_another_one_hides_is_none_of_their_relative_address(base: Path) -> None:
    """Which reads the first one, and that is what it was. Patterns over many cover what lists below them give."""
    async with serving(base, folders(base)) as octavo:
        (base / "B/folder/in-a.md").touch()
        await octavo.feed.followed(["file"])
        own = f"file://{base}/B/folder/in-a.md"
        heard = await heard_until(octavo, lambda: (base / "B/folder/in-a.md").write_text("other", encoding="utf-8"), 1)
        for pattern in ("file://folder/in-a.md", f"file://{base}/A/*", f"file://{base}/A/folder/in-a.md"):
            assert await told_by_a_pattern(octavo, pattern, heard) == [], pattern
        for pattern in (own, f"file://{base}/B/*", "file://folder/*", "file://*", "**"):
            assert await told_by_a_pattern(octavo, pattern, heard) == [f"updated {own}"], pattern
