"""One agent that takes all it can of a pool, and what another notices: `python bench/hostile.py --starve`.

For each pool a server over HTTP on the loopback. The polite agent asks one thing after the other, in turns: quiet;
beside a control; and starved. Starved, the hostile agent keeps 40 requests for the same pool under way, each as long as
it can be. In the control it keeps the server's processor as busy, with as many requests or as many busy threads or
processes, but takes no place of that pool: what is slower then is the processor's doing, and would be with any pool.

Whether the pool or the processor was the limit is measured while the polite one is starved: the processor, where the
server's own process worked for more than `BUSY` of the time (Python works on one processor at once), or the whole
machine did. Where it is the pool, the polite one's p99 is held against that of quiet. Where it is the processor,
against that of the control.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from press import LAST, answered, length_of, message

import octavo

AT_ONCE = 40
TIMES = 3.0  # that the p99 may grow
BUSY = 0.8  # of the time: from here on the processor is the limit
LATE = 1.0  # seconds: no p99 of a polite agent is above, or three times quiet if that is more
ROUNDS = 3  # each of quiet, control and starved: what others do on the machine meets all of them
PAUSE = 0.002  # seconds between two questions of the polite one
KEYS = {"POLITE_KEY": "key-of-polite-0000", "HOSTILE_KEY": "key-of-hostile-000"}
CONFIG = """
version: 1
sources:
  docs: {kind: file, roots: [./docs], extensions: ["*"], cache: {ttl: 0}}
  mem: {kind: memory, scheme: mem, resources: {a: {text: a}}}
toolsets: [files, data, process]
tools: {dirs: [./tools]}
commands:
  at_once: 3
  programs:
    wait: {run: [sleep, "2"]}
    nothing: {run: ["true"]}
    burn: {run: [python3, -c, "for _ in range(20000000): pass"]}
agents: {polite: {key: "${POLITE_KEY}"}, hostile: {key: "${HOSTILE_KEY}"}}
policy: [{who: "*", may: "*", what: "**", approve: never}]
limits: {per_principal: "off", time: 10s}
"""
TOOL = '''
import time

def pause(seconds: float) -> str:
    """Waits."""
    time.sleep(seconds)
    return "done"

def burn(seconds: float) -> str:
    """Works."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))
    return "done"
'''
HEAVY = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 3000000) SELECT count(*) FROM c"


class Asked(NamedTuple):
    method: str
    params: dict[str, Any]
    at_once: int = AT_ONCE
    flood: bool = False


class Pool(NamedTuple):
    name: str
    polite: Asked
    hostile: Asked
    control: Asked


def tool(name: str, /, at_once: int = AT_ONCE, flood: bool = False, **arguments: Any) -> Asked:
    return Asked("tools/call", {"name": name, "arguments": arguments}, at_once, flood)


def read(uri: str, at_once: int = AT_ONCE, **further: Any) -> Asked:
    return Asked("resources/read", {"uri": uri, **further}, at_once)


HANDSHAKE = Asked(
    "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
)
PROCESSES = tool("run_command", program="burn")  # two of them: the third place is left to others
SLOW_WAY = read("mem://a", _meta={"progressToken": 1})  # which is not answered in the lane: the loop works on it
POOLS = (
    Pool("functions", tool("pause", seconds=0.01), tool("pause", seconds=2.0), tool("run_command", program="wait")),
    Pool(
        "commands",
        tool("run_command", program="nothing"), tool("run_command", program="wait"), tool("pause", seconds=2.0),
    ),
    Pool(
        "data tools",
        tool("query", sql="SELECT 1", target="a.csv"), tool("query", sql=HEAVY, target="a.csv"), PROCESSES,
    ),
    Pool("documents", read("file://small.ipynb?as=text"), read("file://large-{n}.ipynb?as=text"), PROCESSES),
    Pool(
        "search of lines",
        tool("search", query="needle-polite"), tool("search", query="needle-{n}"), tool("burn", 6, seconds=0.05),
    ),
    Pool(
        "ranked search",
        tool("search", query="word", kind="ranked"), tool("search", query="word {n}", kind="ranked"),
        tool("burn", 1, seconds=0.05),
    ),
    Pool("sessions", HANDSHAKE, HANDSHAKE, SLOW_WAY),
    Pool("reads", read("file://a.csv"), read("file://f{n}.md"), SLOW_WAY),
    Pool("refusals", read("file://a.csv"), tool("pause", 400, flood=True, seconds=2.0), SLOW_WAY),
)  # fmt: skip


def lay_out(home: Path) -> None:
    docs, tools = home / "docs", home / "tools"
    docs.mkdir()
    tools.mkdir()
    (tools / "pause.py").write_text(TOOL, encoding="utf-8")
    (docs / "a.csv").write_text("n\n1\n", encoding="utf-8")
    for number in range(1000):
        (docs / f"f{number}.md").write_text("word " * 400, encoding="utf-8")
    cell = {"cell_type": "markdown", "metadata": {}, "source": ["word " * 200]}
    for name, count in (("small", 1), *((f"large-{number}", 700) for number in range(AT_ONCE))):
        book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell] * count}
        (docs / f"{name}.ipynb").write_text(json.dumps(book), encoding="utf-8")
    (home / "octavo.yaml").write_text(CONFIG, encoding="utf-8")


@contextmanager
def served(home: Path) -> Iterator[tuple[int, int]]:
    """Its port, and the process."""
    log = home / "stderr"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "octavo", "serve", "--config", str(home / "octavo.yaml"), "--http", "127.0.0.1:0"],
            stderr=errors, env={**os.environ, **KEYS},
        )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (found := re.search(r"127\.0\.0\.1:(\d+)/mcp", log.read_text(encoding="utf-8"))):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(log.read_text(encoding="utf-8"))
            time.sleep(0.05)
        yield int(found[1]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


class Polite:
    """One connection, which is opened again when it breaks."""

    def __init__(self, port: int, asked: Asked) -> None:
        self._port = port
        self._raw = message(KEYS["POLITE_KEY"], asked.method, asked.params)
        self._made: socket.socket | None = None

    def ask(self) -> bool:
        """Whether it was answered with a result."""
        try:
            if self._made is None:
                self._made = socket.create_connection(("127.0.0.1", self._port), timeout=120)
                self._made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._made.sendall(self._raw)
            return self._answer(self._made)
        except OSError:
            self._made = None
            return False

    def _answer(self, made: socket.socket) -> bool:
        raw = b""
        while True:
            head, separator, body = raw.partition(b"\r\n\r\n")
            if separator:
                length = length_of(head)
                if body.endswith(LAST) if length is None else len(body) >= length:
                    return answered(head, body)
            if not (piece := made.recv(1 << 20)):
                raise ConnectionError
            raw += piece


@dataclass
class Phase:
    """What the polite agent saw, and what the processors did meanwhile."""

    took: list[float] = field(default_factory=list[float])
    failed: int = 0
    seconds: float = 0.0
    server: float = 0.0  # processor seconds of the server's own process
    machine: float = 0.0  # and of all processors, for whomever
    hostile: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def p99(self) -> float:
        if len(self.took) < 2:
            return (self.took or [float("inf")])[0]
        return statistics.quantiles(self.took, n=100, method="inclusive")[98]

    @property
    def busy(self) -> tuple[float, float]:
        """The server's own process, and the machine: 1.0 is all of the time."""
        return self.server / self.seconds, self.machine / self.seconds / (os.cpu_count() or 1)

    def take(self, polite: Polite, pid: int, seconds: float, least: int) -> None:
        server, machine, begun = _server(pid), _machine(), time.perf_counter()
        until, asked = begun + seconds, 0
        while (now := time.perf_counter()) < until or asked < least:
            asked += 1
            if polite.ask():
                self.took.append(time.perf_counter() - now)
            else:
                self.failed += 1
            time.sleep(PAUSE)
        self.seconds += time.perf_counter() - begun
        self.server += _server(pid) - server
        self.machine += _machine() - machine


def _server(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _machine() -> float:
    fields = [int(one) for one in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # without idle, and waiting for disks


@contextmanager
def pressing(port: int, asked: Asked, into: dict[str, int]) -> Iterator[None]:
    options = [str(port), KEYS["HOSTILE_KEY"], str(asked.at_once), *(["--flood"] if asked.flood else [])]
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "press.py"), *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    numbers = range(AT_ONCE if "large" in str(asked.params) else 1000)
    written = (json.dumps(asked.params).replace("{n}", str(number)) for number in numbers)
    for params in dict.fromkeys(written):
        process.stdin.write(f'["{asked.method}", {params}]\n')
    process.stdin.write("\n")
    process.stdin.flush()
    time.sleep(1.0)  # until all of them wait
    try:
        yield
    finally:
        told, _ = process.communicate()
        for what, count in json.loads(told).items():
            into[what] = into.get(what, 0) + count
        time.sleep(0.3)  # what was begun ends


def measured(pool: Pool, port: int, pid: int, seconds: float, least: int) -> list[str]:
    polite = Polite(port, pool.polite)
    Phase().take(polite, pid, 0.5, 3)  # what is made when it is first needed is there afterwards
    quiet, control, starved = Phase(), Phase(), Phase()
    for _ in range(ROUNDS):
        quiet.take(polite, pid, seconds / ROUNDS, least)
        for asked, phase in ((pool.control, control), (pool.hostile, starved)):
            with pressing(port, asked, phase.hostile):
                phase.take(polite, pid, seconds / ROUNDS, least)
    server, machine = starved.busy
    by_processor = server > BUSY or machine > BUSY
    against = control if by_processor else quiet
    ratio = starved.p99 / against.p99
    failed = quiet.failed + control.failed + starved.failed
    fine = ratio <= TIMES and not failed and starved.p99 <= max(LATE, TIMES * quiet.p99)
    cells = [f"{phase.p99 * 1000:,.1f}" for phase in (quiet, control, starved)]
    return [
        pool.name, *cells, _busy(quiet), _busy(control), _busy(starved), "processor" if by_processor else "pool",
        f"{ratio:.1f} x {'control' if by_processor else 'quiet'}", f"{starved.p99 / quiet.p99:.1f}",
        f"{len(starved.took)}", f"{failed}", ", ".join(f"{n} {what}" for what, n in sorted(starved.hostile.items())),
        "ok" if fine else "NOT OK",
    ]  # fmt: skip


def _busy(phase: Phase) -> str:
    """The server's own process, and the machine."""
    server, machine = phase.busy
    return f"{server:.0%} {machine:.0%}"


HEAD = [
    "pool", "quiet p99 ms", "control", "starved", "busy: quiet", "control", "starved", "limit", "times", "of quiet",
    "asked", "failed", "hostile", "",
]  # fmt: skip


def run(seconds: float, only: str = "") -> Iterator[list[str]]:
    """A row a pool; each has a server of its own."""
    for pool in POOLS:
        if only in pool.name:
            with tempfile.TemporaryDirectory(prefix="octavo-starve-") as home:
                lay_out(Path(home))
                with served(Path(home)) as (port, pid):
                    yield measured(pool, port, pid, seconds, 20)


def title() -> str:
    command = "python bench/hostile.py --starve"
    return f"{command}: octavo {octavo.__version__}, {os.cpu_count()} processors, {AT_ONCE} hostile requests under way"
