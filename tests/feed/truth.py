"""Random changes of a tree, a real server that is killed amid them, and a reader that goes on by number.

    python -m tests.feed.truth --changes 100000 --kills 20 --seed 1 --store sqlite --result FILE
    python -m tests.feed.truth --changes 100000 --kills 20 --restarts 5 --seed 1 --store postgres --result FILE

Changes are made in rounds, and in one round each address changes once; the next round begins when the reader has heard
of all of them. So every single change has to be told: those that the server saw, and those that happened while it was
down, which it has to find. A file grows with each of its changes, so that its size says which one it was. The reader is
a client of `GET /changes`, which comes again with `Last-Event-ID` whenever its connection breaks. In the end the whole
history is read once more, from the first number.

With --servers several of them run on one state, as two editors do: each sees every change, and it is told once.
With --restarts a PostgreSQL of its own is restarted amid the rounds, in order or as after a crash. The seed says what
is changed and when something breaks; how far the server is at that moment is up to the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
ROUND = 500  # changes that happen together
FOLDERS = 20
LIMIT = 120.0  # seconds for a round to be told
AGAIN = 0.02  # seconds before the reader comes again
PLACES = 20  # of a round, at which something may break
CONFIG = """
version: 1
sources: {{work: {{kind: file, uris: relative, roots: [./work], extensions: [.md]}}}}
store: {store}
state: {{path: ./state}}
feed: {{keep: 10000000, catch_up: true}}
limits: {{page: 1000}}
search: {{enabled: false}}
"""


class Fact(NamedTuple):
    """What became of an address: its size, or that it is gone. Each size of an address is there once."""

    uri: str
    size: int | None


class Outcome(NamedTuple):
    changes: int
    kills: int
    restarts: int
    lost: int
    twice: int
    disordered: int
    gaps: int
    again: int  # facts in which the history that is read at the end differs
    connections: int
    seconds: float

    @property
    def holds(self) -> bool:
        return not (self.lost or self.disordered or self.gaps or self.again) and self.twice <= self.changes / 100


class Tree:
    """Changes files, and remembers what it did to each address."""

    def __init__(self, folder: Path, choice: random.Random) -> None:
        self._folder, self._choice = folder, choice
        self._spare = folder.with_name("spare")
        self._spare.mkdir()
        self._sizes: dict[str, int] = {}  # of every address that there ever was
        self._there: list[str] = []
        self._made = 0
        self.log: dict[str, list[int | None]] = defaultdict(list)
        for place in range(FOLDERS):
            (folder / f"d{place}" / "below").mkdir(parents=True)

    def change(self, used: set[str]) -> list[Fact]:
        """One change, of addresses that were not used."""
        kind = self._choice.choices(("create", "update", "delete", "move"), (35, 40, 15, 10))[0]
        name = None if kind == "create" else self._free(used)
        if name is None:
            return [self._put(self._fresh(used), used)]
        if kind == "update":
            return [self._put(name, used)]
        used.add(name)
        self._there.remove(name)
        if kind == "delete":
            (self._folder / name).unlink()
            return [self._did(name, None)]
        to = self._fresh(used)
        used.add(to)
        (self._folder / name).rename(self._folder / to)
        self._sizes[to] = self._sizes[name]
        self._there.append(to)
        return [self._did(name, None), self._did(to, self._sizes[to])]

    def _put(self, name: str, used: set[str]) -> Fact:
        """In one step, so that nobody sees half of it."""
        used.add(name)
        size = self._sizes[name] = self._sizes.get(name, 0) + 1
        if (file := self._folder / name).exists() and self._choice.random() < 0.5:
            with file.open("ab") as growing:
                growing.write(b"x")
        else:
            (self._spare / "new").write_bytes(b"x" * size)
            (self._spare / "new").replace(file)
        if size == 1 or name not in self._there:
            self._there.append(name)
        return self._did(name, size)

    def _did(self, name: str, size: int | None) -> Fact:
        fact = Fact(f"file://{name}", size)
        self.log[fact.uri].append(size)
        return fact

    def _fresh(self, used: set[str]) -> str:
        """A new name, or one that was there before."""
        gone = self._choice.choice([*self._sizes][-200:]) if self._sizes and self._choice.random() < 0.1 else ""
        if gone and gone not in used and not (self._folder / gone).exists() and not gone.startswith("moved"):
            return gone
        self._made += 1
        below = "below/" if self._made % 3 else ""
        return f"d{self._choice.randrange(FOLDERS)}/{below}n{self._made}.md"

    def _free(self, used: set[str]) -> str | None:
        for _ in range(20):
            if self._there and (name := self._choice.choice(self._there[-2_000:])) not in used:
                return name
        return None


class Server:
    """The program, as anybody runs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = 0
        self.ready = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._saying: asyncio.Task[None] | None = None
        self.said: list[str] = []

    async def start(self) -> None:
        paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        command = [sys.executable, "-m", "octavo", "serve", "--http", "127.0.0.1:0", "--no-auth"]
        self._process = await asyncio.create_subprocess_exec(
            *command, cwd=self._folder, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )  # fmt: skip
        assert self._process.stderr is not None
        async with asyncio.timeout(LIMIT):
            while not (found := re.search(rb":(\d+)/mcp", line := await self._process.stderr.readline())):
                assert line, f"the server ended: {self.said}"
                self.said.append(line.decode())
        self.port = int(found[1])
        self._saying = asyncio.ensure_future(self._hear(self._process.stderr))
        self.ready.set()

    async def _hear(self, errors: asyncio.StreamReader) -> None:
        async for line in errors:
            self.said.append(line.decode(errors="replace"))

    async def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        self.ready.clear()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(how)
            await self._process.wait()
        if self._saying is not None:
            await self._saying


class Reader:
    """Hears all that is told, and comes again with the number of the last."""

    def __init__(self, servers: Sequence[Server], last: str = "") -> None:
        self._servers = servers
        self.last = last
        self.heard: dict[str, list[int | None]] = defaultdict(list)
        self.connections = self.gaps = self.count = 0
        self._waits: Counter[Fact] = Counter()
        self._done, self.begun, self.more = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def missing(self) -> int:
        """Of what is expected, what was not heard in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LIMIT):
                while +self._waits:
                    self._done.clear()
                    await self._done.wait()
        return (+self._waits).total()

    def expect(self, facts: list[Fact]) -> None:
        self._waits.update(facts)

    async def run(self) -> None:
        for turn in itertools.count():
            server = self._servers[turn % len(self._servers)]
            if len(self._servers) == 1:
                await server.ready.wait()
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._connect(server.port)
            await asyncio.sleep(AGAIN)

    async def _connect(self, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        try:
            told = f"Last-Event-ID: {self.last}\r\n" if self.last else ""
            writer.write(f"GET /changes HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{told}\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                assert b" 503 " in head[:20], head  # the store is away
                return
            self.connections += 1
            rest = b""
            while size := int(await reader.readuntil(b"\r\n"), 16):
                rest += (await reader.readexactly(size + 2))[:-2]
                *events, rest = rest.split(b"\n\n")
                for event in events:
                    self._take(event)
        finally:
            writer.close()

    def _facts(self, event: dict[str, Any]) -> list[Fact]:
        uri, kind = event["uri"], event["type"].removeprefix("resource/")
        if kind == "deleted":
            return [Fact(uri, None)]
        _, size = event["changes"].get("size", (None, None))
        if kind != "renamed":
            return [Fact(uri, size)]
        before = [one for one in self.heard[event["from"]] if one is not None]
        return [Fact(event["from"], None), Fact(uri, size or before[-1])]  # what differs alone is told

    def _take(self, event: bytes) -> None:
        fields = dict(line.split(b": ", 1) for line in event.split(b"\n"))
        if b"id" in fields:
            self.last = fields[b"id"].decode()
            self.begun.set()
        if fields.get(b"event") == b"gap":
            self.gaps += 1
        if fields.get(b"event") != b"change":
            return
        for fact in self._facts(json.loads(fields[b"data"])):
            self.heard[fact.uri].append(fact.size)
            self.count += 1
            self.more.set()
            self._waits[fact] -= 1
            if self._waits[fact] <= 0:
                del self._waits[fact]
            if not self._waits:
                self._done.set()


class Truth:
    """`break_it` restarts what is behind the store, `restarts` times. Of several `servers` on one state each is killed
    in its turn, and the reader goes from one to the next."""

    def __init__(
        self, folder: Path, store: str, *, changes: int, kills: int, seed: int, restarts: int = 0, servers: int = 1,
        break_it: Callable[[], Awaitable[None]] | None = None, say: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        self._folder, self._changes, self._kills, self._restarts = folder, changes, kills, restarts
        self._choice, self._break_it, self._say = random.Random(seed), break_it, say
        (folder / "work").mkdir()
        (folder / "octavo.yaml").write_text(CONFIG.format(store=store), encoding="utf-8")
        self._tree = Tree(folder / "work", random.Random(seed + 1))
        self._servers = [Server(folder) for _ in range(servers)]
        self._killed = itertools.cycle(self._servers)
        self._reader = Reader(self._servers)

    async def run(self) -> Outcome:
        begun = time.monotonic()
        size = min(ROUND, max(1, self._changes // max(1, self._kills + self._restarts + 1)))
        rounds = max(1, -(-self._changes // size))
        fatal = {*self._choice.sample(range(rounds), min(self._kills, rounds))}
        left = [one for one in range(rounds) if one not in fatal]
        broken = {*self._choice.sample(left, min(self._restarts, len(left)))}
        for server in self._servers:
            await server.start()
        reading = asyncio.ensure_future(self._reader.run())
        done = lost = 0
        try:
            async with asyncio.timeout(LIMIT):
                await self._reader.begun.wait()
            first = self._reader.last
            for number in range(rounds):
                count = min(size, self._changes - done)
                await self._round(count, number in fatal, number in broken)
                done += count
                if lost := await self._reader.missing():
                    break
                if number % 10 == 9:
                    took, connections = time.monotonic() - begun, self._reader.connections
                    self._say(f"{done} changes, {took:.0f} s, {connections} connections")
            again = await self._again(first) if not lost else 0
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
            for server in self._servers:
                await server.kill()
        twice, missing, disordered = self._compared()
        return Outcome(
            done, len(fatal), len(broken), max(lost, missing), twice, disordered, self._reader.gaps, again,
            self._reader.connections, round(time.monotonic() - begun, 1),
        )  # fmt: skip

    async def _round(self, count: int, fatal: bool, broken: bool) -> None:
        """Something breaks before one of the changes, and is there again before the same or a later one."""
        used: set[str] = set()
        down, up = sorted(self._choice.randrange(PLACES + 1) * count // PLACES for _ in range(2))
        starting: asyncio.Future[None] | None = None
        server = next(self._killed) if fatal else self._servers[0]
        for place in range(count + 1):
            if place == down and fatal:
                await server.kill()
            if place == down and broken and self._break_it is not None:
                starting = asyncio.ensure_future(self._break_it())
            if place == up and fatal:
                starting = asyncio.ensure_future(server.start())
            if place < count:
                facts = self._tree.change(used)
                self._reader.expect(facts)
                if place % 50 == 49:
                    await asyncio.sleep(0)
        if starting is not None:
            await starting

    def _compared(self) -> tuple[int, int, int]:
        """How many were heard twice, were never heard, and the addresses of which something came in another order."""
        twice = missing = disordered = 0
        for uri in {*self._tree.log, *self._reader.heard}:
            wanted, heard = self._tree.log[uri], self._reader.heard[uri]
            once = [size for place, size in enumerate(heard) if not place or heard[place - 1] != size]
            twice += len(heard) - len(once)
            if once != wanted:
                missing += sum((Counter(wanted) - Counter(once)).values())
                disordered += 1
        return twice, missing, disordered

    async def _again(self, first: str) -> int:
        """The whole history, once more."""
        reader = Reader(self._servers, first)
        reading = asyncio.ensure_future(reader.run())
        wanted = self._reader.count
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LIMIT):
                    while reader.count < wanted:
                        reader.more.clear()
                        await reader.more.wait()
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
        return sum(reader.heard[uri] != self._reader.heard[uri] for uri in {*reader.heard, *self._reader.heard})


async def of_sqlite(
    changes: int, kills: int, seed: int, servers: int = 1, say: Callable[[str], None] = lambda text: None
) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        truth = Truth(Path(folder), "{kind: sqlite}", changes=changes, kills=kills, seed=seed, servers=servers, say=say)
        return await truth.run()


async def of_postgres(
    changes: int, kills: int, seed: int, restarts: int, servers: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> Outcome:  # fmt: skip
    """Raises Absent where no PostgreSQL can be had."""
    from tests.services import engines, fixtures

    fixtures.HOME.mkdir(mode=0o711, exist_ok=True)
    choice = random.Random(seed + 2)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(engines.running("postgres", fixtures.HOME / f"t{os.getpid()}"))

        async def restart() -> None:
            await asyncio.to_thread(server.stop, choice.choice((signal.SIGINT, signal.SIGQUIT)))
            await asyncio.to_thread(server.start)

        address = str(server.address)
        await fixtures.run_sql(address, "ALTER DATABASE postgres SET synchronous_commit = on")
        (folder / "url").write_text(f"postgresql://test@/postgres?host={address}", encoding="utf-8")
        truth = Truth(
            folder, '{kind: postgres, url: "file:./url"}', changes=changes, kills=kills, seed=seed, restarts=restarts,
            servers=servers, break_it=restart, say=say,
        )  # fmt: skip
        return await truth.run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--servers", type=int, default=1, help="on one state")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--result", type=Path)
    given = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if given.store == "sqlite":
        outcome = asyncio.run(of_sqlite(given.changes, given.kills, given.seed, given.servers, say))
    else:
        run = of_postgres(given.changes, given.kills, given.seed, given.restarts, given.servers, say)
        outcome = asyncio.run(run)
    told = {
        "seed": given.seed,
        "store": given.store,
        "servers": given.servers,
        "holds": outcome.holds,
        **outcome._asdict(),
    }
    print(json.dumps(told))
    if given.result is not None:
        given.result.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return 0 if outcome.holds else 1


if __name__ == "__main__":
    sys.exit(main())
