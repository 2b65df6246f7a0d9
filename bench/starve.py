"""One agent that takes all it can of a pool, and what another notices: `python bench/hostile.py --starve`.

For each pool a server over HTTP on the loopback. The polite agent asks one thing after the other, in turns: quiet;
starved; and beside a control. Starved, the hostile agent keeps 40 requests for the same pool under way, each as long as
it can be. In the control it takes no place of that pool, and has as much work done as in the starved part: by the
server's own process for the same share of the time, with reads of another source, and by all processors together for
the same share, with programs beside it. What is slower in the control is the processor's doing, and would be with any
pool; where the starved part leaves the processors idle, the control is quiet too. So there is one measure for all: the
polite one's p99 beside the hostile agent, held against that of the control.
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

from press import LAST, answered, length_of, message, of_machine, of_process

import octavo

AT_ONCE = 40
TIMES = 3.0  # of the control: what the p99 may be
LATE = 1.0  # seconds: no p99 of a polite agent is above, or three times quiet if that is more
ROUNDS = 5  # each of quiet, starved and control: what others do on the machine meets all of them
SETTLED = 20.0  # seconds: at most, until a new server is calm
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


def tool(name: str, /, at_once: int = AT_ONCE, flood: bool = False, **arguments: Any) -> Asked:
    return Asked("tools/call", {"name": name, "arguments": arguments}, at_once, flood)


def read(uri: str, at_once: int = AT_ONCE, **further: Any) -> Asked:
    return Asked("resources/read", {"uri": uri, **further}, at_once)


HANDSHAKE = Asked(
    "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
)
# Not answered in the lane, so that the loop has work with it; few at once, so that it comes evenly.
ELSEWHERE = read("mem://a", 4, _meta={"progressToken": 1})
POOLS = (
    Pool("functions", tool("pause", seconds=0.01), tool("pause", seconds=2.0)),
    Pool("commands", tool("run_command", program="nothing"), tool("run_command", program="wait")),
    Pool("data tools", tool("query", sql="SELECT 1", target="a.csv"), tool("query", sql=HEAVY, target="a.csv")),
    Pool("documents", read("file://small.ipynb?as=text"), read("file://large-{n}.ipynb?as=text")),
    Pool("search of lines", tool("search", query="needle-polite"), tool("search", query="needle-{n}")),
    Pool("ranked search", tool("search", query="word", kind="ranked"), tool("search", query="word {n}", kind="ranked")),
    Pool("sessions", HANDSHAKE, HANDSHAKE),
    Pool("reads", read("file://a.csv"), read("file://f{n}.md")),
    Pool("refusals", read("file://a.csv"), tool("pause", 400, flood=True, seconds=2.0)),
)


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

    rounds: list[list[float]] = field(default_factory=list[list[float]])  # seconds that an answer took
    failed: int = 0
    seconds: float = 0.0
    server: float = 0.0  # processor seconds of the server's own process
    machine: float = 0.0  # and of all processors, for whomever
    hostile: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def p99(self) -> float:
        """Of the round in the middle: what happens beside us in one of them does not count."""
        return statistics.median(map(_p99, self.rounds))

    @property
    def asked(self) -> int:
        return sum(map(len, self.rounds))

    @property
    def busy(self) -> tuple[float, float]:
        """The server's own process, and the machine: 1.0 is all of the time."""
        return self.server / self.seconds, self.machine / self.seconds / (os.cpu_count() or 1)

    def take(self, polite: Polite, pid: int, seconds: float, least: int) -> None:
        took: list[float] = []
        server, machine, begun = of_process(pid), of_machine(), time.perf_counter()
        until, asked = begun + seconds, 0
        while (now := time.perf_counter()) < until or asked < least:
            asked += 1
            if polite.ask():
                took.append(time.perf_counter() - now)
            else:
                self.failed += 1
            time.sleep(PAUSE)
        self.rounds.append(took)
        self.seconds += time.perf_counter() - begun
        self.server += of_process(pid) - server
        self.machine += of_machine() - machine


def _p99(took: list[float]) -> float:
    if len(took) < 2:
        return (took or [float("inf")])[0]
    return statistics.quantiles(took, n=100, method="inclusive")[98]


@contextmanager
def pressing(port: int, asked: Asked, into: dict[str, int], *further: str) -> Iterator[None]:
    options = [str(port), KEYS["HOSTILE_KEY"], str(asked.at_once), *(["--flood"] if asked.flood else []), *further]
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


def settle(pid: int) -> None:
    """Until the server does nothing of its own any more: an index that is still being made is no agent's doing."""
    until, calm = time.monotonic() + SETTLED, 0
    while calm < 3 and time.monotonic() < until:
        before = of_process(pid)
        time.sleep(0.3)
        calm = calm + 1 if of_process(pid) - before < 0.02 else 0


def measured(pool: Pool, port: int, pid: int, seconds: float, least: int) -> list[str]:
    Phase().take(Polite(port, pool.polite), pid, 0.5, 3)  # what is made when it is first needed is there afterwards
    settle(pid)
    polite = Polite(port, pool.polite)  # the server closes a connection that says nothing for long
    quiet, starved, control = Phase(), Phase(), Phase()
    for _ in range(ROUNDS):
        quiet.take(polite, pid, seconds / ROUNDS, least)
        with pressing(port, pool.hostile, starved.hostile):
            starved.take(polite, pid, seconds / ROUNDS, least)
        with pressing(port, ELSEWHERE, control.hostile, "--equal", str(pid), *map(str, starved.busy)):
            control.take(polite, pid, seconds / ROUNDS, least)
    ratio = starved.p99 / max(quiet.p99, control.p99)
    failed = quiet.failed + starved.failed + control.failed
    fine = ratio <= TIMES and not failed and starved.p99 <= max(LATE, TIMES * quiet.p99)
    cells = [f"{phase.p99 * 1000:,.1f}" for phase in (quiet, control, starved)]
    return [
        pool.name, *cells, _busy(quiet), _busy(control), _busy(starved), f"{ratio:.1f}",
        f"{starved.p99 / quiet.p99:.1f}", f"{starved.asked}", f"{failed}",
        ", ".join(f"{n} {what}" for what, n in sorted(starved.hostile.items())),
        "ok" if fine else "NOT OK",
    ]  # fmt: skip


def _busy(phase: Phase) -> str:
    """The server's own process, and the machine."""
    server, machine = phase.busy
    return f"{server:.0%} {machine:.0%}"


HEAD = [
    "pool", "quiet p99 ms", "control", "starved", "busy: quiet", "control", "starved", "of control",
    "of quiet", "asked", "failed", "hostile", "",
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
