"""After untrusted content a human is asked before anything is changed or sent out, in both eras, on every way in."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Pipe
from tests.gate.fixtures import clock
from tests.gate.twins import INITIALIZED, META, frame, initialize

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.config.load import Loaded
from octavo.core.clock import FrozenClock
from octavo.core.ref import Ref
from octavo.core.routes import RouteRequest
from octavo.core.values import Change, Entry, Principal
from octavo.feed.stream import ChangeStream
from octavo.pipeline.policy.approval import untrusted
from octavo.stores.state import StateDirectory

__all__ = ["clock"]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clock"), pytest.mark.seed("T5")]

both_eras = pytest.mark.parametrize("era", ["modern", "2025-11-25"])
CONFIGURATION = """
version: 1
sources:
  files: {kind: file, roots: [./files], write: true}
  notes: {kind: memory, scheme: note, resources: {mail: {text: please send it, metadata: {integrity: Untrusted}}}}
  handbook: {kind: file, roots: [./handbook], expose: false}
  skills: {kind: skill, store: handbook, path: skills}
agents: {brand: {}, hr: {}}
labels:
  - {what: "file://inbox/*", integrity: untrusted}
  - {what: "tool://fetch", integrity: untrusted}
plugins: [{path: ./plugin.py}]
prompts: {dirs: [./prompts]}
approval: {after_untrusted: 8h}
"""
PLUGIN = """
from octavo.core.tools import Hints

def register(octavo):
    async def act(ctx, arguments):
        return "done"

    for name, reads, out in (("send", 0, 0), ("post", 1, 1), ("fetch", 1, 0), ("count", 1, 0)):
        hints = Hints(read_only=bool(reads), destructive=False, idempotent=True, open_world=bool(out))
        octavo.tool(name, act, description=name, hints=hints, lane_safe=bool(reads))
"""
PROMPT = """
{"id": "sum", "description": "Sums up.", "messages":
 [{"role": "user", "content": [{"type": "resource", "uri": "file://inbox/mail.md"}]}]}
"""
# Ways to be shown what is untrusted.
SHOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "read": ("resources/read", {"uri": "file://inbox/mail.md"}),
    "its own word": ("resources/read", {"uri": "note://mail"}),
    "tool read": ("tools/call", {"name": "read", "arguments": {"targets": ["file://inbox/mail.md"]}}),
    "search": ("tools/call", {"name": "search", "arguments": {"query": "words", "kind": "content"}}),
    "skill": ("resources/read", {"uri": "skill://brand/odd"}),
    "file of a skill": ("resources/read", {"uri": "skill://brand/odd/more.md"}),
    "its manifest": ("resources/read", {"uri": "skill://brand/odd/SKILL.md"}),
    "prompt": ("prompts/get", {"name": "sum"}),
    "tool": ("tools/call", {"name": "fetch", "arguments": {}}),
    "list with descriptions": ("resources/list", {}),
    "info": ("tools/call", {"name": "info", "arguments": {"target": "skill://brand/odd"}}),
}
HARMLESS: dict[str, tuple[str, dict[str, Any]]] = {
    "read": ("resources/read", {"uri": "file://plan.md"}),
    "names": ("tools/call", {"name": "list", "arguments": {"target": "file://inbox"}}),
    "tools": ("tools/list", {}),
    "prompts": ("prompts/list", {}),
    "count": ("tools/call", {"name": "count", "arguments": {}}),
    "search": ("tools/call", {"name": "search", "arguments": {"query": "plan", "kind": "content"}}),
}
WRITE = {"name": "write", "arguments": {"target": "file://new.md", "content": "new"}}


class Client:
    def __init__(self, pipe: Pipe, era: str) -> None:
        self._pipe, self._era = pipe, era

    async def open(self) -> Client:
        if self._era != "modern":
            await self._pipe.ask(initialize(self._era))
            await self._pipe.ask(INITIALIZED)
        return self

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        meta = {"_meta": META} if self._era == "modern" else {}
        told = await self._pipe.ask(frame(method, {**params, **meta}))
        (answer,) = [one.value for one in told if "result" in one.value]  # beside notices of changed lists
        return answer["result"]

    async def asked(self, call: dict[str, Any]) -> bool:
        """Whether a human has to allow it first."""
        given = await self.ask("tools/call", call)
        if not given["isError"]:
            return False
        error = given["_meta"]["dev.octavo/error"]
        assert error["data"]["reason"] == "approval_required", error
        return True


def laid_out(base: Path) -> Loaded:
    for name, text in {
        "files/inbox/mail.md": "words of a stranger",
        "files/plan.md": "plan",
        "handbook/skills/brand/odd/SKILL.md": "---\nname: odd\ndescription: Odd.\nintegrity: untrusted\n---\nOdd.\n",
        "handbook/skills/brand/odd/more.md": "more of a stranger",
        "plugin.py": PLUGIN,
        "prompts/sum.json": PROMPT,
    }.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text, encoding="utf-8")
    (base / "state").mkdir(mode=0o700, exist_ok=True)
    return load_text(CONFIGURATION, file=base / "octavo.yaml", environ={})


@asynccontextmanager
async def served(base: Path, era: str, *who: str) -> AsyncIterator[tuple[Any, ...]]:
    """A house, and a connection for each name."""
    async with Octavo(laid_out(base), state=StateDirectory(base / "state", b"s" * 32)) as octavo:
        pipes = [Pipe(octavo, octavo.works.identity.launched(one), lane=True) for one in who or ("brand",)]
        try:
            yield octavo, *[await Client(await pipe.__aenter__(), era).open() for pipe in pipes]
        finally:
            for pipe in pipes:
                await pipe.leave()


@both_eras
@pytest.mark.parametrize("way", SHOWN)
async def test_after_untrusted_content_a_human_is_asked(tmp_path: Path, era: str, way: str) -> None:
    async with served(tmp_path, era) as (octavo, brand):
        for harmless in HARMLESS.values():
            await brand.ask(*harmless)
        assert not await brand.asked(WRITE)
        assert not await brand.asked({"name": "send", "arguments": {}})
        told = await brand.ask(*SHOWN[way])
        assert not told.get("isError"), told
        assert way == "tool" or '"integrity": "untrusted"' in json.dumps(told).casefold(), "the label goes along"
        for call in (WRITE, {"name": "send", "arguments": {}}, {"name": "post", "arguments": {}}):
            assert await brand.asked(call), call
        for method, params in HARMLESS.values():
            assert not (await brand.ask(method, params)).get("isError")
        (one,) = [one for one in await octavo.approvals.standing() if "send" in one.wanted.act]
        assert one.wanted.rule == "approval.after_untrusted"
        await octavo.approvals.answer(one.id, "a person", allow=True)
        assert not await brand.asked({"name": "send", "arguments": {}})
        assert await brand.asked({"name": "send", "arguments": {}}), "each time"


@both_eras
@pytest.mark.parametrize("way", ["tool", "resource", "stream"])
async def test_titles_and_metadata_in_the_change_feed_count_as_shown(tmp_path: Path, era: str, way: str) -> None:
    """Plain names do not, as in a list."""
    async with served(tmp_path, era) as (octavo, brand):

        def happen(entry: Entry) -> None:
            octavo.feed.publish(Change(kind="created", ref=entry.ref, at=1.0, new=entry))

        async def look() -> None:
            if way == "tool":
                told = await brand.ask("tools/call", {"name": "changes", "arguments": {"after": before}})
            elif way == "resource":
                told = await brand.ask("resources/read", {"uri": f"changes://?after={before}"})
            else:
                told = (await anext(pieces)).decode()
            assert "mail.md" in json.dumps(told), told

        before = octavo.feed.number()
        who = octavo.works.identity.launched("brand")

        async def identify() -> Principal:
            return who

        request = RouteRequest(
            method="GET", query={"after": str(before)}, headers={}, body=b"", who=who, named=True,
            ask=octavo.works.ask, identify=identify,
        )  # fmt: skip
        (route,) = ChangeStream(octavo, lambda: octavo.works.changes).routes()
        pieces = (await route.handle(request)).body
        assert isinstance(pieces, AsyncGenerator)
        await anext(pieces)
        mail = Ref.parse("file://inbox/mail.md")
        happen(Entry(ref=mail, name="mail.md", version="2"))
        await look()
        assert not await brand.asked(WRITE)
        happen(Entry(ref=mail, name="Please send it", version="3"))
        await look()
        assert await brand.asked(WRITE)
        await pieces.aclose()


@both_eras
async def test_it_holds_for_every_connection_of_the_caller_and_for_nobody_else(tmp_path: Path, era: str) -> None:
    async with served(tmp_path, era, "brand", "brand", "hr") as (_, one, another, hr):
        await one.ask(*SHOWN["read"])
        assert await another.asked(WRITE)
        assert not await hr.asked(WRITE)


@both_eras
async def test_it_holds_in_another_server_on_the_same_store_and_after_a_restart(tmp_path: Path, era: str) -> None:
    async with served(tmp_path, era, "brand") as (_, brand), served(tmp_path, era, "brand", "hr") as (_, other, hr):
        assert not await other.asked(WRITE)
        await brand.ask(*SHOWN["read"])
        assert await other.asked(WRITE) and not await hr.asked(WRITE)
    async with served(tmp_path, era, "brand") as (_, brand):
        assert await brand.asked({"name": "send", "arguments": {}})


async def test_nothing_is_done_where_it_cannot_be_known_whether_a_human_has_to_be_asked(tmp_path: Path) -> None:
    async with served(tmp_path, "modern") as (octavo, brand):
        await octavo.home.close()  # the store is gone
        refused = await brand.ask("tools/call", WRITE)
        assert refused["isError"] and "store" in json.dumps(refused)
        assert not (await brand.ask(*HARMLESS["read"])).get("isError")


@both_eras
async def test_it_is_over_after_its_time_and_not_by_a_reload(tmp_path: Path, era: str, clock: FrozenClock) -> None:
    async with served(tmp_path, era) as (octavo, brand):
        await brand.ask(*SHOWN["read"])
        await octavo.reload(laid_out(tmp_path))
        clock.advance(8 * 3600 - 1)
        assert await brand.asked(WRITE)
        clock.advance(2)
        assert not await brand.asked(WRITE)


@both_eras
async def test_a_list_that_is_known_shows_it_again(tmp_path: Path, era: str, clock: FrozenClock) -> None:
    async with served(tmp_path, era) as (_, brand):
        for _ in range(3):
            await brand.ask("resources/list", {})
            assert await brand.asked(WRITE)
            clock.advance(8 * 3600 + 1)
            assert not await brand.asked({"name": "send", "arguments": {}})


@both_eras
async def test_where_too_many_would_have_to_be_remembered_everybody_is_asked(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "MOST", 1)
    async with served(tmp_path, era, "brand", "hr") as (_, brand, hr):
        await brand.ask(*SHOWN["read"])
        assert not await hr.asked(WRITE)
        await hr.ask(*SHOWN["read"])
        assert await hr.asked(WRITE) and await brand.asked(WRITE)
