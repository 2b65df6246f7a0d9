"""One configuration, and as many equal houses over it as a test wants.

Time stands still, the secret is fixed and audit ids count from one, so what two houses do with the same
requests can be compared to the last byte: answers, cursors, etags, records, quota.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.config.load import Loaded
from octavo.core.clock import FrozenClock, SystemClock
from octavo.core.errors import Unrecorded
from octavo.core.values import Principal
from octavo.stores.audit.ledger import MemoryLedger
from octavo.stores.state import StateDirectory

PLUGIN = """
import asyncio
from octavo.core.errors import Conflict, NotFound, ProtocolError, SourceUnavailable
from octavo.core.tools import *
from octavo.core.tools import PromptArgument

SAFE = dict(hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False), lane_safe=True)
TEXT = {"type": "object", "properties": {"uri": {"type": "string"}, "n": {"type": "integer"}}}

def register(octavo):
    @octavo.tool("show", description="Reads.", input_schema=TEXT, title="Show", permissions=("files",), **SAFE)
    async def show(ctx, arguments):
        content = await ctx.read(arguments["uri"])
        return ToolResult(content=(Text(str(content.body)[:100]), Embedded(content, arguments["uri"]), Link(content.entry, arguments["uri"])))

    @octavo.tool("sum", description="Adds.", input_schema=TEXT, output_schema={"type": "object", "properties": {"sum": {}}}, **SAFE)
    async def sum_(ctx, arguments):
        return {"sum": arguments.get("n", 0) + 1, "한글": "값", "half": 0.5}

    @octavo.tool("media", description="Shows all kinds.", **SAFE)
    async def media(ctx, arguments):
        return ToolResult(content=(Image(b"\\x89PNG", "image/png"), Audio(b"RIFF", "audio/wav"), Text("x", {"dev.octavo/k": 1})))

    @octavo.tool("odd", description="Gives values that JSON has no word for.", **SAFE)
    async def odd(ctx, arguments):
        return ToolResult(content=(Text("odd"),), structured={"nan": float("nan"), "set": {"one"}, "tuple": (1, 2)})

    @octavo.tool("broken", description="Gives half a surrogate pair.", **SAFE)
    async def broken(ctx, arguments):
        return "\\ud800"

    @octavo.tool("boom", description="Fails.", **SAFE)
    async def boom(ctx, arguments):
        raise RuntimeError("secret detail")

    @octavo.tool("refuse", description="Refuses.", input_schema=TEXT, **SAFE)
    async def refuse(ctx, arguments):
        raise [NotFound("no", uri="file://x"), Conflict("changed"), SourceUnavailable("down", retry_after=2.0),
               ProtocolError("own words", code=-31000, hint="x")][arguments.get("n", 0)]

    @octavo.tool("secret", description="Nobody may.", **SAFE)
    async def secret(ctx, arguments):
        return "hidden"

    @octavo.tool("slow", description="Never ends by itself.", **SAFE)
    async def slow(ctx, arguments):
        await asyncio.get_running_loop().create_future()

    @octavo.tool("unsafe", description="Reports progress.", hints=SAFE["hints"])
    async def unsafe(ctx, arguments):
        await ctx.progress(1, 2, "half")
        return f"somebody waits: {ctx.call.channel is not None}"

    @octavo.tool("region", description="Mirrors a header.", input_schema={"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}}}, **SAFE)
    async def region(ctx, arguments):
        return arguments.get("region", "none")

    async def greet(ctx, arguments):
        return PromptResult(messages=(PromptMessage("system", Text("Be kind.")),
                                      PromptMessage("user", Text("Greet " + arguments.get("who", "안녕")))), description="A greeting")

    octavo.prompt(PromptInfo(name="greet", description="Greets.", title="Greet", lane_safe=True,
                             arguments=(PromptArgument(name="who", description="Whom."),)), greet)
"""

CONFIG = """
version: 1
sources:
  docs: {kind: file, uris: relative, roots: [./docs], extensions: ["*"]}
  mem:
    kind: memory
    scheme: mem
    resources:
      one: {text: 하나, metadata: {version: 1.0.0, tags: [가, b]}, description: The first.}
      two: {text: two}
      bin: {base64: AAEC/w==, mimeType: application/octet-stream}
    templates:
      item/{id}: {text: "item {id}", name: Item, values: {id: [a, b]}}
agents:
  brand: {key: "${BRAND_KEY}", roles: [marketing]}
  hr: {key: "${HR_KEY}", roles: [people]}
  nobody: {key: "${NOBODY_KEY}"}
policy:
  - {who: [brand, hr, local], may: [list, read, search, watch, invoke, render, complete], what: "**"}
  - {who: brand, may: "*", what: "file://hr/*", effect: deny, why: HR records are not for agents}
  - {who: brand, may: "*", what: "file://hidden/*", effect: deny, hide: true}
  - {who: brand, may: "*", what: "mem://two", effect: deny}
  - {who: "*", may: "*", what: "tool://secret", effect: deny}
resources:
  - {uri: "file://guide.md", name: The guide, annotations: {priority: 1, audience: [user], colour: red}}
prompts: {dirs: [./prompts]}
plugins: [{path: ./plugin.py}]
limits: {read: 64KiB, page: 4, per_principal: "RATE", in_flight: 64, subscriptions: 5, line: 4MiB}
"""
KEYS = {"BRAND_KEY": "key-of-brand-000", "HR_KEY": "key-of-hr-000000", "NOBODY_KEY": "key-of-nobody-00"}

SUMMARISE = {
    "id": "summarise",
    "description": "Summarises a document.",
    "inputSchema": {
        "type": "object",
        "properties": {"uri": {"type": "string"}, "lang": {"type": "string", "enum": ["ko", "en"]}},
        "required": ["uri"],
    },
    "messages": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Read {{uri}}"}, {"type": "resource", "uri": "{{uri}}"}],
        }
    ],
}


def lay_out(folder: Path) -> Path:
    """The files of the world."""
    docs = folder / "docs"
    for name, body in {
        "guide.md": b'# Guide\n\nRead this "first".\n',
        "empty.txt": b"",
        "image.png": b"\x89PNG\r\n\x1a\n\x00\x01\x02\xff",
        "large.txt": b"x" * (70 * 1024),
        "chapter.txt": b"chapter\n" * 7500,
        "error.txt": b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"not one"}}',
        "hr/pay.md": "급여\n".encode(),
        "hidden/plan.md": b"plan\n",
        "문서/안내.md": "안녕하세요, 옥타보입니다.\n".encode(),
        "notes/a b.txt": b"a blank\n",
        **{f"notes/n{i}.txt": b"note %d\n" % i for i in range(6)},
    }.items():
        file = docs / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
        os.utime(file, (1_763_000_000, 1_763_000_000))
    (folder / "prompts").mkdir(exist_ok=True)
    (folder / "prompts" / "summarise.json").write_text(json.dumps(SUMMARISE), encoding="utf-8")
    (folder / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    return folder


def configuration(folder: Path, *, rate: str = "off", rule: str = "") -> Loaded:
    """`rule`: one more rule of the policy, as YAML."""
    text = CONFIG.replace("RATE", rate).replace("\nresources:", f"\n  - {rule}\nresources:" if rule else "\nresources:")
    return load_text(text, file=folder / "octavo.yaml", environ=KEYS)


@contextlib.contextmanager
def frozen_time() -> Iterator[FrozenClock]:
    """Everything that is composed meanwhile shares one clock that stands still."""
    clock = FrozenClock()
    before = SystemClock.monotonic, SystemClock.wall
    SystemClock.monotonic, SystemClock.wall = staticmethod(clock.monotonic), staticmethod(clock.wall)  # type: ignore[method-assign, assignment]
    try:
        yield clock
    finally:
        SystemClock.monotonic, SystemClock.wall = map(staticmethod, before)  # type: ignore[method-assign, assignment]


class Journal(MemoryLedger):
    """Forgets nothing, and can be told to refuse."""

    def __init__(self) -> None:
        super().__init__(keep=10_000_000)
        self.refuses = False

    def flush(self) -> None:
        if self.refuses:
            raise Unrecorded
        super().flush()

    def since(self, seen: int) -> list[dict[str, Any]]:
        """The records after the first `seen`, whether or not they were flushed."""
        flushed = self._records
        fresh = [flushed[i] for i in range(len(flushed) - 1, seen - 1, -1)][::-1]
        return [json.loads(record) for record in (*fresh, *self._pending[max(0, seen - len(flushed)) :])]


@contextlib.asynccontextmanager
async def house(loaded: Loaded) -> AsyncIterator[Octavo]:
    octavo = Octavo(loaded, state=StateDirectory(None, b"s" * 32))
    octavo.ledger = Journal()
    async with octavo as opened:
        opened.works.audit.nonce = "run"
        yield opened


def principal(opened: Octavo, who: str, *, keyed: bool = False) -> Principal:
    identity = opened.works.identity
    return identity.by_key(KEYS[f"{who.upper()}_KEY"]) if keyed else identity.launched(who)


def records(opened: Octavo, since: int = 0) -> list[dict[str, Any]]:
    """Every audit record so far, but for the first `since`."""
    return cast("Journal", opened.ledger).since(since)


def accounts(opened: Octavo) -> dict[str, tuple[float, int]]:
    """What the quota holds of each principal."""
    quota: Any = None
    step: Any = opened.works.begin
    while quota is None:  # the folds are closures: (step, call_next)
        cells = dict(zip(step.__code__.co_freevars, (cell.cell_contents for cell in step.__closure__), strict=True))
        if type(getattr(cells["step"], "__self__", None)).__name__ == "Quota":
            quota = cells["step"].__self__
        step = cells["call_next"]
    return {who: (account.due, account.in_flight) for who, account in quota._accounts.items()}
