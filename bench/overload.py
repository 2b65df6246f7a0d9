"""More requests than the server can answer: how many good answers are left, and what the others are told.

    python bench/overload.py                         three times the capacity, for 15 s
    python bench/overload.py --times 5 --seconds 30

A server over HTTP on the loopback is first asked as fast as it answers: its capacity. Then requests come at a rate of
their own, several times as many, whether or not earlier ones were answered, from eight agents of which one sends half.
Then its capacity is taken once more: where the two differ much, others used the machine meanwhile. How many good
answers a second of the server's processor time gives depends less on them, so that is told too.
An answer is good if it comes within a second. Two kinds: searches, which work in threads, and lists that do not take
the short way, which work in the loop. Client and server share the machine, so both figures are lower than they could
be, and their ratio is what counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

AGENTS = 8
FILES = 30
DEADLINE = 1.0  # seconds in which an answer is worth something
PATIENCE = 10.0  # seconds after which a client leaves
CONNECTIONS = 2000
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "search": ("tools/call", {"name": "search", "arguments": {"query": "needle"}}),
    "list": ("resources/list", {}),
}


def key(agent: int) -> str:
    return f"key-of-agent-{agent}-{'x' * 16}"


def message(kind: str, agent: int, kinds: dict[str, tuple[str, dict[str, Any]]]) -> bytes:
    method, params = kinds[kind]
    name = params.get("name", params.get("uri"))
    named = "" if name is None else f"Mcp-Name: {name}\r\n"
    meta = META if "name" in params else {**META, "progressToken": 1}  # which keeps it out of the lane
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost:1\r\nAuthorization: Bearer {key(agent)}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{named}"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Client:
    """Connections that are used again, as many as there are open requests."""

    def __init__(self, port: int, kinds: dict[str, tuple[str, dict[str, Any]]] = KINDS) -> None:
        self._port, self._kinds = port, kinds
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.outcomes: Counter[str] = Counter()
        self.by_agent: Counter[int] = Counter()
        self.took: list[float] = []
        self.open = 0

    async def ask(self, kind: str, agent: int) -> None:
        begun = time.perf_counter()
        self.open += 1
        try:
            async with asyncio.timeout(PATIENCE):
                outcome = await self._exchange(message(kind, agent, self._kinds))
        except TimeoutError:
            outcome = "left"
        except (OSError, asyncio.IncompleteReadError):
            outcome = "broken"
        finally:
            self.open -= 1
        took = time.perf_counter() - begun
        if outcome == "answered":
            self.took.append(took)
            outcome = "good" if took <= DEADLINE else "late"
        self.outcomes[outcome] += 1
        if outcome == "good":
            self.by_agent[agent] += 1

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            pair = self._idle.pop()
            if not pair[0].at_eof():  # the server has not closed it, for it was idle too long
                return pair
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def _exchange(self, raw: bytes) -> str:
        pair = reader, writer = await self._connection()
        try:
            writer.write(raw)
            head = await reader.readuntil(b"\r\n\r\n")
            if b"text/event-stream" in head:
                body = await reader.readuntil(b"0\r\n\r\n")
            else:
                length = re.search(rb"content-length: (\d+)", head)
                assert length, head
                body = await reader.readexactly(int(length[1]))
        except BaseException:
            writer.transport.abort()
            raise
        self._idle.append(pair)
        if b"rate_limited" in body:
            return "refused with a hint" if b"retryAfterMs" in body else "refused"
        return "answered" if b" 200 " in head[:20] and b'"error"' not in body else "failed"


async def capacity(port: int, pid: int, kind: str, seconds: float) -> tuple[float, float]:
    """Answers a second, and answers a second of the server's processor time."""
    client, worked, until = Client(port), processor(pid), time.perf_counter() + seconds

    async def one(agent: int) -> None:
        while time.perf_counter() < until:
            await client.ask(kind, agent)

    begun = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(AGENTS)))
    if not client.took:
        raise SystemExit(f"{kind}: {dict(client.outcomes)}")
    return len(client.took) / (time.perf_counter() - begun), len(client.took) / (processor(pid) - worked)


async def flood(port: int, kind: str, rate: float, seconds: float) -> Client:
    client = Client(port)
    tasks: set[asyncio.Task[None]] = set()
    begun = time.perf_counter()
    sent = 0
    while (now := time.perf_counter() - begun) < seconds:
        while sent < now * rate:
            sent += 1
            if client.open >= CONNECTIONS:
                client.outcomes["not sent"] += 1
                continue
            agent = 0 if sent % 2 else 1 + sent // 2 % (AGENTS - 1)  # one sends half of all
            task = asyncio.ensure_future(client.ask(kind, agent))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.sleep(0.002)
    if tasks:
        await asyncio.wait(tasks)
    return client


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[int, int]]:
    (folder / "docs").mkdir()
    for number in range(FILES):
        text = f"a line of text, number {number}\n" * 60 + "needle\n"
        (folder / "docs" / f"f{number}.md").write_text(text, encoding="utf-8")
    agents = {f"a{number}": {"key": f"${{KEY_{number}}}"} for number in range(AGENTS)}
    config = {
        "version": 1,
        "sources": {"docs": {"kind": "file", "roots": ["./docs"]}},
        "agents": agents,
        "policy": [{"who": "*", "may": ["list", "read", "search", "invoke"], "what": "**"}],
        "limits": {"per_principal": "off"},
        "search": {"enabled": False},
    }
    (folder / "octavo.yaml").write_text(json.dumps(config), encoding="utf-8")
    options = ["--config", str(folder / "octavo.yaml"), "--http", "127.0.0.1:0"]
    environment = {**os.environ, **{f"KEY_{number}": key(number) for number in range(AGENTS)}}
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "octavo", "serve", *options, stderr=asyncio.subprocess.PIPE, env=environment
    )
    assert server.stderr is not None
    try:
        while not (found := re.search(rb":(\d+)/mcp", await server.stderr.readline())):
            pass
        yield int(found[1]), server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        await server.communicate()


def processor(pid: int) -> float:
    """Seconds that the server has worked so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


async def measure(kind: str, times: float, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as made:
        async with served(Path(made)) as (port, pid):
            await Client(port).ask(kind, 0)  # fills the cache
            await capacity(port, pid, kind, 1.0)
            before, cheap = await capacity(port, pid, kind, seconds / 3)
            spent, worked = time.process_time(), processor(pid)
            client = await flood(port, kind, times * before, seconds)
            spent, worked = time.process_time() - spent, processor(pid) - worked
            after, _ = await capacity(port, pid, kind, seconds / 3)
            most = (before + after) / 2
            goodput = client.outcomes["good"] / seconds
            dearer = client.outcomes["good"] / worked / cheap
            took = sorted(client.took)
            least = min(client.by_agent[agent] for agent in range(1, AGENTS))
            print(
                f"{kind}: capacity {before:.0f}/s, afterwards {after:.0f}/s; at {times:g} times that goodput "
                f"{goodput:.0f}/s ({goodput / most:.0%}; per processor time {dearer:.0%}), "
                f"p50 {took[len(took) // 2] * 1000:.0f} ms, "
                f"p99 {took[int(len(took) * 0.99)] * 1000:.0f} ms; {dict(client.outcomes)}; good of the one that "
                f"floods {client.by_agent[0]}, of the least served other {least}; memory at most {peak(pid):.0f} MB; "
                f"the client itself worked {spent / seconds:.0%} of the time",
                flush=True,
            )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--times", type=float, default=3.0)
    options.add_argument("--seconds", type=float, default=15.0)
    options.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    given = options.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    for kind in KINDS if given.kind == "all" else (given.kind,):
        asyncio.run(measure(kind, given.times, given.seconds))


if __name__ == "__main__":
    main()
