"""Many tool calls at once, of mixed length, a tenth of them cancelled: nothing is left of any.

    python -m tests.security.parallel_calls --calls 1000

Commands, processes, requests to a server of this machine and reads of files go through the whole pipeline of one
house, on the event loop that the server uses. Afterwards there are as many processes, descriptors and tasks as before,
and at no time were there more programs than `commands.at_once` and `commands.started` allow.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.arguments import OwnArguments
from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail

AT_ONCE, STARTED = 6, 20
COMMANDS = 0.60  # of all calls; the rest are requests and reads
CONFIGURATION = """
version: 1
sources: {{work: {{kind: file, roots: [./work]}}}}
toolsets: [files, process, web]
policy: [{{who: "*", may: "*", what: "**", approve: never}}]
limits: {{in_flight: 100000, total: 100000}}
commands:
  at_once: {at_once}
  started: {started}
  programs:
    say: {{run: echo, args: [{{name: text}}]}}
    sleep: {{run: sleep, args: [{{name: seconds, pattern: "[0-9.]+"}}]}}
    hang: {{run: [sleep, "1000"]}}
web:
  hosts: [{{host: 127.0.0.1, ports: [{port}], plain: true}}]
  inside: [127.0.0.0/8]
"""


class Left(NamedTuple):
    processes: int
    descriptors: int
    tasks: int


class Figures(NamedTuple):
    calls: int
    outcomes: Counter[str]
    before: Left
    after: Left
    most: int  # programs at once

    @property
    def good(self) -> bool:
        leaks = any(after > before for before, after in zip(self.before, self.after, strict=True))
        return not leaks and self.most <= AT_ONCE + STARTED and sum(self.outcomes.values()) == self.calls


class Run:
    def __init__(self, house: Octavo, port: int, *, calls: int, seed: int) -> None:
        self._house, self._port, self._calls = house, port, calls
        self._random = random.Random(seed)
        self.most = 0

    async def __call__(self) -> Counter[str]:
        kinds = [self._random.random() for _ in range(self._calls)]
        tasks = [asyncio.ensure_future(self._one(kind)) for kind in kinds]
        slow = [task for task, kind in zip(tasks, kinds, strict=True) if kind < COMMANDS]
        loop = asyncio.get_running_loop()
        for task in self._random.sample(slow, self._calls // 10):
            loop.call_later(self._random.random() * self._calls / 100, task.cancel)
        watching = asyncio.ensure_future(self._watch())
        ended = await asyncio.gather(*tasks, return_exceptions=True)  # one may be cancelled before it begins
        found = Counter("cancelled" if isinstance(one, asyncio.CancelledError) else str(one) for one in ended)
        # A start that ended as it was cancelled: nobody was told the name, but its caller sees it in the list.
        for process in (await self._tool("list_processes")).structured["processes"]:
            await self._tool("stop_process", process=process["process"])
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return found

    async def _one(self, kind: float) -> str:
        try:
            await self._some(kind)
        except asyncio.CancelledError:
            return "cancelled"
        except OctavoError as error:
            return error.reason
        return "ok"

    def _some(self, kind: float) -> Coroutine[Any, Any, Any]:
        if kind < 0.35:
            return self._tool("run_command", program="say", args={"text": "x"})
        if kind < 0.50:
            seconds = f"{self._random.random() / 3:.2f}"
            return self._tool("run_command", program="sleep", args={"seconds": seconds})
        if kind < COMMANDS:
            return self._process()
        if kind < 0.80:
            delay = self._random.choice(("0", "0.05", "0.3"))
            return self._tool("http_request", url=f"http://127.0.0.1:{self._port}/{delay}")
        return self._tool("read", target="a.txt")

    async def _process(self) -> None:
        """Started, read, and left running or stopped."""
        name = (await self._tool("start_process", program="hang")).structured["process"]
        try:
            await self._tool("read_output", process=name, seconds=0.1)
        finally:
            await asyncio.shield(self._tool("stop_process", process=name, seconds=1))

    async def _tool(self, name: str, /, **arguments: Any) -> Any:
        works = self._house.works
        who = works.identity.launched(None)
        return await works.ask(
            Call("invoke", Ref.of("tool", (name,)), who, Trail(), f"tool://{name}", OwnArguments(arguments))
        )

    async def _watch(self) -> None:
        while True:
            self.most = max(self.most, len(children()))
            await asyncio.to_thread(os.sched_yield)


def children() -> list[str]:
    found: list[str] = []
    for task in os.listdir("/proc/self/task"):
        try:
            found += Path(f"/proc/self/task/{task}/children").read_text(encoding="ascii").split()
        except OSError:
            continue
    return found


async def _left() -> Left:
    for _ in range(400):  # what was cancelled last takes a moment to end
        await _pause(0.05)
        if not children():
            break
    return Left(len(children()), len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()))


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        await _pause(float(head.split(b" ", 2)[1][1:]))
        # A connection that is kept would look like a leak.
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _pause(seconds: float) -> None:
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, done.set)
    await done.wait()


async def run(folder: Path, *, calls: int, seed: int = 7) -> Figures:
    (folder / "work").mkdir()
    (folder / "work" / "a.txt").write_text("a\n", encoding="utf-8")
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    file = folder / "octavo.yaml"
    file.write_text(CONFIGURATION.format(at_once=AT_ONCE, started=STARTED, port=port), encoding="utf-8")
    async with Octavo(load(file, environ={"PATH": "/usr/bin:/bin"})) as house:
        warm = Run(house, port, calls=40, seed=seed + 1)  # threads, pools and connections that stay
        await warm()
        await asyncio.gather(*(asyncio.to_thread(os.sched_yield) for _ in range(64)))
        before = await _left()
        measured = Run(house, port, calls=calls, seed=seed)
        outcomes = await measured()
        after = await _left()
    server.close()
    return Figures(calls, outcomes, before, after, measured.most)


def main() -> None:
    parser = argparse.ArgumentParser(description="Parallel tool calls, and what is left of them.")
    parser.add_argument("--calls", type=int, default=1000)
    calls = parser.parse_args().calls
    with tempfile.TemporaryDirectory() as folder:
        figures = uvloop.run(run(Path(folder), calls=calls))
    print(f"{figures.calls} calls: {dict(figures.outcomes)}, at most {figures.most} programs at once")
    print(f"before {figures.before}")
    print(f"after  {figures.after}")
    sys.exit(not figures.good)


if __name__ == "__main__":
    main()
