"""Sources of a plugin that misbehave, and what an agent notices that reads from another source beside them.

    python -m tests.security.misbehaving --reads 2000

For each fault a server of its own is started, with that one source and a good one. While another agent lists and reads
from the bad one without a pause, the reads of a good agent are timed. Prints one line of JSON a fault: p50 and p99 of
those reads in milliseconds, quiet and beside it, whether the listing over all sources answered and named it, and how
long the server took to end. Some faults last as long as a limit of the server does, so all take some minutes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.harness import Asking, Place, Server

UNAVAILABLE = "dev.octavo/unavailable"
KEYS = {"good": "key-of-the-good-one", "bad": "key-of-the-bad-one", "operator": "key-of-the-operator"}

CONFIG = """
version: 1
sources:
  notes: {kind: file, roots: [./notes], scheme: note}
plugins: [{path: ./bad.py}]
agents:
  good: {key: "${GOOD_KEY}"}
  bad: {key: "${BAD_KEY}"}
  operator: {key: "${OPERATOR_KEY}"}
policy:
  - {who: [good, bad], may: "*", what: "**"}
  - {who: operator, may: admin, what: "server://metrics"}
limits: {time: TIME, per_principal: "off"}
"""

PLUGIN = """
import asyncio, sys, threading, time
from octavo.core.errors import NotFound
from octavo.core.values import Change, Content, Entry, Page
from octavo.core.ref import Ref
from octavo.core.tools import Hints, PromptInfo

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)


class Good:
    def __init__(self):
        self.scheme = type(self).__name__.lower()

    def entries(self, count, first=0):
        return tuple(
            Entry(ref=Ref(self.scheme, (f"{k:06}",)), name=str(k), version="1") for k in range(first, first + count)
        )

    async def list(self, scope, *, cursor, limit):
        return Page(self.entries(min(3, limit)))

    async def stat(self, ref):
        return Entry(ref=ref, name=ref.name, version="1")

    async def read(self, ref, *, max_bytes):
        return Content(entry=await self.stat(ref), body="text")


class Toomany(Good):
    async def list(self, scope, *, cursor, limit):
        return Page(self.entries(150))

class Samecursor(Good):
    async def list(self, scope, *, cursor, limit):
        return Page(self.entries(min(10, limit)), "again")

class Cycle(Good):
    async def list(self, scope, *, cursor, limit):
        return Page((), "b" if cursor == "a" else "a")

class Flood(Good):
    async def list(self, scope, *, cursor, limit):
        return Page(self.entries(50_000))

class Nothing(Good):
    async def list(self, scope, *, cursor, limit):
        return None
    async def read(self, ref, *, max_bytes):
        return None

class Disorder(Good):
    async def list(self, scope, *, cursor, limit):
        return Page(tuple(reversed(self.entries(3))))

class Types(Good):
    async def list(self, scope, *, cursor, limit):
        return Page((Entry(ref=Ref(self.scheme, ("a",)), name=None, metadata={"a": object()}),))
    async def read(self, ref, *, max_bytes):
        return Content(entry=await self.stat(ref), body=bytearray(b"no"))

class Large(Good):
    async def list(self, scope, *, cursor, limit):
        return Page((Entry(ref=Ref(self.scheme, ("a",)), name="a", description="x" * (1 << 20)),))
    async def read(self, ref, *, max_bytes):
        return Content(entry=await self.stat(ref), body="x" * (max_bytes + 1))

class Strangers(Good):
    async def list(self, scope, *, cursor, limit):
        own = self.entries(3)
        strange = [Entry(ref=Ref(s, p), name="x") for s, p in (("note", ("a",)), (self.scheme, ("..", "x")))]
        return Page((own[0], own[0], *strange, own[1], own[2], own[1]))


class Raises(Good):
    def error(self):
        raise NotImplementedError
    async def list(self, scope, *, cursor, limit):
        raise self.error()
    async def read(self, ref, *, max_bytes):
        raise self.error()
    def templates(self):
        raise self.error()
    def canonical(self, ref):
        if ref.path == "twisted":
            raise self.error()
        return ref
    def spelled(self, ref):
        return ref

class Untouchable_(Exception):
    def __getattribute__(self, name):
        raise SystemExit

class Untouchable(Raises):
    error = Untouchable_
class Exits(Raises):
    error = SystemExit
class Interrupts(Raises):
    error = KeyboardInterrupt
class Closes(Raises):
    error = GeneratorExit
class Cancels(Raises):
    error = asyncio.CancelledError
class Recursion(Raises):
    error = RecursionError
class Memory(Raises):
    error = MemoryError
class Stops(Raises):
    error = StopIteration

class Mute_(Exception):
    def __str__(self):
        raise SystemExit
    __repr__ = __str__
class Mute(Raises):
    error = Mute_


class Unopened(Good):
    async def __aenter__(self):
        raise OSError("no such service")
    async def __aexit__(self, *_):
        raise SystemExit

class Hangs(Good):
    async def list(self, scope, *, cursor, limit):
        await asyncio.sleep(1e6)
    async def read(self, ref, *, max_bytes):
        await asyncio.sleep(1e6)

class Stubborn(Good):
    async def list(self, scope, *, cursor, limit):
        while True:
            try:
                await asyncio.sleep(1e6)
            except asyncio.CancelledError:
                pass
    async def read(self, ref, *, max_bytes):
        await self.list(ref, cursor=None, limit=1)

class Watchless(Good):
    async def watch(self, scope):
        yield None
        yield Change(kind="updated", ref=Ref("note", ("a.md",)), at=0.0)
        raise SystemExit

class Blocks(Good):
    async def list(self, scope, *, cursor, limit):
        time.sleep(1.5)
        return await super().list(scope, cursor=cursor, limit=limit)

class Openhangs(Good):
    async def __aenter__(self):
        await asyncio.sleep(1e6)
    async def __aexit__(self, *_):
        pass

class Closehangs(Good):
    async def __aenter__(self):
        pass
    async def __aexit__(self, *_):
        while True:
            try:
                await asyncio.sleep(1e6)
            except asyncio.CancelledError:
                pass

class Threads(Good):
    async def list(self, scope, *, cursor, limit):
        threading.Thread(target=time.sleep, args=(1e6,)).start()
        await asyncio.to_thread(time.sleep, 1e6)
    async def read(self, ref, *, max_bytes):
        await self.list(ref, cursor=None, limit=1)

class Watchflood(Good):
    async def watch(self, scope):
        while True:
            yield Change(kind="updated", ref=Ref(self.scheme, ("a",)), at=0.0)


def register(octavo):
    for name in NAMES:
        octavo.source(globals()[name.capitalize()]())
    errors = {
        "exit": SystemExit, "interrupt": KeyboardInterrupt, "close": GeneratorExit, "cancel": asyncio.CancelledError,
        "mute": Mute_, "untouchable": Untouchable_,
    }
    for name, error in errors.items():
        async def handler(ctx, arguments, error=error):
            await asyncio.sleep(0)
            raise error()
        octavo.tool(f"tool_{name}", handler, description="Misbehaves.", hints=HINTS)
        octavo.prompt(PromptInfo(name=f"prompt_{name}", description="Misbehaves."), handler)
    octavo.tool("tool_blocks", blocking, description="Misbehaves.", hints=HINTS)


async def blocking(ctx, arguments):
    await asyncio.sleep(0)
    time.sleep(1.5)
    return "done"
"""

# What each does to a listing, and what the log says of it.
FAULTY = {
    "toomany": "150 entries where at most 100 were asked for",
    "samecursor": "the cursor that it gives is the one that it was given",
    "cycle": "more than 100 pages in a row without an entry",
    "flood": "50000 entries where at most 100 were asked for",
    "nothing": "NoneType instead of a page",
    "disorder": "entries are not in the order of their segments",
    "types": "name is NoneType and no str",
    "large": "an entry says 1,048,587 bytes of itself",
    "untouchable": "it raised RuntimeError: an error was raised that cannot be looked at",
    "exits": "it raised SystemExit",
    "interrupts": "it raised KeyboardInterrupt",
    "closes": "it raised GeneratorExit",
    "cancels": "it raised CancelledError",
    "recursion": "it raised RecursionError",
    "memory": "it raised MemoryError",
    "stops": "it raised RuntimeError: coroutine raised StopIteration",
    "mute": "it raised Mute_",
    "unopened": r"it raised OSError: no such service \(bad.py line \d+\)",
}
HARMLESS = {
    "strangers": "2 of 7 entries are no addresses below what was asked for; 2 of 7 entries were given before",
    "watchless": "it tells what is no change of it",
}
SLOW = ("hangs", "stubborn", "blocks", "openhangs", "closehangs", "threads", "watchflood")


def laid_out(base: Path, names: list[str], limit: str = "10s") -> Place:
    place = Place(base)
    place.environment |= {f"{name.upper()}_KEY": key for name, key in KEYS.items()}
    (place.root / "notes").mkdir()
    for number in range(20):
        (place.root / "notes" / f"{number}.md").write_text(f"note {number}\n" * 20, encoding="utf-8")
    (place.root / "bad.py").write_text(f"NAMES = {names!r}\n{PLUGIN}", encoding="utf-8")
    (place.root / "octavo.yaml").write_text(CONFIG.replace("TIME", limit), encoding="utf-8")
    return place


@contextmanager
def busy(server: Server, scheme: str) -> Iterator[None]:
    """Another agent asks the bad source for lists and reads, without a pause."""
    over = threading.Event()

    def ask() -> None:
        asking = Asking(server.url, KEYS["bad"], "modern")
        while not over.is_set():
            try:
                asking.ask("resources/list")
                asking.ask("resources/read", {"uri": f"{scheme}://000001"})
            except (OSError, ValueError):
                return
        asking.hang_up()

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()


def timed(asking: Asking, reads: int) -> tuple[float, float]:
    """p50 and p99 in milliseconds."""
    took: list[float] = []
    for number in range(reads):
        began = time.perf_counter()
        answer = asking.ask("resources/read", {"uri": f"note://{number % 20}.md"})
        took.append((time.perf_counter() - began) * 1e3)
        assert "result" in answer.body, answer.body
    took.sort()
    return round(took[len(took) // 2], 2), round(took[int(len(took) * 0.99)], 2)


def figures(name: str, reads: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = laid_out(Path(folder), [name])
        began = time.monotonic()
        with place.serve("--config", "octavo.yaml", cwd=place.root) as server:
            start = time.monotonic() - began
            asking = server.asking(KEYS["good"])
            timed(asking, 200)
            quiet = timed(asking, reads)
            with busy(server, name):
                beside = timed(asking, reads)
                page = asking.ask("resources/list").result
            named = page.get("_meta", {}).get(UNAVAILABLE, [])
            ready = server.asking(KEYS["operator"]).get("/readyz").body
            began = time.monotonic()
        ended = time.monotonic() - began
        return {
            "fault": name,
            "quiet_ms": quiet,
            "beside_ms": beside,
            "listed": sum(one["uri"].startswith("note://") for one in page["resources"]),
            "named": named,
            "readiness": ready,
            "start_s": round(start, 1),
            "end_s": round(ended, 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="What a good agent notices of bad sources.")
    parser.add_argument("--reads", type=int, default=1000)
    parser.add_argument("faults", nargs="*", default=[*FAULTY, *HARMLESS, *SLOW])
    options = parser.parse_args()
    for name in options.faults:
        print(json.dumps(figures(name, options.reads), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
