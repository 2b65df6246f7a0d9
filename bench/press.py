"""The hostile agent of starve.py, in a process of its own: its work must not slow down whoever takes the time.

    python bench/press.py PORT KEY AT_ONCE [--flood | --equal PID SERVER MACHINE] < requests

Keeps AT_ONCE requests under way, each on a connection of its own, until its standard input is closed; then says how
many were answered and how many refused. What is refused is asked again after the time that the refusal names, at most
a second; with --flood at once. Requests are lines of JSON, method and params, and are taken one after the other.

With --equal it asks only while the server's process PID has worked for less than SERVER of the time, and programs of
its own work as long as is missing to MACHINE of the time of all processors: as much work as another's, elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LAST = b"\r\n0\r\n\r\n"  # the end of a body that comes in pieces
STEP = 0.004  # seconds in which a program works and waits
LOOK = 0.1  # seconds until it is looked again how much was done
BEHIND = 5  # as the server's own workers stand behind in line for the processor
_WAIT = re.compile(rb'retryAfterMs\\?":\s*(\d+)')
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


def message(key: str, method: str, params: dict[str, Any]) -> bytes:
    """A whole HTTP request."""
    routing = ""
    if method != "initialize":
        params = {**params, "_meta": {**META, **params.get("_meta", {})}}
        routing = f"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"
        if name := params.get("name") or params.get("uri"):
            routing += f"Mcp-Name: {name}\r\n"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost:1\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\n{routing}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def length_of(head: bytes) -> int | None:
    """Bytes of the body; None where it comes in pieces."""
    found = _LENGTH.search(head)
    return None if found is None else int(found[1])


def answered(head: bytes, body: bytes) -> bool:
    return b" 200 " in head[:20] and b'"isError":true' not in body and b'"result"' in body


def of_process(pid: int) -> float:
    """Processor seconds of all its threads, also of those that have ended."""
    return time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid(3) gives: finer than the ticks of /proc


def of_machine() -> float:
    """Of all processors, for whomever."""
    fields = [int(one) for one in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # without idle, and waiting for disks


def below(share: float, pid: int) -> Callable[[], bool]:
    """Whether, from now on, the process worked for less than that share of the time."""
    before, begun = of_process(pid), time.monotonic()
    return lambda: of_process(pid) - before < share * (time.monotonic() - begun)


def burn(share: float) -> None:
    """Works in even steps for as much of the time as is missing to that share of all processors."""
    os.nice(BEHIND)
    mine = 0.0
    while True:
        before, begun = of_machine(), time.monotonic()
        while (now := time.monotonic()) < begun + LOOK:
            while time.monotonic() < now + mine * STEP:
                pass
            time.sleep((1.0 - mine) * STEP)
        worked = (of_machine() - before) / (now - begun) / (os.cpu_count() or 1)
        mine = min(1.0, max(0.0, mine + (share - worked) / 2))


@contextmanager
def burning(machine: float) -> Iterator[None]:
    """A program for each processor; together they fill up what is missing."""
    programs = [multiprocessing.Process(target=burn, args=(machine,), daemon=True) for _ in range(os.cpu_count() or 1)]
    for program in programs:
        program.start()
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.join()


async def press(
    port: int, requests: list[bytes], at_once: int, *, flood: bool, wanted: Callable[[], bool] = lambda: True
) -> Counter[str]:
    seen, numbers = Counter[str](), count()

    async def one() -> None:
        reader: asyncio.StreamReader | None = None
        while True:
            if not wanted():
                await asyncio.sleep(STEP / 4)
                continue
            try:
                if reader is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
                writer.write(requests[next(numbers) % len(requests)])
                head = await reader.readuntil(b"\r\n\r\n")
                length = length_of(head)
                body = await (reader.readuntil(LAST) if length is None else reader.readexactly(length))
            except (OSError, asyncio.IncompleteReadError):
                seen["broken"] += 1
                reader = None
                await asyncio.sleep(0.01)
                continue
            if answered(head, body):
                seen["answered"] += 1
                continue
            refused = b"rate_limited" in body
            seen["refused" if refused else "failed"] += 1
            if not (flood and refused):
                told = _WAIT.search(body)
                await asyncio.sleep(min(1.0, int(told[1]) / 1000) if told else 0.05)

    tasks = [asyncio.ensure_future(one()) for _ in range(at_once)]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return seen


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("port", type=int)
    options.add_argument("key")
    options.add_argument("at_once", type=int)
    options.add_argument("--flood", action="store_true")
    options.add_argument("--equal", nargs=3, type=float, metavar=("PID", "SERVER", "MACHINE"))
    given = options.parse_args()
    lines = iter(sys.stdin.readline, "\n")  # an empty one ends them
    requests = [message(given.key, *json.loads(line)) for line in lines]
    pressed = partial(press, given.port, requests, given.at_once, flood=given.flood)
    if given.equal is None:
        seen = asyncio.run(pressed())
    else:
        pid, server, machine = given.equal
        with burning(machine):
            seen = asyncio.run(pressed(wanted=below(server, int(pid))))
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
