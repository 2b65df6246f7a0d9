"""`server/config` and a client's roots: they narrow what the operator serves, in every operation, and widen nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.edit import Revision
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError
from octavo.core.operations import arguments_of
from octavo.core.ports.chain import Reply
from octavo.core.query import ContentQuery, NameQuery
from octavo.core.ref import Ref
from octavo.core.values import Call, Change, Op, Principal, Trail
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F4")]

ONE = "version: 1\nsources: {work: {kind: file, roots: [./work], extensions: ['*'], write: true}}\n"
TWO = "version: 1\nsources: {work: {kind: file, roots: [./work, ./other], extensions: ['*'], write: true}}\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Path:
    for name in ("docs/a.md", "docs/b.txt", "docs/deep/c.md", "docs-old/x.md", "hr/pay.md", "top.md"):
        file = tmp_path / "work" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"needle in {name}\n", encoding="utf-8")
    (tmp_path / "work/docs/link.md").symlink_to("../hr/pay.md")
    (tmp_path / "work/shortcut").symlink_to("docs")
    (tmp_path / "other/docs").mkdir(parents=True)
    (tmp_path / "other/docs/a.md").write_text("the other a\n", encoding="utf-8")
    (tmp_path / "outside").mkdir()
    return tmp_path


@asynccontextmanager
async def house(files: Path, configuration: str = ONE, **narrow: Any) -> AsyncIterator[Octavo]:
    loaded = load_text(configuration, file=files / "octavo.yaml", environ={})
    async with Octavo(loaded, state=StateDirectory.open(files / "state")) as octavo:
        if narrow:
            await configure(octavo, narrow)
        yield octavo


async def configure(octavo: Octavo, asked: Mapping[str, Any], who: str | None = None) -> dict[str, Any]:
    principal = octavo.works.identity.launched(who)
    return await octavo.narrow(principal, asked, owns_process=who is None)


async def ask(octavo: Octavo, op: Op, uri: str, who: Principal | None = None, **arguments: Any) -> Reply:
    call = Call(
        op, Ref.parse(uri), who or octavo.works.identity.launched(None), Trail(), uri, arguments_of(op, arguments)
    )
    with anyio.fail_after(30):
        return await octavo.works.ask(call)


async def listed(octavo: Octavo, scope: str = "file://") -> list[str]:
    return [entry.ref.path.removeprefix("work/") for entry in (await ask(octavo, "list", scope, filter=None)).items]


async def refused(octavo: Octavo, op: Op, uri: str, **arguments: Any) -> OctavoError:
    with pytest.raises(OctavoError) as caught:
        await ask(octavo, op, uri, **arguments)
    return caught.value


DOCS = ["docs/a.md", "docs/b.txt", "docs/deep/c.md"]


@pytest.mark.parametrize(
    "said", ["docs", "./docs/", "file://docs", "{base}/work/docs", "file://{base}/work/docs", "shortcut"]
)
async def test_a_folder_may_be_named_in_every_usual_way(files: Path, said: str) -> None:
    async with house(files) as octavo:
        told = await configure(octavo, {"allowedDirectories": [said.format(base=files)]})
        assert told["allowedDirectories"] == ["/work/docs"]
        assert await listed(octavo) == DOCS


async def test_a_public_prefix_names_folders_too_and_is_what_is_told(files: Path) -> None:
    configuration = "version: 1\nsources: {work: {kind: file, roots: [{path: ./work, as: /project}]}}\n"
    async with house(files, configuration) as octavo:
        assert (await configure(octavo, {}))["allowedDirectories"] == ["/project"]
        told = await configure(octavo, {"allowedDirectories": ["/project/docs"]})
        assert told["allowedDirectories"] == ["/project/docs"]
        assert await listed(octavo) == DOCS


async def test_what_was_narrowed_away_is_refused_by_name_alone(files: Path) -> None:
    async with house(files, allowedDirectories=["docs"]) as octavo:
        assert (await ask(octavo, "read", "file://docs/a.md")).body == "needle in docs/a.md\n"
        for uri in ("file://hr/pay.md", "file://hr/no-such.md", "file://top.md", "file://docs-old/x.md"):
            for op in ("read", "stat"):
                error = await refused(octavo, op, uri)
                assert isinstance(error, Forbidden) and "narrowed" in str(error.data["why"])
        assert isinstance(await refused(octavo, "read", "file://docs/link.md"), NotFound)


async def test_listing_searching_and_completing_know_only_what_is_left(files: Path) -> None:
    async with house(files, allowedDirectories=["docs"]) as octavo:
        assert await listed(octavo, "file://hr") == []
        assert await listed(octavo, "file://docs") == DOCS
        for query in (ContentQuery(text="needle"), NameQuery("*")):
            found = await ask(octavo, "search", "file://", query=query)
            assert [entry.ref.path for entry in found.items] == DOCS
        given: dict[str, Any] = {"argument": "path", "prefix": "", "given": {}, "template": "file://{+path}"}
        assert not any("hr" in one or "top" in one for one in await ask(octavo, "complete", "file://", **given))


async def test_nothing_outside_can_be_changed_nor_anything_be_carried_in_or_out(files: Path) -> None:
    async with house(files) as octavo:
        await ask(octavo, "write", "file://hr/pay.md", body="changed\n")
        await configure(octavo, {"allowedDirectories": ["docs"]})
        inside, out = "file://docs/a.md", Ref.parse("file://hr/new.md")
        refusals = [
            await refused(octavo, "write", "file://hr/new.md", body="x"),
            await refused(octavo, "edit", "file://hr/pay.md", revision=Revision()),
            await refused(octavo, "delete", "file://hr/pay.md"),
            await refused(octavo, "delete", "file://hr"),
            await refused(octavo, "make", "file://hr/sub"),
            await refused(octavo, "make", "file://new"),
            await refused(octavo, "move", inside, to=out),
            await refused(octavo, "copy", inside, to=out),
            await refused(octavo, "move", "file://hr/pay.md", to=Ref.parse("file://docs/pay.md")),
            await refused(octavo, "copy", "file://hr", to=Ref.parse("file://docs/hr")),
            await refused(octavo, "undo", "file://"),
        ]
        assert all(isinstance(refusal, Forbidden) for refusal in refusals), refusals
        await ask(octavo, "write", "file://docs/gone.md", body="x\n")
        undone = await ask(octavo, "undo", "file://", count=2)  # the one before it is outside, and stays
        assert [one.ref.path for one in undone] == ["docs/gone.md"]
        await ask(octavo, "write", "file://docs/new/n.md", body="new\n")
        await ask(octavo, "move", "file://docs/new/n.md", to=Ref.parse("file://docs/n.md"))
    assert (files / "work/hr/pay.md").read_text(encoding="utf-8") == "changed\n"
    assert sorted(p.name for p in (files / "work/hr").iterdir()) == ["pay.md"]
    assert (files / "work/docs/n.md").read_text(encoding="utf-8") == "new\n"


async def test_changes_are_told_of_what_is_left_only(files: Path) -> None:
    async with house(files, allowedDirectories=["docs"]) as octavo:
        told: list[Change] = []
        heard = anyio.Event()

        def listen(change: Change) -> None:
            told.append(change)
            if change.ref.name == "last.md":
                heard.set()

        octavo.feed.subscribe(listen)
        await octavo.works.dispatch.source("file").armed()  # type: ignore[attr-defined]
        (files / "work/hr/secret.md").write_text("x", encoding="utf-8")
        (files / "work/docs/last.md").write_text("x", encoding="utf-8")
        with anyio.fail_after(30):
            await heard.wait()
        assert {change.ref.path for change in told} == {"docs/last.md"}


async def test_what_happened_before_is_not_told_of_what_was_narrowed_away(files: Path) -> None:
    async with house(files) as octavo:
        old = octavo.feed.number()
        octavo.feed.publish(Change(kind="created", ref=Ref.parse("file://hr/new.md"), at=0.0))
        await configure(octavo, {"allowedDirectories": ["docs"]})
        assert (await ask(octavo, "changes", "file://", after=None)).changes == ()
        news = await ask(octavo, "changes", "file://", after=old)
        assert news.gap and news.changes == ()


async def test_of_several_roots_each_is_narrowed_for_itself(files: Path) -> None:
    async with house(files, TWO) as octavo:
        await configure(octavo, {"allowedDirectories": [str(files / "other/docs")]})
        assert (await ask(octavo, "read", "file://docs/a.md")).body == "the other a\n"
        assert isinstance(await refused(octavo, "read", "file://hr/pay.md"), Forbidden)
        assert await listed(octavo) == ["docs/a.md"]
        await ask(octavo, "write", "file://docs/b.txt", body="over there\n")
        assert (files / "other/docs/b.txt").read_text(encoding="utf-8") == "over there\n"
        assert (files / "work/docs/b.txt").read_text(encoding="utf-8") == "needle in docs/b.txt\n"
        told = await configure(octavo, {"allowedDirectories": ["docs"]})
        assert told["allowedDirectories"] == ["/work/docs", "/other/docs"]


async def test_extensions_are_narrowed_for_every_operation(files: Path) -> None:
    async with house(files) as octavo:
        told = await configure(octavo, {"allowedDirectories": ["docs"], "allowedExtensions": ["MD"]})
        assert told["allowedExtensions"] == ["md"]
        assert await listed(octavo) == ["docs/a.md", "docs/deep/c.md"]
        assert isinstance(await refused(octavo, "read", "file://docs/b.txt"), Forbidden)
        assert isinstance(await refused(octavo, "write", "file://docs/new.txt", body="x"), Forbidden)
        assert (await configure(octavo, {"allowedExtensions": ["*"]}))["allowedExtensions"] == ["*"]


@pytest.mark.parametrize(
    "asked",
    [
        {"allowedDirectories": ["docs", "/etc"]},
        {"allowedDirectories": ["docs", "../outside"]},
        {"allowedDirectories": ["docs", "{base}"]},
        {"allowedDirectories": ["docs", "file:///etc"]},
        {"allowedDirectories": ["docs", "http://docs"]},
        {"allowedDirectories": ["docs", "docs\x00"]},
        {"allowedDirectories": ["docs"], "allowedExtensions": [".exe"]},
        {"allowedDirectories": ["docs"], "promptDirectory": "docs"},
    ],
)
async def test_what_lies_outside_the_ceiling_is_forbidden_and_changes_nothing(
    files: Path, asked: dict[str, Any]
) -> None:
    folders = [one.format(base=files) for one in asked["allowedDirectories"]]
    configuration = ONE.replace("['*']", "[.md, .txt]")
    async with house(files, configuration) as octavo:
        works = octavo.works
        with pytest.raises(Forbidden) as refusal:
            await configure(octavo, {**asked, "allowedDirectories": folders})
        assert octavo.works is works
        assert str(files) not in str(refusal.value) or str(files) in folders


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"allowedDirectories": []}, "leave the key out"),
        ({"allowedExtensions": []}, "leave the key out"),
        ({"allowedDirectories": "docs"}, "list of texts"),
        ({"allowedExtensions": [1]}, "list of texts"),
        ({"promptDirectory": 1}, "is text"),
        ({"allowedDirs": ["docs"]}, "allowedDirectories"),
    ],
)
async def test_a_request_that_makes_no_sense_says_what_to_do(files: Path, asked: dict[str, Any], says: str) -> None:
    async with house(files) as octavo:
        with pytest.raises(InvalidParams, match=says):
            await configure(octavo, asked)


async def test_each_request_begins_from_the_ceiling_again(files: Path) -> None:
    async with house(files, allowedDirectories=["docs/deep"]) as octavo:
        assert await listed(octavo) == ["docs/deep/c.md"]
        await configure(octavo, {"allowedDirectories": ["hr"]})
        assert await listed(octavo) == ["hr/pay.md"]
        await configure(octavo, {})
        assert len(await listed(octavo)) == 7


async def test_the_operators_rules_hold_as_before(files: Path) -> None:
    """Narrowing to a folder does not make its files known by other addresses."""
    rules = 'policy: [{who: "*", may: "*", what: "**"}, {who: "*", may: "*", what: "file://hr/*", effect: deny}]\n'
    async with house(files, ONE + rules, allowedDirectories=["hr", "docs/deep"]) as octavo:
        assert await listed(octavo) == ["docs/deep/c.md"]
        assert isinstance(await refused(octavo, "read", "file://hr/pay.md"), Forbidden)


async def test_a_folder_of_prompts_narrows_to_those_in_it_and_shows_no_others(files: Path) -> None:
    for name in ("p/brand/voice", "p/hr/pay"):
        file = files / f"work/{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        said = '[{"role": "user", "content": [{"type": "text", "text": "x"}]}]'
        file.write_text(f'{{"id": "{file.stem}", "description": "x", "messages": {said}}}', encoding="utf-8")
    async with house(files, ONE + "prompts: {dirs: [./work/p/brand, ./work/p/hr]}\n") as octavo:
        assert sorted(await listed(octavo, "prompt://")) == ["pay", "voice"]
        told = await configure(octavo, {"promptDirectory": str(files / "work/p/brand")})
        assert told["promptDirectory"] == str(files / "work/p/brand")
        assert await listed(octavo, "prompt://") == ["voice"]
        assert not [name for name in await listed(octavo) if name.startswith("p/")]  # still no resources
        with pytest.raises(Forbidden, match=r"prompts\.dirs"):
            await configure(octavo, {"promptDirectory": "../../docs"})


async def test_the_tool_of_the_official_server_tells_the_narrowed_folders(files: Path) -> None:
    async with house(files, ONE + "toolsets: [filesystem]\n", allowedDirectories=["docs"]) as octavo:
        answer = await ask(octavo, "invoke", "tool://list_allowed_directories")
        assert "/work/docs" in repr(answer.content) and "/work\\n" not in repr(answer.content)


async def test_on_stdio_it_outlives_a_reload_and_still_narrows_the_new_ceiling(files: Path) -> None:
    async with house(files, TWO, allowedDirectories=["docs"]) as octavo:
        await octavo.reload(load_text(ONE, file=files / "octavo.yaml", environ={}))
        assert await listed(octavo) == DOCS
        other = ONE.replace("./work", "./outside")
        (files / "outside/o.md").write_text("o", encoding="utf-8")
        await octavo.reload(load_text(other, file=files / "octavo.yaml", environ={}))
        assert await listed(octavo) == []  # nothing of what was asked for is served any more


RULED = f"""{ONE}
agents: {{ops: {{key_sha256: "{"a" * 64}"}}, app: {{key_sha256: "{"b" * 64}"}}}}
policy:
  - {{who: ops, may: admin, what: "server://config"}}
  - {{who: [ops, app], may: [read, list], what: "file://*"}}
"""


async def test_for_everybody_only_an_admin_narrows_until_a_reload(files: Path) -> None:
    async with house(files, RULED) as octavo:
        app = octavo.works.identity.launched("app")
        with pytest.raises(Forbidden, match="admin"):
            await configure(octavo, {"allowedDirectories": ["docs"]}, "app")
        await configure(octavo, {"allowedDirectories": ["docs"]}, "ops")
        with pytest.raises(Forbidden):
            await ask(octavo, "read", "file://hr/pay.md", app)
        await octavo.reload(load_text(RULED, file=files / "octavo.yaml", environ={}))
        assert (await ask(octavo, "read", "file://hr/pay.md", app)).body
    async with house(files) as octavo:
        with pytest.raises(Forbidden, match="admin"):  # without rules nobody is granted it
            await octavo.narrow(octavo.works.identity.launched(None), {}, owns_process=False)


@pytest.mark.parametrize(
    ("roots", "left"),
    [
        (["file://{base}/work/docs"], DOCS),
        (["file://{base}/work/docs/", "file://{base}/elsewhere"], DOCS),
        (["file://{base}"], None),
        (["file://{base}/work"], None),
        (["file:///somewhere/else"], None),
        (["https://example.com", "file://docs"], None),
        ([], None),
    ],
)
async def test_roots_narrow_where_they_lie_inside_and_else_nothing(
    files: Path, roots: list[str], left: list[str] | None
) -> None:
    async with house(files) as octavo:
        everything = await listed(octavo)
        who = octavo.works.identity.launched(None)
        await octavo.narrow_to_roots(who, [root.format(base=files) for root in roots])
        assert await listed(octavo) == (everything if left is None else left)


async def test_what_a_client_configures_stands_above_its_roots(files: Path) -> None:
    async with house(files, allowedDirectories=["docs/deep"]) as octavo:
        await octavo.narrow_to_roots(octavo.works.identity.launched(None), [f"file://{files}/work/hr"])
        assert await listed(octavo) == ["docs/deep/c.md"]
