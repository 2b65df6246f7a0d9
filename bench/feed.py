"""What the durable feed costs: from a write to the notification in a client's hands.

    python bench/feed.py                                       with the state in memory, and in SQLite
    python bench/feed.py --store postgres --url postgresql://…
    python bench/feed.py --source ../before/src --store sqlite another Octavo, such as a checkout of before

A real server over HTTP, a client with one stream (`subscriptions/listen`, 2026-07-28), and a file that is written again
and again: first the next one when the last was heard, then many at a rate. Told are the delays, and the processor time
that the server spent for a change. Server and client share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
FILES = 50
CONFIG = """
version: 1
sources: {{work: {{kind: file, uris: relative, roots: [./work], extensions: [.md]}}}}
search: {{enabled: false}}
{more}
"""
KEPT = {
    "memory": "audit: {fail_closed: false}\nstate: {path: /proc/none}",  # a state folder that cannot be written
    "sqlite": "state: {path: ./state}",
    "postgres": 'state: {path: ./state}\nstore: {kind: postgres, url: "file:./url"}',
}
SIZE = re.compile(rb'"size":\[[^,]*,(\d+)\]')


def at(part: float, values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000 if ordered else float("nan")


class Client(asyncio.Protocol):
    """Hears which sizes were told, each of which is there once."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.told: dict[int, float] = {}
        self.begun, self.more = asyncio.Event(), asyncio.Event()
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        asked = {"notifications": {"resourceSubscriptions": ["file://*"]}, "_meta": META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": asked}).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\n"
            f"Mcp-Method: subscriptions/listen\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        transport.write(head.encode() + body)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        data = self._rest + data
        if b"acknowledged" in data:
            self.begun.set()
        end = 0
        for found in SIZE.finditer(data):
            self.told.setdefault(int(found[1]), now)
            end = found.end()
        self._rest = data[end:]
        self.more.set()

    async def until(self, sizes: set[int]) -> None:
        async with asyncio.timeout(60):
            while not sizes <= self.told.keys():
                self.more.clear()
                await self.more.wait()


def processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(given: argparse.Namespace, store: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work = folder / "work"
        work.mkdir()
        (folder / "octavo.yaml").write_text(CONFIG.format(more=KEPT[store]), encoding="utf-8")
        (folder / "url").write_text(given.url, encoding="utf-8")
        files = [(work / f"n{place}.md").open("ab", buffering=0) for place in range(FILES)]
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "octavo", "serve", "--http", "127.0.0.1:0", "--no-auth", cwd=folder,
            stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(given.source)},
        )  # fmt: skip
        assert server.stderr is not None
        try:
            while not (found := re.search(rb":(\d+)/mcp", line := await server.stderr.readline())):
                assert line, "the server did not start"
            port = int(found[1])
            loop = asyncio.get_running_loop()
            _, client = await loop.create_connection(lambda: Client(port), "127.0.0.1", port)
            await client.begun.wait()
            await asyncio.sleep(2)  # what a start has to do is done
            written: dict[int, float] = {}
            size = 0

            def write() -> None:
                """The sizes of all files are apart."""
                nonlocal size
                place = size % FILES
                grown = place * 1_000_000 + size // FILES + 1
                os.ftruncate(files[place].fileno(), grown)
                written[grown] = time.monotonic()
                size += 1

            for _ in range(given.alone):
                write()
                await client.until({next(reversed(written))})
            alone = [client.told[one] - when for one, when in written.items()]
            written.clear()
            before, begun = processor(server.pid), time.monotonic()
            for count in range(given.together):
                write()
                await asyncio.sleep(max(0.0, begun + count / given.rate - time.monotonic()))
            await client.until({*written})
            together = [client.told[one] - when for one, when in written.items()]
            await asyncio.sleep(2)  # what is stored behind
            spent = (processor(server.pid) - before) / given.together * 1e6
            print(
                f"{store}: one after the other p50 {at(0.5, alone):.1f} ms, p99 {at(0.99, alone):.1f} ms; "
                f"{given.rate:g} a second p50 {at(0.5, together):.1f} ms, p99 {at(0.99, together):.1f} ms, "
                f"processor time of a change {spent:.0f} us; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        finally:
            server.send_signal(signal.SIGTERM)
            await server.wait()
            for file in files:
                file.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src")
    options.add_argument("--store", choices=tuple(KEPT), action="append")
    options.add_argument("--url", default="")
    options.add_argument("--alone", type=int, default=300, help="changes, each after the last was heard")
    options.add_argument("--together", type=int, default=1_000, help="changes at a rate")
    options.add_argument("--rate", type=float, default=200.0)
    given = options.parse_args()
    given.source = given.source.resolve()
    for store in given.store or ("memory", "sqlite"):
        asyncio.run(measure(given, store))


if __name__ == "__main__":
    main()
