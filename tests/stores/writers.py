"""Writers in several processes, some of them killed amid their transactions, and a reader that follows the journal.

    python -m tests.stores.writers --store sqlite:DIR --writers 4 --turns 500 --kills 20 --seed 1
    python -m tests.stores.writers --restarts 20 --writers 4 --turns 500 --seed 1

The second form starts a PostgreSQL of its own and restarts it amid the appends, in order or as
a crash, instead of killing writers.

Each writer stores in one transaction a record, and under a key of its own how far it is. Shown at the end: that the
reader saw the whole journal in its order, that nothing that was acknowledged is lost or there twice, and that key and
record of each writer tell the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from octavo.core.errors import SourceUnavailable
from octavo.core.ports.stores import Store

ROOT = Path(__file__).parents[2]
LIMIT = 240.0  # seconds for all of it


class Outcome(NamedTuple):
    records: int
    acknowledged: int
    killed: int
    refused: int
    faults: list[str]


def opened(spec: str, schema: str = "octavo") -> Any:
    kind, _, place = spec.partition(":")
    if kind == "sqlite":
        from octavo.stores.sqlite import SQLiteStore

        return SQLiteStore(Path(place), patience=60)
    from octavo.stores.postgres import PostgresStore

    return PostgresStore(place, schema=schema, patience=20)


async def write(spec: str, schema: str, name: str, turns: int, seed: int) -> None:
    """One writer. Says the number of what was stored; a turn that was refused is looked up before it goes on."""
    choice, turn = random.Random(seed), 0
    while turn < turns:
        try:
            async with opened(spec, schema) as store:
                while turn < turns:
                    done = int(await store.keys.get(f"writer/{name}") or b"-1")
                    if done >= turn:  # its answer was lost
                        say(name, turn=turn, number=None)
                    else:
                        say(name, turn=turn, number=await stored(store, name, turn, choice))
                    turn += 1
        except SourceUnavailable:
            say(name, refused=turn)
            await asyncio.sleep(0.05)


async def stored(store: Store, name: str, turn: int, choice: random.Random) -> int:
    async with store.transaction() as transaction:
        for _ in range(choice.randrange(4)):
            await asyncio.sleep(0)
        (number,) = await transaction.journal.append(b"%s %d" % (name.encode(), turn))
        if choice.random() < 0.3:
            await asyncio.sleep(choice.random() * 0.005)
        await transaction.keys.set(f"writer/{name}", b"%d" % turn)
    return number


def say(name: str, **what: object) -> None:
    print(json.dumps({"name": name, **what}), flush=True)


class Crowd:
    """`break_it` is called instead of a kill, where it is given: what is behind the store goes away and comes back."""

    def __init__(
        self, spec: str, *, schema: str, writers: int, turns: int, kills: int, seed: int,
        break_it: Callable[[], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        self.spec, self.schema, self.turns = spec, schema, turns
        self.choice, self.break_it = random.Random(seed), break_it
        self.acknowledged: dict[tuple[str, int], int | None] = {}
        self.writing, self.killed, self.refused, self.kills = writers, 0, 0, kills
        self.done = asyncio.Event()
        self.breaking = asyncio.Lock()

    async def writer(self, place: int) -> None:
        """One after the other at this place, until one has come to its end."""
        for life in range(1_000):
            name = f"{place}-{life}"
            last = await self._life(name)
            if last:
                break
        self.writing -= 1
        if not self.writing:
            self.done.set()

    async def _life(self, name: str) -> bool:
        command = [sys.executable, "-m", "tests.stores.writers", "--child", name, "--store", self.spec]
        command += ["--schema", self.schema, "--turns", str(self.turns), "--seed", str(self.choice.randrange(1 << 30))]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=environ)
        fatal = self._next_break(0)
        assert process.stdout is not None
        said = 0
        try:
            async for line in process.stdout:
                what = json.loads(line)
                if "refused" in what:
                    self.refused += 1
                    continue
                self.acknowledged[what["name"], what["turn"]] = what["number"]
                said += 1
                if said == fatal:
                    self.killed += 1
                    if self.break_it is None:
                        process.kill()
                        await process.wait()
                        async for rest in process.stdout:  # what was said before it died was stored
                            if rest.endswith(b"}\n") and "turn" in (what := json.loads(rest)):
                                self.acknowledged[what["name"], what["turn"]] = what["number"]
                        return False
                    fatal = self._next_break(said)
                    async with self.breaking:
                        await self.break_it()
        finally:
            if process.returncode is None and said < self.turns:
                process.kill()
            code = await process.wait()
        assert code == 0, f"a writer ended with {code}"
        return True

    def _next_break(self, said: int) -> int | None:
        """After how many turns of a writer; each has its share of what is left."""
        if self.kills <= 0 or said >= self.turns:
            return None
        self.kills -= 1
        span = self.turns if self.break_it is None else max(1, self.turns // 4)
        return min(self.turns, said + self.choice.randint(1, span))

    async def follow(self, store: Store) -> list[tuple[int, bytes]]:
        seen: list[tuple[int, bytes]] = [((await store.journal.span()).after, b"")]
        while True:
            last = self.done.is_set()
            try:
                records = await store.journal.read(seen[-1][0], limit=self.choice.choice((1, 3, 50)))
            except SourceUnavailable:
                await asyncio.sleep(0.02)
                continue
            seen += [(record.number, record.body) for record in records]
            if not records:
                if last:
                    return seen[1:]
                await asyncio.sleep(0.002)

    async def run(self) -> Outcome:
        async with opened(self.spec, self.schema) as store, asyncio.timeout(LIMIT):
            places = range(self.writing)
            seen, *_ = await asyncio.gather(self.follow(store), *(self.writer(place) for place in places))
            whole: list[tuple[int, bytes]] = []
            while records := await store.journal.read(whole[-1][0] if whole else 0, limit=1_000):
                whole += [(record.number, record.body) for record in records]
            at = {pair.key.removeprefix("writer/"): int(pair.value) for pair in await store.keys.scan("writer/")}
        return Outcome(len(whole), len(self.acknowledged), self.killed, self.refused, [*self.faults(seen, whole, at)])

    def faults(self, seen: list[tuple[int, bytes]], whole: list[tuple[int, bytes]], at: dict[str, int]) -> list[str]:
        found: list[str] = []
        if seen != whole:
            found.append(f"the reader saw {len(seen)} records, the journal has {len(whole)}, or in another order")
        if [number for number, _ in whole] != sorted({number for number, _ in whole}):
            found.append("numbers do not grow")
        turns: dict[str, list[int]] = {}
        where: dict[tuple[str, int], int] = {}
        for number, body in whole:
            name, turn = body.decode().split()
            turns.setdefault(name, []).append(int(turn))
            where[name, int(turn)] = number
        for name, done in turns.items():
            if done != [*range(len(done))]:
                found.append(f"{name} stored {done}")
            if at.get(name) != done[-1]:
                found.append(f"{name} is at {at.get(name)} by its key, and at {done[-1]} by the journal")
        for key, number in self.acknowledged.items():
            if key not in where or number not in (None, where[key]):
                found.append(f"{key} was acknowledged as {number}, and is {where.get(key)}")
        return found


async def restarted(writers: int, turns: int, restarts: int, seed: int) -> Outcome:
    """Raises Absent where no PostgreSQL can be had."""
    from tests.services import engines, fixtures

    fixtures.HOME.mkdir(mode=0o711, exist_ok=True)
    with engines.running("postgres", fixtures.HOME / f"r{os.getpid()}") as server:

        async def restart() -> None:
            await asyncio.to_thread(server.stop, crowd.choice.choice((signal.SIGINT, signal.SIGQUIT)))
            await asyncio.to_thread(server.start)

        address = str(server.address)
        await fixtures.run_sql(address, "ALTER DATABASE postgres SET synchronous_commit = on")
        crowd = Crowd(
            f"postgres:postgresql://test@/postgres?host={address}", schema="octavo", writers=writers, turns=turns,
            kills=restarts, seed=seed, break_it=restart,
        )  # fmt: skip
        return await crowd.run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="")
    parser.add_argument("--schema", default="octavo")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--restarts", type=int, default=0)
    given = parser.parse_args()
    if given.child:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        asyncio.run(write(given.store, given.schema, given.child, given.turns, given.seed))
        return 0
    if given.restarts:
        outcome = asyncio.run(restarted(given.writers, given.turns, given.restarts, given.seed))
    else:
        with tempfile.TemporaryDirectory() as folder:
            crowd = Crowd(
                given.store or f"sqlite:{folder}", schema=given.schema, writers=given.writers, turns=given.turns,
                kills=given.kills, seed=given.seed,
            )  # fmt: skip
            outcome = asyncio.run(crowd.run())
    what = "restarts" if given.restarts else "writers killed"
    print(f"{outcome.records} records, {outcome.acknowledged} acknowledged, {outcome.killed} {what}, ", end="")
    print(f"{outcome.refused} refused, {len(outcome.faults)} faults")
    for fault in outcome.faults[:20]:
        print(f"  {fault}")
    return bool(outcome.faults)


if __name__ == "__main__":
    sys.exit(main())
