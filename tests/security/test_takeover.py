"""Nobody replaces what the server stands on: a small case of `python -m tests.security.takeover`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.security import takeover
from tests.security.takeover import KEY, PROMPT, Arrangement, arranged, besieged, places

from octavo.app import Octavo
from octavo.app.configuration import load, load_text, zero
from octavo.core.errors import Forbidden, NotFound, OctavoError
from octavo.core.operations import arguments_of
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Trail

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F3", "A8")]


@pytest.fixture
def arrangements(tmp_path: Path) -> dict[str, Arrangement]:
    return {one.name: one for one in arranged(tmp_path)}


async def ask(house: Octavo, op: Op, uri: str, **arguments: Any) -> Any:
    who = house.works.identity.launched("intruder" if "intruder" in house.works.config.agents else None)
    call = Call(
        op, Ref.parse(uri), who, Trail(), uri, arguments_of(op, arguments), limit=1000, max_bytes=1 << 20, timeout=30.0
    )
    with anyio.fail_after(30):
        return await house.works.ask(call)


async def use(house: Octavo, tool: str, **arguments: Any) -> Any:
    return await ask(house, "invoke", f"tool://{tool}", **arguments)


@pytest.mark.parametrize("name", ["full", "small", "linked"])
async def test_nothing_that_the_server_stands_on_gives_way(arrangements: dict[str, Arrangement], name: str) -> None:
    """Every operation on each of its files, each folder above it and each name that would be loaded."""
    arrangement = arrangements[name]
    some = [one for one in arrangement.stood_on if not one.startswith(("site/tls", "site/web", "site/trust"))]
    tried, gave_way = await besieged(arrangement, places(some), spelled=False)
    assert gave_way == []
    assert (
        min(tried[kind] for kind in ("write", "append", "edit", "make", "copy", "move", "delete", "undo", "link")) > 5
    )


@pytest.mark.parametrize("spelled", ["SITE/Conf", "site/words/인사", "Site/WORDS/인사", "file://site/kept?root=1"])
async def test_other_spellings_of_a_folder_are_refused_too(arrangements: dict[str, Arrangement], spelled: str) -> None:
    """A disk may not tell capitals apart, nor Unicode forms."""
    arrangement = arrangements["full"]
    async with Octavo(load(arrangement.config, environ={})) as house:
        before = takeover.standing(arrangement)
        for tool, more in (("move", {"target": "mine", "to": spelled}), ("copy", {"target": "mine", "to": spelled})):
            with pytest.raises(OctavoError):
                await use(house, tool, **more)
        assert takeover.standing(arrangement) == before
        assert not (arrangement.root / spelled.partition("?")[0].removeprefix("file://") / "note.md").exists()


async def test_what_lies_beside_the_configuration_is_changed_as_before(arrangements: dict[str, Arrangement]) -> None:
    """A configuration in a folder that may be written is ordinary: only what the server stands on stays."""
    arrangement = arrangements["full"]
    site = arrangement.root / "site"
    async with Octavo(load(arrangement.config, environ={})) as house:
        await use(house, "write", target="site/conf/notes.md", content="one\n")
        await use(house, "write", target="site/conf/notes.md", content="two\n", mode="append")
        await use(house, "edit", target="site/conf/notes.md", edits=[{"old": "one", "new": "three"}])
        await use(house, "create_directory", target="site/conf/drafts")
        await use(house, "copy", target="site/conf/notes.md", to="site/conf/drafts/copy.md")
        await use(house, "move", target="site/conf/drafts", to="site/keys/drafts")
        await use(house, "move", target="site/conf/notes.md", to="site/notes.md")
        await use(house, "delete", target="site/keys/drafts")
        await use(house, "undo")
        await use(house, "create_directory", target="site/conf")  # is there already, which is fine
        await use(house, "copy", target="site/conf/octavo.yaml", to="mine/example.yaml")
        texts = [(site / path).read_text(encoding="utf-8") for path in ("keys/drafts/copy.md", "notes.md")]
        assert texts == ["three\ntwo\n"] * 2
        assert (arrangement.root / "mine/example.yaml").read_bytes() == arrangement.config.read_bytes()


async def test_a_refusal_says_why_and_what_is_hidden_stays_absent(arrangements: dict[str, Arrangement]) -> None:
    """The configuration can be read, so its refusal has a reason; of prompts, keys and state there is nothing."""
    async with Octavo(load(arrangements["full"].config, environ={})) as house:
        for target in ("site/conf/octavo.yaml", "site/conf", "site"):
            with pytest.raises(Forbidden) as refused:
                await use(house, "delete", target=target)
            assert "stands on" in refused.value.data["why"]
        for target in ("site/keys/clerk.txt", "site/words/인사/greet.json", "site/kept/state/secret"):
            with pytest.raises(NotFound):
                await use(house, "delete", target=target)


async def test_secrets_that_the_configuration_names_are_never_served(tmp_path: Path) -> None:
    """Neither by read, list, search and copy, nor through links of any kind, nor by a catalog over their folder."""
    root = tmp_path / "work"
    (root / "docs").mkdir(parents=True)
    (root / "docs/clerk.md").write_text(KEY, encoding="utf-8")
    (root / "docs/other.md").write_text("plain\n", encoding="utf-8")
    (root / "soft.md").symlink_to("docs/clerk.md")
    os.link(root / "docs/clerk.md", root / "hard.md")
    prompt = {
        **PROMPT,
        "messages": [{"role": "user", "content": [{"type": "resource", "uri": "file://docs/clerk.md"}]}],
    }
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/greet.json").write_text(json.dumps(prompt), encoding="utf-8")
    file = tmp_path / "octavo.yaml"
    file.write_text(
        "sources:\n"
        "  work: {kind: file, uris: relative, roots: [./work], write: true, hard_links: allow}\n"
        "  store: {kind: file, roots: [./work/docs], expose: false}\n"
        'agents: {clerk: {key: "file:./work/docs/clerk.md"}}\n'
        "redact: {rules: off}\n",
        encoding="utf-8",
    )
    async with Octavo(load(file, environ={})) as house:
        assert house.works.identity.by_key(KEY).id == "clerk"
        listed = await ask(house, "list", "file://")
        assert [str(entry.ref) for entry in listed.items] == ["file://docs/other.md"]
        for path in ("docs/clerk.md", "soft.md", "hard.md"):
            for uri in (f"file://{path}", f"file://{root}/{path}", f"file://{path}?range=0-10"):
                with pytest.raises(NotFound):
                    await ask(house, "read", uri)
            with pytest.raises((NotFound, Forbidden)):
                await use(house, "copy", target=path, to="docs/copy.md")
        with pytest.raises(Forbidden):
            await use(house, "copy", target="docs", to="taken")
        for query in ({"query": KEY, "kind": "content"}, {"query": "clerk", "kind": "names"}):
            assert KEY not in str(found := await use(house, "search", **query)) and "clerk.md" not in str(found)
        with pytest.raises(OctavoError):
            await ask(house, "render", "prompt://greet")
        store: Any = house.works.dispatch._sources["file+store"]  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(NotFound):
            await store.read(Ref.parse("file://clerk.md"), max_bytes=1 << 20)


async def test_an_undo_brings_nothing_back_to_a_place_that_is_needed_now(tmp_path: Path) -> None:
    """What was written and deleted there while the place meant nothing."""
    (tmp_path / "work").mkdir()
    state = {"environ": {}, "file": tmp_path / "work/octavo.yaml"}
    common = f"sources: {{work: {{kind: file, uris: relative, roots: ['{tmp_path / 'work'}'], write: true}}}}\n"
    elsewhere = common + f"state: {{path: '{tmp_path / 'state'}'}}\nprompts: {{dirs: []}}\n"
    async with Octavo(load_text(elsewhere, **{**state, "file": tmp_path / "octavo.yaml"})) as house:
        for target in ("prompts/evil.json", "octavo.toml"):
            await use(house, "write", target=target, content=json.dumps(PROMPT))
            await use(house, "delete", target=target)
        await use(house, "delete", target="prompts")
    async with Octavo(load_text(common + f"state: {{path: '{tmp_path / 'state'}'}}\n", **state)) as house:
        for _ in range(3):
            with pytest.raises(OctavoError):
                await use(house, "undo", count=10)
    assert os.listdir(tmp_path / "work") == []


async def test_without_a_configuration_nobody_writes_one(tmp_path: Path) -> None:
    """Whoever runs octavo in that folder later would be served by it."""
    async with Octavo(zero(tmp_path, write=True, environ={"XDG_STATE_HOME": str(tmp_path / "local/state")})) as house:
        await use(house, "write", target="notes.yaml", content="a: 1\n")
        for name in ("octavo.yaml", "octavo.yml", "octavo.toml"):
            with pytest.raises(Forbidden):
                await use(house, "write", target=name, content="version: 1\n")
        for folder in ("local", "local/state"):
            with pytest.raises(Forbidden):
                await use(house, "move", target=folder, to="away")


async def test_a_prompt_behind_a_link_to_what_clients_may_write_is_left_out(tmp_path: Path) -> None:
    """Else its words are those of whoever writes there; prompts in the root itself are protected, and are loaded."""
    for path, name in {"prompts/own.json": "own", "work/theirs.json": "theirs", "shared/kind.json": "kind"}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(json.dumps({**PROMPT, "id": name}), encoding="utf-8")
    (tmp_path / "prompts/theirs.json").symlink_to("../work/theirs.json")
    (tmp_path / "prompts/own.ko.json").symlink_to("../work/theirs.json")
    (tmp_path / "prompts/kind.json").symlink_to("../shared/kind.json")
    config = "sources: {work: {kind: file, uris: relative, roots: [%s], write: true}}\n"
    for roots, loaded in (("./work", ["kind", "own"]), (".", ["own"])):
        (tmp_path / "octavo.yaml").write_text(config % roots, encoding="utf-8")
        async with Octavo(load(tmp_path / "octavo.yaml", environ={})) as house:
            page = await ask(house, "list", "prompt://")
            assert [entry.ref.path for entry in page.items] == loaded
