"""A large state, moved from SQLite to PostgreSQL and back by what `octavo state move` does.

    python -m tests.stores.moving --changes 100000 --tasks 1000

The state is made by the rooms that keep it: change feed, tasks, approvals. Before and after it is read by the ports,
beside what moves it. Told is what of it was lost, what came beside it, and how long each way took; and the same of a
backup that is brought back.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

from tests.stores.stored import given

from octavo.app.configuration import load
from octavo.core.approval import Approval, Step, Wanted
from octavo.core.clock import SystemClock
from octavo.core.ports.stores import MOST, Store
from octavo.core.ref import Ref
from octavo.core.tasks import StoredTask, Task
from octavo.core.values import Change, Entry, Principal
from octavo.feed.journal import ChangeJournal
from octavo.ops.state import back_up, move, restore
from octavo.stores.approvals import StoredApprovals
from octavo.stores.postgres import PostgresStore
from octavo.stores.presence import InFolder
from octavo.stores.sqlite import SQLiteStore
from octavo.stores.tasks import StoredTasks

APPROVALS = 20
PART = 1_000  # changes of one transaction
SOURCES = "sources: {mem: {kind: memory, scheme: mem, resources: {one: {text: content}}}}\n"


class Seen(NamedTuple):
    """What a store answers."""

    pairs: frozenset[tuple[str, bytes]]
    records: frozenset[tuple[int, bytes]]
    span: tuple[int, int]


class Result(NamedTuple):
    records: int
    pairs: int
    lost: int
    strange: int
    seconds: dict[str, float]


def run(folder: Path, url: str, schema: str, *, changes: int, tasks: int) -> Result:
    """In a folder where nothing is."""
    (folder / "address").write_text(f"{url}\n", encoding="utf-8")
    (folder / "address").chmod(0o600)
    here, there = folder / "octavo.yaml", folder / "new.yaml"
    here.write_text(SOURCES, encoding="utf-8")
    there.write_text(
        f'{SOURCES}store: {{kind: postgres, url: "file:address", schema: {schema}, time: 60s}}\n', encoding="utf-8"
    )
    state = folder / ".octavo"
    state.mkdir(mode=0o700)
    asyncio.run(fill(state, changes, tasks))
    sqlite, postgres = (lambda: SQLiteStore(state, patience=60)), (lambda: PostgresStore(url, schema=schema))
    before, seconds = seen(sqlite), dict[str, float]()
    timed(seconds, "SQLite to PostgreSQL", lambda: move(load(here), load(there), "local"))
    moved = seen(postgres)
    (state / "store.db").rename(folder / "before.db")
    timed(seconds, "PostgreSQL to SQLite", lambda: move(load(there), load(here), "local"))
    back = seen(sqlite)
    timed(seconds, "backup", lambda: back_up(load(here), folder / "kept.tar", "local", replace=False))
    state.rename(folder / "before")
    timed(seconds, "restore", lambda: restore(load(here), folder / "kept.tar", "local"))
    found = [moved, back, seen(sqlite)]
    return Result(
        len(before.records), len(before.pairs),
        sum(len(before.pairs - one.pairs) + len(before.records - one.records) for one in found),
        sum(len(one.pairs - before.pairs) + len(one.records - before.records) + (one.span != before.span)
            for one in found),
        seconds,
    )  # fmt: skip


async def fill(state: Path, changes: int, tasks: int) -> None:
    async with SQLiteStore(state, patience=60) as store:
        opens, now = given(store), SystemClock.wall()
        journal = ChangeJournal(opens, keep=changes)
        for first in range(0, changes, PART):
            await journal.record([changed(number) for number in range(first, min(changes, first + PART))])
        kept = StoredTasks(opens, InFolder(state))
        for number in range(tasks):
            who = f"agent-{number % 50}"
            task = Task(id=f"task{number}", who=who, tool="work", status="working", created=now, updated=now, ttl=7_200)
            await kept.add(StoredTask(task=task, principal=Principal(who)), most=tasks)
        waiting = StoredApprovals(opens, _unheard)
        for number in range(APPROVALS):
            wanted = Wanted(
                who=f"agent-{number}", act="invoke tool://wipe", rule="policy[0]", people=1, request="r", versions="v"
            )
            await waiting.ask(wanted, seconds=7_200)
        await kept.close()


def changed(number: int) -> Change:
    ref = Ref("note", (f"folder {number % 100}", f"{number}.md"))
    entry = Entry(ref=ref, name=ref.name, version=str(number), title=f"Document {number}", size=number)
    return Change(kind="created", ref=ref, at=1.0, new=entry)


def _unheard(step: Step, approval: Approval, person: str) -> None:
    pass


def seen(opening: Callable[[], AbstractAsyncContextManager[Store]]) -> Seen:
    async def look() -> Seen:
        async with opening() as store:
            pairs, records = list[tuple[str, bytes]](), list[tuple[int, bytes]]()
            while more := await store.keys.scan("", after=pairs[-1][0] if pairs else "", limit=MOST):
                pairs += [(pair.key, pair.value) for pair in more]
            while some := await store.journal.read(records[-1][0] if records else 0, limit=MOST):
                records += [(record.number, record.body) for record in some]
            return Seen(frozenset(pairs), frozenset(records), tuple(await store.journal.span()))

    return asyncio.run(look())


def timed(seconds: dict[str, float], what: str, work: Callable[[], object]) -> None:
    begun = time.monotonic()
    work()
    seconds[what] = time.monotonic() - begun


def main() -> int:
    from tests.services import engines, fixtures

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=1_000)
    options = parser.parse_args()
    fixtures.HOME.mkdir(mode=0o711, exist_ok=True)
    with (
        engines.running("postgres", fixtures.HOME / f"m{os.getpid()}") as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        url = f"postgresql://test@/postgres?host={server.address}"
        result = run(Path(folder), url, "octavo", changes=options.changes, tasks=options.tasks)
    told = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in result.seconds.items())
    print(
        f"{result.records:,} changes and {result.pairs:,} values, of {options.tasks:,} tasks and {APPROVALS} approvals"
    )
    print(f"{result.lost} lost, {result.strange} that were not there before; {told}")
    return bool(result.lost or result.strange)


if __name__ == "__main__":
    sys.exit(main())
