"""One agent that takes all it can of a pool, and what another notices: `python bench/hostile.py --starve`.

For each pool a server over HTTP on the loopback, with two agents. The polite one asks one thing after the other, first
alone, then while the hostile one keeps 40 requests for the same pool under way that each last as long as they can. Told
is the polite one's p99, quiet and not. Where the processor is the limit and not the pool, both share it; `load` is that
of the machine, and on one that others use the figures say little.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import octavo

AT_ONCE = 40
TIMES = 3.0  # that the p99 may grow where the pool is the limit
KEYS = {"POLITE_KEY": "key-of-polite-0000", "HOSTILE_KEY": "key-of-hostile-000"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
CONFIG = """
version: 1
sources: {docs: {kind: file, roots: [./docs], extensions: ["*"], cache: {ttl: 0}}}
toolsets: [files, data, process]
tools: {dirs: [./tools]}
commands: {at_once: 3, programs: {wait: {run: [sleep, "2"]}, nothing: {run: ["true"]}}}
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


class Pool(NamedTuple):
    name: str
    polite: Asked
    hostile: Asked


def tool(name: str, **arguments: Any) -> Asked:
    return Asked("tools/call", {"name": name, "arguments": arguments})


HANDSHAKE = Asked(
    "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
)
POOLS = (
    Pool("data tools", tool("query", sql="SELECT 1", target="a.csv"), tool("query", sql=HEAVY, target="a.csv")),
    Pool("documents", Asked("resources/read", {"uri": "file://small.ipynb?as=text"}), Asked("resources/read", {"uri": "file://large-{n}.ipynb?as=text"})),
    Pool("commands", tool("run_command", program="nothing"), tool("run_command", program="wait")),
    Pool("functions", tool("pause", seconds=0.01), tool("pause", seconds=2.0)),
    Pool("search of lines", tool("search", query="needle-polite"), tool("search", query="needle-{n}")),
    Pool("ranked search", tool("search", query="word", kind="ranked"), tool("search", query="word {n}", kind="ranked")),
    Pool("sessions", HANDSHAKE, HANDSHAKE),
    Pool("reads", Asked("resources/read", {"uri": "file://a.csv"}), Asked("resources/read", {"uri": "file://f{n}.md"})),
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
def served(home: Path) -> Iterator[int]:
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
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


class Client:
    """One agent at one connection, which it opens again when it breaks."""

    def __init__(self, port: int, who: str) -> None:
        self._port, self._key = port, KEYS[f"{who.upper()}_KEY"]
        self._made: http.client.HTTPConnection | None = None

    def ask(self, asked: Asked, number: int) -> bool:
        """Whether it was answered with a result."""
        params = json.loads(json.dumps(asked.params).replace("{n}", str(number)))
        headers = {
            "Authorization": f"Bearer {self._key}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }  # fmt: skip
        if asked.method != "initialize":
            params["_meta"] = META
            headers |= {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": asked.method}
            headers["Mcp-Name"] = str(params.get("name") or params.get("uri"))
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": asked.method, "params": params})
        try:
            if self._made is None:
                self._made = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
            self._made.request("POST", "/mcp", body, headers)
            reply = self._made.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException):
            self._made = None
            return False
        return reply.status == 200 and b'"isError":true' not in text and b'"result"' in text


def asked_for(client: Client, asked: Asked, seconds: float, least: int) -> tuple[list[float], int]:
    """How long each took, and how many were not answered."""
    took, failed, until = list[float](), 0, time.monotonic() + seconds
    while time.monotonic() < until or len(took) + failed < least:
        begun = time.perf_counter()
        if client.ask(asked, 0):
            took.append(time.perf_counter() - begun)
        else:
            failed += 1
            time.sleep(0.01)
    return took, failed


def starved(pool: Pool, port: int, seconds: float, least: int) -> list[str]:
    polite = Client(port, "polite")
    asked_for(polite, pool.polite, 0.0, 3)  # what is made when it is first needed is there afterwards
    quiet, failed_before = asked_for(polite, pool.polite, seconds, least)
    stop, done = threading.Event(), list[bool]()

    def press(number: int) -> None:
        client = Client(port, "hostile")
        while not stop.is_set():
            number += AT_ONCE
            done.append(client.ask(pool.hostile, number % (AT_ONCE if pool.name == "documents" else 1000)))

    pressing = [threading.Thread(target=press, args=(number,)) for number in range(AT_ONCE)]
    for one in pressing:
        one.start()
    time.sleep(0.5)  # until all of them wait
    beside, failed = asked_for(polite, pool.polite, seconds, least)
    busy = os.getloadavg()[0]
    stop.set()
    for one in pressing:
        one.join()
    ratio = _p99(beside) / _p99(quiet) if quiet and beside else float("inf")
    failures = failed_before + failed
    verdict = "ok" if ratio <= TIMES and not failures else "more"
    return [
        pool.name, f"{_p99(quiet) * 1000:,.1f}", f"{_p99(beside) * 1000:,.1f}", f"{ratio:.1f}", f"{len(beside)}",
        f"{failures}", f"{sum(done)} of {len(done)}", f"{busy:.1f}", verdict,
    ]  # fmt: skip


def _p99(took: list[float]) -> float:
    return statistics.quantiles(took, n=100, method="inclusive")[98] if len(took) > 1 else (took or [float("inf")])[0]


HEAD = ["pool", "quiet p99 ms", "beside p99 ms", "times", "asked", "failed", "hostile answered", "load", ""]


def run(seconds: float, only: str = "") -> Iterator[list[str]]:
    """A row a pool; each has a server of its own."""
    for pool in POOLS:
        if only in pool.name:
            with tempfile.TemporaryDirectory(prefix="octavo-starve-") as home:
                lay_out(Path(home))
                with served(Path(home)) as port:
                    yield starved(pool, port, seconds, 20)


def title() -> str:
    command = "python bench/hostile.py --starve"
    return f"{command}: octavo {octavo.__version__}, {os.cpu_count()} processors, {AT_ONCE} hostile requests under way"
