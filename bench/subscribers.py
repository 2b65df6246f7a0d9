"""Very many subscribers over HTTP, of whom few hear of each change: what a change costs, and how late it is heard.

    python bench/subscribers.py                                            10,000 subscribers, 100 changes/s for 20 s
    python bench/subscribers.py --subscribers 10000 --changes 1000 --seconds 60

Each subscriber is one stream of its own (`subscriptions/listen`, 2026-07-28) on a socket of its own, with a pattern
that nobody else has; ten of them cover the same page. A server publishes changes at a rate, of pages by chance
(`--seed`), as fast as it can where that is slower. One in twenty never reads. The delay goes from `publish` to the
bytes in the client's hands. Processor time of a change is told twice: of `publish` alone (decisions, matching, notes),
and of the whole process, with all that leaves at its sockets. What opening the streams left to the collector of
garbage is collected before. Server and client share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import re
import resource
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry
from octavo.stores.state import StateDirectory
from octavo.transport.http import serve
from octavo.transport.http.auth import Authentication
from octavo.transport.http.deadlines import Deadlines

AGENTS = 50
PATTERNS = (
    "{}/*", "{}/page", "{}/p*", "{}/pa*", "{}/*e", "{}/*ge", "{}/*a*", "{}/**/page", "{}/page/*", "{}/p*e",
)  # fmt: skip
SILENT = 20  # one in so many never reads
BATCH = 10  # changes in one turn of the loop
AT_ONCE = 40  # streams that are being opened
PATIENCE = 60.0  # seconds for the last events
QUIET = 3.0  # seconds without changes, for comparison
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
NUMBER = re.compile(rb'"version":\["[^"]*","n(\d+)"\]')


def key(agent: int) -> str:
    return f"key-of-agent-{agent}-{'x' * 16}"


def page(group: int) -> str:
    return f"mem://team/{group}/page"


# -- the server


def changes(groups: int, seed: int) -> Iterator[Change]:
    chance, number = random.Random(seed), 0
    while True:
        ref = Ref.parse(page(chance.randrange(groups)))
        old, new = (Entry(ref=ref, name="page", version=f"n{one}") for one in (number, number + 1))
        yield Change(kind="updated", ref=ref, at=time.time(), old=old, new=new)
        number += 1


async def publish(octavo: Octavo, groups: int, rate: float, seconds: float, seed: int) -> dict[str, Any]:
    gc.collect()  # what opening has left would be looked through once, while it is measured
    idle = time.process_time()
    await asyncio.sleep(QUIET)
    idle = (time.process_time() - idle) / QUIET  # a second, to keep the streams open: each is pinged every 15 s
    times: list[float] = []
    told, told_to, hub = changes(groups, seed), list[str](), 0.0
    processor, begun = time.process_time(), time.monotonic()
    while (now := time.monotonic() - begun) < seconds:
        while len(times) < now * rate:
            change = next(told)
            times.append(time.monotonic())
            told_to.append(str(change.ref))
            spent = time.thread_time()
            octavo.feed.publish(change)
            hub += time.thread_time() - spent
            if len(times) % BATCH == 0:
                break  # what is told must leave as well
        await asyncio.sleep(max(0.0, len(times) / rate - (time.monotonic() - begun)))
    took = time.monotonic() - begun
    await asyncio.sleep(1.0)  # what waits in it leaves
    worked = time.process_time() - processor
    return {"times": times, "pages": told_to, "hub": hub, "worked": worked, "took": took, "idle": idle}


async def server(given: argparse.Namespace) -> None:
    agents = {f"a{number}": {"key": key(number)} for number in range(AGENTS)}
    config = {
        "version": 1,
        "sources": {"mem": {"kind": "memory", "scheme": "mem", "resources": {"one": {"text": "one"}}}},
        "agents": {name: {"key": f"${{{name.upper()}}}"} for name in agents},
        "policy": [
            {"who": "*", "may": ["list", "read", "watch"], "what": "mem://*"},
            {"who": "*", "may": "*", "what": "mem://hr/*", "effect": "deny"},
        ],
        "limits": {"per_principal": "off", "subscriptions": 2 * given.subscribers},
        "search": {"enabled": False},
    }
    keys = {name.upper(): agent["key"] for name, agent in agents.items()}
    groups = max(1, given.subscribers // len(PATTERNS))
    with tempfile.TemporaryDirectory() as folder:
        loaded = load_text(json.dumps(config), file=Path(folder) / "octavo.yaml", environ=keys)
        async with Octavo(loaded, state=StateDirectory.in_memory()) as octavo:
            app, hub = serve.application(
                octavo, access=Authentication(), hosts=["127.0.0.1:*"], origins=[], lane=True, strict_codes=False
            )
            listening = socket.create_server(("127.0.0.1", 0), backlog=1024)

            async def obey() -> None:
                await asyncio.to_thread(sys.stdin.readline)
                done = await publish(octavo, groups, given.changes, given.seconds, given.seed)
                print(json.dumps(done), flush=True)

            obeying = asyncio.ensure_future(obey())
            try:
                deadlines = Deadlines(connections=2 * given.subscribers + 100)
                await serve.serve(app, hub, listening, lambda address: print(address, flush=True), deadlines=deadlines)
            finally:
                obeying.cancel()


# -- the clients


class Stream(asyncio.Protocol):
    """One subscriber. Raises what the server refuses."""

    def __init__(self, number: int, pattern: str, *, reads: bool) -> None:
        self.number, self.pattern, self.reads = number, pattern, reads
        self.acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard: list[tuple[int, float]] = []
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        asked = {"notifications": {"resourceSubscriptions": [self.pattern]}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": self.number, "method": "subscriptions/listen", "params": asked}
        body = json.dumps(message).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer {key(self.number % AGENTS)}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        transport.write(head.encode() + body)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        data = self._rest + data
        if not self.acknowledged.done():
            if b'"error"' in data:
                self.acknowledged.set_exception(SystemExit(data.decode()))
            elif self.pattern.encode() in data and data.endswith(b"\r\n"):
                self.acknowledged.set_result(None)
                if not self.reads:
                    self.transport.pause_reading()
                data = b""
        end = 0
        for found in NUMBER.finditer(data):
            self.heard.append((int(found[1]) - 1, now))
            end = found.end()
        self._rest = data[end:]


async def opened(port: int, subscribers: int) -> list[Stream]:
    loop, room = asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> Stream:
        group, which = divmod(number, len(PATTERNS))
        pattern = PATTERNS[which].format(f"mem://team/{group}")
        async with room:
            reads = number % SILENT != 0
            _, stream = await loop.create_connection(lambda: Stream(number, pattern, reads=reads), "127.0.0.1", port)
            await stream.acknowledged
        return stream

    return list(await asyncio.gather(*map(one, range(subscribers))))


def memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def at(part: float, values: Sequence[float]) -> float:
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


async def measure(given: argparse.Namespace) -> bool:
    """Whether nobody who reads has lost anything, or heard it out of order."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--server", *sys.argv[1:],
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 30,
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    try:
        found = re.search(rb":(\d+)/mcp", await child.stdout.readline())
        assert found, "the server did not start"
        before, begun = memory(child.pid), time.monotonic()
        streams = await opened(int(found[1]), given.subscribers)
        each = (memory(child.pid) - before) / len(streams)
        print(
            f"{len(streams)} subscribers in {time.monotonic() - begun:.0f} s, {each / 1000:.1f} KB each; "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        child.stdin.write(b"\n")
        done = json.loads(await child.stdout.readline())
        groups = max(1, given.subscribers // len(PATTERNS))
        of: dict[str, list[int]] = {page(group): [] for group in range(groups)}
        for number, uri in enumerate(done["pages"]):
            of[uri].append(number)
        listening = [stream for stream in streams if stream.reads]
        expected = {stream.number: of.get(page(stream.number // len(PATTERNS)), []) for stream in listening}
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and any(len(one.heard) < len(expected[one.number]) for one in listening):
            await asyncio.sleep(0.1)
        wrong = sum([number for number, _ in one.heard] != expected[one.number] for one in listening)
        times = done["times"]
        delays = sorted(when - times[number] for one in listening for number, when in one.heard)
        count = len(times)
        print(
            f"{count} changes at {count / done['took']:.0f}/s, {len(delays)} events heard; "
            f"delay p50 {at(0.5, delays) * 1000:.1f} ms, p99 {at(0.99, delays) * 1000:.1f} ms; "
            f"processor time of a change {done['hub'] / count * 1e6:.0f} us in publish, "
            f"{done['worked'] / count * 1e6:.0f} us in all (without changes the process works {done['idle']:.0%}); "
            f"subscribers that lost something or heard it out of order: {wrong} of {len(listening)}; "
            f"{memory(child.pid) / len(streams) / 1000:.1f} KB for each in the end; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        for stream in streams:
            stream.transport.abort()
        return not wrong
    finally:
        child.send_signal(signal.SIGTERM)
        await child.wait()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--subscribers", type=int, default=10_000)
    options.add_argument("--changes", type=float, default=100.0, help="a second")
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--server", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if given.server:
        asyncio.run(server(given))
    else:
        sys.exit(0 if asyncio.run(measure(given)) else 1)


if __name__ == "__main__":
    main()
