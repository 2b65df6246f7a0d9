"""A handbook in git, from the configuration, behind the whole pipeline."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.sources.git.clones import Clone

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.config.problems import ConfigError
from octavo.core.errors import Forbidden, InvalidParams
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Change, Op, Trail
from octavo.transport.mcp.subscriber import Note, Subscriber
from octavo.transport.mcp.subscriptions import Hub

pytestmark = pytest.mark.anyio

CONFIGURATION = """
version: 1
sources:
  handbook: {kind: git, path: ./handbook, branch: main, expose: false}
  sops: {kind: sop, store: handbook}
  org: {kind: org, store: handbook}
agents:
  agent-brand: {}
policy:
  - {who: agent-brand, may: [list, read, watch], what: ["sop://*", "org://*"]}
  - {who: agent-brand, may: "*", what: "sop://hr/*", effect: deny}
"""
SOP = "---\nid: {0}\ntitle: {0}\nversion: {1}\nstatus: active\n---\n{2}\n"


def configured(folder: Path, text: str = CONFIGURATION) -> Path:
    file = folder / "octavo.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    clone = Clone(tmp_path / "handbook")
    clone.commit({"sops/hr/pay.md": SOP.format("pay", "0.9", "salaries of everybody")})
    clone.commit({"sops/hr/pay.md": SOP.format("pay", "1.0.0", "now public")})
    clone.git("tag", "before", "HEAD~1")
    clone.git("tag", "public")
    (clone.path / "sops/brand").mkdir()
    (clone.path / "sops/hr/pay.md").rename(clone.path / "sops/brand/pay.md")
    brief = SOP.format("brief", "1.0.0", "주민등록번호 900101-1234568")
    clone.commit({"sops/brand/brief.md": brief, "sops/hr/secret.md": SOP.format("secret", "1", "x")})
    clone.commit(
        {"sops/brand/brief.md": SOP.format("brief", "1.1.0", "clean"), "org/functions/brand.yml": "id: b\nname: B\n"}
    )
    return clone


@pytest.fixture
async def house(tmp_path: Path, clone: Clone) -> AsyncIterator[Octavo]:
    async with Octavo(load(configured(tmp_path), environ={})) as octavo:
        yield octavo


async def ask(house: Octavo, op: Op, uri: str, **more: Any) -> Reply:
    call = Call(op, Ref.parse(uri), house.works.identity.launched("agent-brand"), Trail(), uri, **more)
    with anyio.fail_after(30):
        return await house.works.ask(call)


@pytest.mark.seed("O15", "O14")
async def test_a_handbook_in_git_is_served_under_the_policy(house: Octavo) -> None:
    page = await ask(house, "list", "sop://")
    assert [str(entry.ref) for entry in page.items] == ["sop://brand/brief", "sop://brand/pay"]
    assert json.loads((await ask(house, "read", "org://")).body)["entries"][0]["uri"] == "org://function/brand"
    for uri in ("sop://hr/secret", "git://sops/hr/secret.md", "git+handbook://sops/hr/secret.md"):
        with pytest.raises((Forbidden, InvalidParams)):
            await ask(house, "read", uri)


@pytest.mark.seed("O1", "O14")
async def test_an_old_version_is_decided_and_redacted_like_the_present_one(house: Octavo) -> None:
    old = await ask(house, "read", "sop://brand/brief?version=1.0.0")
    assert "주민등록번호" in old.body and "1234568" not in old.body
    assert "now public" in (await ask(house, "read", "sop://brand/pay?version=1.0.0")).body
    with pytest.raises(InvalidParams, match=r"has no such version; it tells 1\.0\.0$"):
        await ask(house, "read", "sop://brand/pay?version=public")  # it stood at sop://hr/pay, too
    for op in ("read", "stat"):
        refused = set[tuple[str, str]]()
        for version in ("0.9", "before", "0.8"):  # the first two stood at sop://hr/pay then, the last nowhere
            with pytest.raises(InvalidParams) as unknown:
                await ask(house, op, f"sop://brand/pay?version={version}")
            refused.add((str(unknown.value), unknown.value.data["uri"].replace(version, "?")))
        assert refused == {("sop://brand/pay has no such version; it tells 1.0.0", "sop://brand/pay?version=?")}
    with pytest.raises(Forbidden):
        await ask(house, "read", "sop://hr/secret?version=1")
    with pytest.raises(InvalidParams, match=r"it tells 1\.1\.0, 1\.0\.0$"):
        await ask(house, "read", "sop://brand/brief?version=7")


@pytest.mark.seed("O1", "O14")
@pytest.mark.parametrize("hide", ["", ", hide: true"])
@pytest.mark.parametrize(
    "store",
    [
        "kind: git, path: ./handbook, branch: main, expose: false",
        "kind: file, roots: [./handbook], expose: false, history: all",
    ],
)
async def test_a_version_that_a_rule_on_metadata_keeps_back_is_not_named(
    tmp_path: Path, clone: Clone, store: str, hide: str
) -> None:
    draft = SOP.format("brief", "3.0.0", "not yet").replace("active", "draft")
    clone.commit({"sops/brand/brief.md": draft})
    clone.commit({"sops/brand/brief.md": SOP.format("brief", "4.0.0", "today")})
    text = CONFIGURATION.replace("kind: git, path: ./handbook, branch: main, expose: false", store)
    rule = f"{{who: agent-brand, may: read, what: '**', when: {{metadata: {{status: draft}}}}, effect: deny{hide}}}"
    async with Octavo(load(configured(tmp_path, f"{text}  - {rule}\n"), environ={})) as house:
        assert "clean" in (await ask(house, "read", "sop://brand/brief?version=1.1.0")).body
        told = set[tuple[str, str]]()
        for version in ("3.0.0", "9.9.9"):  # the first is there, and not for this caller
            with pytest.raises(InvalidParams) as unknown:
                await ask(house, "read", f"sop://brand/brief?version={version}")
            told.add((str(unknown.value), unknown.value.data["uri"].replace(version, "?")))
        assert told == {("sop://brand/brief has no such version", "sop://brand/brief?version=?")}


@pytest.mark.seed("O1")
async def test_where_a_rule_asks_for_the_time_alone_versions_are_named(tmp_path: Path, clone: Clone) -> None:
    rule = (
        "{who: agent-brand, may: read, what: '**', when: {time: {from: 2000-01-01, until: 2000-01-02}}, effect: deny}"
    )
    async with Octavo(load(configured(tmp_path, f"{CONFIGURATION}  - {rule}\n"), environ={})) as house:
        with pytest.raises(InvalidParams, match=r"it tells 1\.1\.0, 1\.0\.0$"):
            await ask(house, "read", "sop://brand/brief?version=7")


@pytest.mark.seed("O10", "O15")
async def test_a_commit_reaches_the_feed_and_what_was_kept_is_forgotten(house: Octavo, clone: Clone) -> None:
    heard: asyncio.Queue[Change] = asyncio.Queue()
    house.feed.subscribe(heard.put_nowait)
    await ask(house, "read", "sop://brand/brief")
    await ask(house, "list", "sop://brand")
    for source in house.works.sources:
        await source.armed()  # type: ignore[attr-defined]
    clone.commit({"sops/brand/brief.md": SOP.format("brief", "2.0.0", "newest")})
    assert "newest" in (await ask(house, "read", "sop://brand/brief")).body
    with anyio.fail_after(30):
        change = await heard.get()
    assert (change.kind, str(change.ref), change.changes["version"]) == (
        "updated", "sop://brand/brief", ["1.1.0", "2.0.0"],
    )  # fmt: skip
    page = await ask(house, "list", "sop://brand")
    assert [entry.metadata["version"] for entry in page.items] == ["2.0.0", "1.0.0"]


@pytest.mark.seed("O10", "O15")
async def test_a_commit_of_many_files_is_told_in_one_go(house: Octavo, clone: Clone) -> None:
    """Whoever hears of it only that lists have changed hears that once or twice, not once a file."""
    listener = Subscriber(house.works.identity.launched("agent-brand"), ends_on_overflow=True)
    listener.lists.add("resources")
    hub, notes, created = Hub(house), list[str](), set[str]()
    hub.join(listener)
    all_told = asyncio.Event()

    def hear(change: Change) -> None:
        created.add(change.ref.path)
        if len(created) == 246:
            all_told.set()

    async def send(note: Note) -> None:
        notes.append(note.method)

    house.feed.subscribe(hear)
    for source in house.works.sources:
        await source.armed()  # type: ignore[attr-defined]
    pump = asyncio.create_task(listener.pump(send))
    clone.commit({f"sops/brand/{n}.md": SOP.format(n, "1", n) for n in range(246)})
    with anyio.fail_after(30):
        await all_told.wait()
        listener.close()
        await pump
    assert set(notes) == {"notifications/resources/list_changed"} and len(notes) <= 3
    hub.close()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("expose: true", "must be false"), ("branch: a..b, expose: false", "no name that a branch can have"),
        ("path: ./nowhere, expose: false", "there is no folder"), ("roots: [x], expose: false", "roots"),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_served_is_refused(tmp_path: Path, change: str, says: str) -> None:
    (tmp_path / "handbook").mkdir()
    path = "" if change.startswith("path") else "path: ./handbook, "
    text = CONFIGURATION.replace("path: ./handbook, branch: main, expose: false", path + change)
    with pytest.raises(ConfigError) as refused:
        load(configured(tmp_path, text), environ={})
    assert says in str(refused.value)


def test_without_the_extra_the_configuration_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "handbook").mkdir()
    real = importlib.util.find_spec
    monkeypatch.setattr("octavo.config.checks.whole.find_spec", lambda name: None if name == "pygit2" else real(name))
    with pytest.raises(ConfigError) as refused:
        load(configured(tmp_path), environ={})
    assert "install Octavo with its extra git" in str(refused.value)


def test_the_work_tree_of_a_store_may_not_be_exposed_as_files(tmp_path: Path, clone: Clone) -> None:
    """A rule on sop://hr/* would be passed by file://sops/hr/…"""
    text = CONFIGURATION.replace("sources:\n", "sources:\n  files: {kind: file, roots: [./handbook]}\n")
    with pytest.raises(ConfigError) as refused:
        load(configured(tmp_path, text), environ={})
    assert "the same files would have two addresses" in str(refused.value)
