"""F1: lists and events give absolute addresses, every spelling is read, and all of them are one resource."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.app.asking import ask

from octavo.app import Octavo
from octavo.app.configuration import load_text, zero
from octavo.config.load import Loaded
from octavo.config.problems import ConfigError
from octavo.core.errors import Forbidden, NotFound, OctavoError
from octavo.core.event import event
from octavo.core.query import NameQuery
from octavo.core.values import Change, Entry, News
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F1")]

NAMES = ("Docs/Read Me.md", "doc.txt", "hr/pay.md", "한국/소개.md")


@pytest.fixture(autouse=True)
def base(tmp_path: Path) -> Path:
    for root in ("work", "other", "elsewhere/work"):
        for name in NAMES if root == "work" else ("doc.txt", "own.md"):
            file = tmp_path / root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{root} {name}\n", encoding="utf-8")
    return tmp_path


def configured(base: Path, source: str, more: str = "") -> Loaded:
    text = f"version: 1\nsources:\n  work: {{kind: file, extensions: ['*'], {source}}}\n{more}"
    return load_text(text, file=base / "octavo.yaml", environ={})


@asynccontextmanager
async def serving(base: Path, loaded: Loaded) -> AsyncIterator[Octavo]:
    async with Octavo(loaded, state=StateDirectory.open(base / "state")) as octavo:
        yield octavo


async def listed(octavo: Octavo, who: str | None = None) -> list[str]:
    page: Any = await ask(octavo, who, "list", "file://", limit=100)
    return [str(entry.ref) for entry in page.items]


async def text(octavo: Octavo, uri: str, who: str | None = None) -> str:
    return str((await ask(octavo, who, "read", uri)).body)


def shown(prefix: str, names: Sequence[str] = NAMES) -> list[str]:
    return [f"file://{prefix}/{name.replace(' ', '%20')}" for name in names]


async def test_a_folder_on_stdio_is_known_by_its_path_on_the_machine(base: Path) -> None:
    async with serving(base, zero(base / "work", environ={"HOME": str(base)})) as octavo:
        assert await listed(octavo) == shown(str(base / "work"))


async def test_a_folder_over_http_is_known_by_its_name_alone(base: Path) -> None:
    async with serving(base, zero(base / "work", here=False, environ={"HOME": str(base)})) as octavo:
        assert await listed(octavo) == shown("/work")


@pytest.mark.parametrize(
    ("source", "prefix"),
    [
        ("roots: [./work]", "/work"),
        ("roots: [{path: ./work, as: /project/src}]", "/project/src"),
        ("roots: [{path: ./work, as: /}]", ""),
        ("uris: absolute, roots: [./elsewhere/../work]", "/work"),
    ],
)
async def test_with_a_configuration_what_as_says_or_the_name_of_the_folder(
    base: Path, source: str, prefix: str
) -> None:
    """Seed 004's file:///doc.txt among them."""
    async with serving(base, configured(base, source)) as octavo:
        assert await listed(octavo) == shown(prefix)
        for uri, name in zip(await listed(octavo), NAMES, strict=True):
            assert await text(octavo, uri) == f"work {name}\n"
            assert await text(octavo, f"file://{name.replace(' ', '%20')}") == f"work {name}\n"


async def test_where_relative_addresses_are_wanted_they_are_given(base: Path) -> None:
    async with serving(base, configured(base, "uris: relative, roots: [./work]")) as octavo:
        assert await listed(octavo) == [f"file://{name.replace(' ', '%20')}" for name in NAMES]
        assert await text(octavo, "file:///work/doc.txt") == "work doc.txt\n"


async def test_who_narrows_by_server_config_is_given_relative_addresses(base: Path) -> None:
    async with serving(base, configured(base, "roots: [./work]")) as octavo:
        who = octavo.works.identity.launched(None)
        left = await octavo.narrow(who, {"allowedDirectories": ["hr"]}, owns_process=True)
        assert await listed(octavo) == ["file://hr/pay.md"]
        assert left["allowedDirectories"] == ["/work/hr"]


@pytest.mark.parametrize(
    "roots", ["[./work, ./elsewhere/work]", "[./work, {path: ./other, as: /work}]", "[{path: ./work, as: /}, ./other]"]
)
def test_two_roots_that_would_be_shown_alike_are_an_error_that_says_as(base: Path, roots: str) -> None:
    with pytest.raises(ConfigError) as raised:
        configured(base, f"roots: {roots}")
    assert "as: /" in str(raised.value) and "roots" in str(raised.value)


async def test_a_file_behind_another_is_listed_by_the_address_of_its_root(base: Path) -> None:
    roots = "roots: [{path: ./other, as: /second}, {path: ./elsewhere/work, as: /third}]"
    async with serving(base, configured(base, roots)) as octavo:
        uris = await listed(octavo)
        assert uris == [
            "file:///second/doc.txt", "file:///third/doc.txt", "file:///second/own.md", "file:///third/own.md",
        ]  # fmt: skip
        assert [await text(octavo, uri) for uri in uris[:2]] == ["other doc.txt\n", "elsewhere/work doc.txt\n"]
        assert await text(octavo, "file://doc.txt?root=2") == "elsewhere/work doc.txt\n"


RULES = """agents: {brand: {}, ops: {}}
policy:
  - {who: "*", may: [list, read, watch, search, complete], what: "file://*"}
  - {who: brand, may: "*", what: "%s", effect: deny}
"""


@pytest.mark.parametrize("rule", ["file://hr/*", "file:///work/hr/*", "file://{base}/work/hr/*", "file://hr/pay.md"])
async def test_a_rule_holds_for_every_spelling_whichever_it_is_written_in(base: Path, rule: str) -> None:
    spellings = [f"{prefix}hr/pay.md" for prefix in ("file://", "file:///work/", f"file://{base}/work/")]
    async with serving(base, configured(base, "roots: [./work]", RULES % rule.format(base=base))) as octavo:
        for uri in spellings:
            assert await text(octavo, uri, "ops") == "work hr/pay.md\n"
            for op in ("read", "stat"):
                with pytest.raises(Forbidden) as refused:
                    await ask(octavo, "brand", op, uri)  # type: ignore[arg-type]
                assert refused.value.data["uri" if "uri" in refused.value.data else "resource"]
            assert await text(octavo, uri, "ops") == "work hr/pay.md\n"  # not because of what the cache has
        assert await listed(octavo, "brand") == [uri for uri in shown("/work") if "/hr/" not in uri]


async def test_one_change_is_told_of_all_spellings_and_read_in_all(base: Path) -> None:
    spellings = [f"{prefix}doc.txt" for prefix in ("file://", "file:///work/", f"file://{base}/work/")]
    async with serving(base, configured(base, "roots: [./work]")) as octavo:
        await octavo.feed.followed(["file"])
        for uri in spellings:
            assert await text(octavo, uri) == "work doc.txt\n"
        heard, told = anyio.Event(), list[Change]()

        def hear(change: Change) -> None:
            told.append(change)
            heard.set()

        octavo.feed.subscribe(hear)
        (base / "draft").write_text("changed\n", encoding="utf-8")
        (base / "draft").replace(base / "work/doc.txt")
        with anyio.fail_after(30):
            await heard.wait()
        assert [await text(octavo, uri) for uri in spellings] == ["changed\n"] * 3
        (change,) = told
        assert (str(change.ref), event(change)["uri"]) == ("file://doc.txt", "file:///work/doc.txt")
        for scope in ("file://", "file:///work", "file:///work/doc.txt", f"file://{base}/work"):
            news: News = await ask(octavo, None, "changes", scope, arguments={"after": change.seq - 1})
            assert [event(one)["uri"] for one in news.changes] == ["file:///work/doc.txt"], scope


async def test_what_is_gone_from_a_later_root_is_told_by_its_address_there(base: Path) -> None:
    roots = "roots: [./work, ./other]"
    async with serving(base, configured(base, roots)) as octavo:
        await octavo.feed.followed(["file"])
        heard, told = anyio.Event(), list[Change]()

        def hear(change: Change) -> None:
            told.append(change)
            heard.set()

        octavo.feed.subscribe(hear)
        (base / "other/own.md").unlink()
        with anyio.fail_after(30):
            await heard.wait()
        assert [(one["type"], one["uri"]) for one in map(event, told)] == [("resource/deleted", "file:///other/own.md")]


@pytest.mark.parametrize(("denied", "seen"), [("work", "other"), ("other", "work")])
async def test_who_hears_of_a_new_file_is_decided_by_the_root_in_which_it_stands(
    base: Path, denied: str, seen: str
) -> None:
    """Also where nobody has asked for it yet, and where another of its name stands elsewhere now."""
    rules = RULES % f"file:///{denied}/*"
    async with serving(base, configured(base, "roots: [./work, ./other]", rules)) as octavo:
        await octavo.feed.followed(["file"])
        before: News = await ask(octavo, "ops", "changes", "file://")
        hearing = asyncio.Queue[Change]()
        octavo.feed.subscribe(hearing.put_nowait)
        for root in ("work", "other"):
            for name in ("new.md", f"alone-{root}.md"):
                await _until(hearing, f"created file:///{root}/{name}", (base / root / name).touch)
        for root in ("work", "other"):
            for name in ("new.md", f"alone-{root}.md"):
                await _until(hearing, f"deleted file:///{root}/{name}", (base / root / name).unlink)
        news: News = await ask(octavo, "brand", "changes", "file://", arguments={"after": before.next})
        everything: News = await ask(octavo, "ops", "changes", "file://", arguments={"after": before.next})
        assert [event(one)["uri"] for one in everything.changes if f"/{denied}/" in event(one)["uri"]]
        names = ("new.md", f"alone-{seen}.md")
        told = [f"{kind} file:///{seen}/{name}" for kind in ("created", "deleted") for name in names]
        assert [_said(one) for one in news.changes] == told


def _said(change: Change) -> str:
    said = event(change)
    return f"{said['type'].removeprefix('resource/')} {said['uri']}"


async def _until(hearing: asyncio.Queue[Change], told: str, act: Callable[[], None]) -> None:
    act()
    with anyio.fail_after(30):
        while (listed := (await hearing.get()).listed) is None or _said(listed) != told:
            pass


async def test_no_answer_holds_a_path_of_the_server(base: Path) -> None:
    """Not with a configuration, and not over HTTP; neither in lists, nor in errors, nor in what server/config says."""
    for loaded in (
        zero(base / "work", here=False, environ={"HOME": str(base)}),
        configured(base, "roots: [./work, {path: ./other, as: /o}]", "toolsets: [files, filesystem]\n"),
    ):
        async with serving(base, loaded) as octavo:
            said: list[str] = [*await listed(octavo)]
            for uri in (
                "file:///work/none.md",
                "file://none.md",
                "file:///etc/passwd",
                "file:///work/../x",
                "file:///",
            ):
                for op in ("read", "stat"):
                    try:
                        await ask(octavo, None, op, uri)  # type: ignore[arg-type]
                    except OctavoError as error:
                        said += [str(error), json.dumps(error.data, default=str)]
            found: Any = await ask(octavo, None, "search", "file://", arguments={"query": NameQuery("*.md")}, limit=100)
            said += [str(entry.ref) for entry in found.items if isinstance(entry, Entry)]
            for call in ("list_allowed_directories", "list", "info"):
                uri, given = f"tool://{call}", {} if call != "info" else {"target": "doc.txt"}
                try:
                    said.append(repr(await ask(octavo, None, "invoke", uri, arguments=given)))
                except OctavoError as error:
                    said.append(str(error))
            who = octavo.works.identity.launched(None)
            said.append(json.dumps(await octavo.narrow(who, {"allowedDirectories": ["hr"]}, owns_process=True)))
            assert not [one for one in said if str(base) in one]


async def test_paths_are_completed_in_both_forms(base: Path) -> None:
    def completing(prefix: str) -> dict[str, Any]:
        return {"argument": "path", "prefix": prefix, "given": {}, "template": "file://{+path}"}

    async with serving(
        base,
        configured(
            base,
            "roots: [./work, {path: ./other, as: /o}]",
            RULES % "file://hr/*",
        ),
    ) as octavo:
        for prefix, values in {
            "": ["Docs/Read Me.md", "doc.txt", "own.md", "한국/소개.md"],
            "Do": ["Docs/Read Me.md"],
            "/": ["/o/doc.txt", "/o/own.md", "/work/Docs/Read Me.md", "/work/doc.txt", "/work/한국/소개.md"],
            "/wo": ["/work/Docs/Read Me.md", "/work/doc.txt", "/work/한국/소개.md"],
            "/work/Do": ["/work/Docs/Read Me.md"],
            "/work/hr/": [],
            "/none": [],
        }.items():
            found = await ask(octavo, "brand", "complete", "file://", arguments=completing(prefix))
            assert list(found) == values, prefix
    async with serving(base, configured(base, "roots: [{path: ./work, as: /}]")) as octavo:
        assert "/doc.txt" in await ask(octavo, None, "complete", "file://", arguments=completing("/do"))


async def test_what_is_hidden_crowds_nothing_out_of_a_completion(base: Path) -> None:
    for number in range(1100):  # more than a source suggests at once
        (base / f"work/hr/{number:04}.md").touch()
    rules = RULES % "file://hr/*"
    async with serving(base, configured(base, "roots: [./work, {path: ./other, as: /o}]", rules)) as octavo:
        for prefix, values in {
            "": ["Docs/Read Me.md", "doc.txt", "own.md", "한국/소개.md"],
            "/": ["/o/doc.txt", "/o/own.md", "/work/Docs/Read Me.md", "/work/doc.txt", "/work/한국/소개.md"],
            "/work/hr/": [],
        }.items():
            asked = {"argument": "path", "prefix": prefix, "given": {}, "template": "file://{+path}"}
            assert await ask(octavo, "brand", "complete", "file://", arguments=asked) == values, prefix


async def test_who_may_do_nothing_cannot_learn_where_a_root_lies(base: Path) -> None:
    policy = """
agents: {nobody: {}, reader: {}}
policy:
  - {who: reader, may: [list, read], what: "file://doc.txt"}
  - {who: "*", may: "*", what: "file://hr/*", effect: deny, hide: true}
"""
    async with serving(base, configured(base, "roots: [./work]", policy)) as octavo:
        for op in ("read", "stat", "list"):
            for path in ("hr/pay.md", "hr/none.md", "doc.txt", "none/none.md", "hr"):
                told = []
                for root in ("work", "wrong"):
                    with pytest.raises(Forbidden) as refused:
                        await ask(octavo, "nobody", op, f"file://{base}/{root}/{path}")  # type: ignore[arg-type]
                    told.append((refused.value.message + str(refused.value.data)).replace(root, "ROOT"))
                assert told[0] == told[1], (op, path)
        assert await text(octavo, f"file://{base}/work/doc.txt", "reader")
        with pytest.raises(NotFound):
            await text(octavo, f"file://{base}/work/hr/pay.md", "reader")
