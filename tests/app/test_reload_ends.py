"""What a reload has replaced ends with its last call: nothing that goes on holds on to it."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.app.asking import ask
from tests.gate import world
from tests.gate.doors import Pipe, Web, modern_headers
from tests.gate.twins import INITIALIZED, META, frame, initialize

from octavo.app import Octavo
from octavo.app import server as running
from octavo.app.configuration import load_text

pytestmark = pytest.mark.anyio

RELOADS = 6
PARTS = ("policy", "identity", "tools", "prompts", "dispatch", "cache", "redact", "audit", "quota", "throttle")
HANDBOOK = """
version: 1
sources:
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook, path: sops}
  docs: {kind: doc, store: handbook, path: docs}
  notes: {kind: memory, scheme: note, resources: {a: {text: "budget, call 010-1234-5678"}}}
agents: {agent-brand: {}, agent-finance: {}, agent-hr: {}}
policy:
  - {who: "*", may: [list, read, search, watch, invoke, render, complete], what: "**"}
  - {who: agent-brand, may: "*", what: "doc://hr/*", effect: deny}
  - {who: agent-finance, may: "*", what: "doc://*", effect: deny, when: {metadata: {status: draft}}}
approval: {after_untrusted: 1h}
labels: [{what: "note://*", integrity: untrusted}]
redact: {principals: {agent-hr: [phone]}}
prompts: {dirs: [./prompts], starter: false}
"""
FILES = {
    "handbook/sops/brand/brief.md": "---\ntitle: Brief\n---\nThe budget of a campaign.\n",
    "handbook/docs/hr/pay.md": "---\ntitle: Pay\nstatus: draft\n---\nThe budget of pay.\n",
    "prompts/greet.json": json.dumps(
        {
            "id": "greet",
            "description": "Greets.",
            "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}},
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "{% if who %}Greet {{ who }}.{% endif %}"}]}
            ],
        }
    ),
}
ASKED: list[tuple[Any, str, dict[str, Any]]] = [
    ("read", "sop://brand/brief", {}),
    ("read", "sop://", {}),
    ("read", "note://a", {}),
    ("list", "doc://", {}),
    ("stat", "sop://brand/brief", {}),
    ("render", "prompt://greet", {"who": "all"}),
    ("invoke", "tool://list", {"target": "sop://"}),
    ("invoke", "tool://changes", {"target": "sop://"}),
]
RANKED = ("invoke", "tool://search", {"query": "budget", "kind": "ranked"})
WHO = ["agent-brand", "agent-finance", "agent-hr"]


class Lives:
    """The compositions that a house had, by their parts. What still holds one of these holds nearly all of it."""

    def __init__(self) -> None:
        self._known: dict[str, list[weakref.ref[Any]]] = {name: [] for name in PARTS}

    def note(self, octavo: Octavo) -> None:
        for name, known in self._known.items():
            known.append(weakref.ref(getattr(octavo.works, name)))

    async def ended(self, *, collected: bool = True) -> None:
        """Returns when there are two left at the most: that which holds, and one that it is about to leave.
        `collected`: the collector is asked to look for what is."""
        with anyio.fail_after(30):
            while left := {name: sum(one() is not None for one in known) for name, known in self._known.items()}:
                if max(left.values()) <= 2:
                    return
                await anyio.lowlevel.checkpoint()
                if collected:
                    gc.collect()


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LOOK", 0.0)


async def test_ranked_searches_and_reads_hold_on_to_no_configuration_of_before(tmp_path: Path) -> None:
    """A search remembered what each caller may see, and with it the rules that said so: for 64 configurations."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    loaded = load_text(HANDBOOK, file=tmp_path / "octavo.yaml", environ={})
    lives = Lives()
    async with Octavo(loaded) as octavo:
        for _ in range(RELOADS):
            lives.note(octavo)
            for who in WHO:
                for op, uri, arguments in ASKED if who == "agent-hr" else [*ASKED, RANKED]:
                    await ask(octavo, who, op, uri, arguments)
            await octavo.reload(loaded)
        await lives.ended()


async def test_a_configuration_that_ended_goes_though_the_collector_looks_rarely(tmp_path: Path) -> None:
    """It is one large cycle, and a server that runs looks for cycles after a million new objects."""
    loaded = load_text(
        "version: 1\nsources: {notes: {kind: memory, scheme: note}}", file=tmp_path / "octavo.yaml", environ={}
    )
    lives = Lives()
    gc.disable()
    try:
        async with Octavo(loaded) as octavo:
            for _ in range(RELOADS):
                lives.note(octavo)
                await octavo.reload(loaded)
            await lives.ended(collected=False)
    finally:
        gc.enable()


@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
async def test_connections_and_subscriptions_hold_on_to_no_configuration_of_before(tmp_path: Path, era: str) -> None:
    """They outlive a reload, over stdio and over HTTP, with all that their fast path has remembered."""
    folder = world.lay_out(tmp_path)
    loaded = world.configuration(folder)
    lives = Lives()
    meta = {"_meta": META} if era == "modern" else {}
    read = {"uri": "mem://one", **meta}
    call = {"name": "search", "arguments": {"query": "two", "kind": "ranked"}, **meta}
    web_read = {"uri": "mem://one", "_meta": META}
    async with (
        world.house(loaded) as octavo,
        Web(octavo, lane=True) as web,
        Pipe(octavo, world.principal(octavo, "brand"), lane=True) as pipe,
    ):
        if era == "modern":
            listen = {"notifications": {"resourceSubscriptions": ["mem://*"], "toolsListChanged": True}, **meta}
            await pipe.write(frame("subscriptions/listen", listen, 9) + b"\n")
            await pipe.until(1)
        else:
            await pipe.ask(initialize(era))
            await pipe.ask(INITIALIZED)
            await pipe.ask(frame("resources/subscribe", {"uri": "mem://*"}, 9))
        body = frame("resources/read", web_read)
        headers = modern_headers(json.loads(body), world.KEYS["BRAND_KEY"])
        for _ in range(RELOADS):
            lives.note(octavo)
            for _ in range(3):
                (answer,) = await pipe.ask(frame("resources/read", read))
                assert "result" in answer.value, answer.text
                assert (await web.ask(body, headers)).status == 200
            await pipe.ask(frame("tools/list", meta))
            await pipe.ask(frame("prompts/list", meta))
            await pipe.write(frame("tools/call", call, 5) + b"\n")
            await pipe.until(1)
            await octavo.reload(loaded)
            await pipe.settle()
        await lives.ended()
