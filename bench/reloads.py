"""A server that is reloaded again and again while agents use it, or whose files change under a ranked search.

    python bench/reloads.py                      a reload every 2 s for 30 s, beside reads, lists and ranked searches
    python bench/reloads.py --changes 100        no reload; 100 files change every second beside ranked searches
    python bench/reloads.py --seconds 120 --every 1

Four agents ask over HTTP on the loopback, each at a pace that leaves the machine room: what is late or refused is so
because of the reload. They search catalogs under a policy that tells each of them something else. The first round is
quiet, for comparison. What the server holds is told every ten reloads: it has to level off.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fulltext import documents
from overload import AGENTS, Client, key

ASKING = 4
PACE = 0.05  # seconds between two requests of one agent
FOLDERS = {"sop": "sops", "doc": "docs", "file": "work"}
HELD_EVERY = 10  # reloads between two looks at the memory
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "read": ("resources/read", {"uri": "sop://brand/first"}),
    "list": ("resources/list", {}),
    "ranked": ("tools/call", {"name": "search", "arguments": {"query": "budget policy", "kind": "ranked"}}),
}


def fill(folder: Path, count: int) -> list[Path]:
    made = []
    for one in documents(count):
        file = folder / FOLDERS[one.ref.scheme] / one.ref.segments[0] / f"{one.ref.name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ntitle: {json.dumps(one.title)}\n---\n{one.text}\n", encoding="utf-8")
        made.append(file)
    (folder / "sops/brand/first.md").write_text("---\ntitle: First\n---\nThe first.\n", encoding="utf-8")
    return made


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[int, int]]:
    config = {
        "version": 1,
        "sources": {
            "handbook": {"kind": "file", "roots": ["./handbook"], "expose": False},
            "sops": {"kind": "sop", "store": "handbook", "path": "sops"},
            "docs": {"kind": "doc", "store": "handbook", "path": "docs"},
            "work": {"kind": "file", "roots": ["./handbook/work"], "scheme": "work", "write": True},
        },
        "agents": {f"a{number}": {"key": f"${{KEY_{number}}}"} for number in range(AGENTS)},
        # With a rule for each agent, so that each sees something else and the ranked search has to remember whom.
        "policy": [
            {"who": "*", "may": ["list", "read", "search", "invoke"], "what": "**"},
            *(
                {"who": f"a{number}", "may": "*", "what": f"doc://*/page-{number}*", "effect": "deny"}
                for number in range(AGENTS)
            ),
        ],
        "limits": {"per_principal": "off"},
    }
    (folder / "octavo.yaml").write_text(json.dumps(config), encoding="utf-8")
    environment = {**os.environ, **{f"KEY_{number}": key(number) for number in range(AGENTS)}}
    command = [
        sys.executable,
        "-m",
        "octavo",
        "serve",
        "--config",
        str(folder / "octavo.yaml"),
        "--http",
        "127.0.0.1:0",
    ]
    with (folder / "log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(*command, stderr=log, env=environment)
    try:
        while not (found := re.search(r":(\d+)/mcp", (folder / "log").read_text(encoding="utf-8"))):
            await asyncio.sleep(0.05)
        yield int(found[1]), server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        await server.wait()


def held(pid: int) -> str:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    threads, memory = (int(status.partition(name)[2].split()[0]) for name in ("Threads:", "VmRSS:"))
    return f"{threads} threads, {memory / 1000:.0f} MB"


async def asked(port: int, kinds: Iterator[str], seconds: float) -> dict[str, Client]:
    clients = {kind: Client(port, KINDS) for kind in KINDS}
    until = time.perf_counter() + seconds

    async def one(agent: int) -> None:
        while time.perf_counter() < until:
            kind = next(kinds)
            await clients[kind].ask(kind, agent)
            await asyncio.sleep(PACE)

    await asyncio.gather(*(one(number) for number in range(ASKING)))
    return clients


def show(name: str, clients: dict[str, Client], pid: int) -> None:
    print(f"{name}: {held(pid)}")
    for kind, client in clients.items():
        if took := sorted(client.took):
            p50, p99 = (1000 * took[int(len(took) * part)] for part in (0.5, 0.99))
            print(f"  {kind:7} {dict(client.outcomes)}, p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)


def change(file: Path) -> None:
    """As an editor saves it; and now and then a file comes and one goes."""
    draft = file.with_suffix(".new")
    draft.write_text(file.read_text(encoding="utf-8") + "one more line\n", encoding="utf-8")
    draft.replace(file)
    other = file.with_name("passing.md")
    if other.exists():
        other.unlink()
    else:
        other.write_text("It comes and goes.\n", encoding="utf-8")


async def measure(count: int, seconds: float, every: float, changes: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        files = fill(folder / "handbook", count)
        async with served(folder) as (port, pid):
            ready = Client(port, KINDS)
            while not ready.took:
                await ready.ask("ranked", 0)
            await asked(port, itertools.cycle(("ranked",)), 5)
            kinds = itertools.cycle(("ranked",) if changes else tuple(KINDS))
            show("quiet", await asked(port, kinds, 10), pid)

            async def disturb() -> None:
                turn = itertools.cycle(files)
                for number in itertools.count(1):
                    await asyncio.sleep(1 / changes if changes else every)
                    if changes:
                        change(next(turn))
                        continue
                    os.kill(pid, signal.SIGHUP)
                    if not number % HELD_EVERY:
                        print(f"  after {number} reloads: {held(pid)}", flush=True)

            disturbing = asyncio.ensure_future(disturb())
            name = f"{changes} changes a second" if changes else f"a reload every {every:g} s"
            show(name, await asked(port, kinds, seconds), pid)
            disturbing.cancel()
        print((folder / "log").read_text(encoding="utf-8").count("configuration reloaded"), "reloads")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--documents", type=int, default=3000)
    options.add_argument("--seconds", type=float, default=30.0)
    options.add_argument("--every", type=float, default=2.0)
    options.add_argument("--changes", type=int, default=0)
    given = options.parse_args()
    print(f"octavo {version('octavo')}: {' '.join(sys.argv)}")
    asyncio.run(measure(given.documents, given.seconds, given.every, given.changes))


if __name__ == "__main__":
    main()
