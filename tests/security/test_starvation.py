"""One agent cannot lock others out: of a hundred hostile requests and a polite one that wait for the same pool, the
polite one is among the next two served. By order, not by time. Requirements A5, T9; security.md G.

The figures in seconds are those of `python bench/hostile.py --starve`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.security.held import BEGUN, GATE
from tests.sources.documents.conftest import workers
from tests.sources.documents.samples import SAMPLES
from tests.tools.builtin.test_commands import processes_with

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.arguments import OwnArguments
from octavo.core.clock import SystemClock
from octavo.core.fair import Claim, on_behalf_of
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.values import Call, Principal, Trail, Verb
from octavo.pipeline.cache import Cache
from octavo.pipeline.throttle import SourceLimits, Throttle
from octavo.search import Document, FullText, Index
from octavo.sources._shared.documents.converter import Converter
from octavo.sources.file import FileRoot, FileSource
from octavo.stores.audit.ledger import MemoryLedger
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A5", "T9")]

HOSTILE = 100
HOLDERS = ("first", "second", "third")
AGENTS = "agents: {hostile: {}, polite: {}, first: {}, second: {}, third: {}}\nlimits: {in_flight: 200, time: 60s}\n"
MAY = 'policy: [{who: "*", may: "*", what: "**", approve: never}]\n'
TOOL = """
from tests.security.held import BEGUN, GATE

def held(who: str) -> str:
    "Waits until it may go on."
    BEGUN.append(who)
    GATE.wait(30)
    return who
"""


class Asked:
    """Requests that are under way, and the order in which they were answered."""

    def __init__(self) -> None:
        self.served: list[str] = []
        self._tasks: list[asyncio.Task[Any]] = []

    def begin(self, who: str, work: Callable[[], Awaitable[Any]]) -> asyncio.Task[Any]:
        async def working() -> None:
            await work()
            self.served.append(who)

        task = asyncio.get_running_loop().create_task(working(), context=on_behalf_of(Claim(who)))
        self._tasks.append(task)
        return task

    async def served_of_the_next_two(self, polite: asyncio.Task[Any], holding: list[asyncio.Task[Any]]) -> None:
        """Two places become free. Of all others none ever ends."""
        for one in holding[:2]:
            one.cancel()
        async with asyncio.timeout(30):
            await polite
        assert self.served == ["polite"]
        await self.end()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


@pytest.fixture
async def asked(anyio_backend: str) -> AsyncIterator[Asked]:
    made = Asked()
    yield made
    await made.end()


async def turns_of_the_loop(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not so():
            await asyncio.sleep(0)


def stands_behind(pid: int | str) -> bool:
    """For the processor: whoever answers everybody has it first."""
    try:
        return os.getpriority(os.PRIO_PROCESS, int(pid)) > os.getpriority(os.PRIO_PROCESS, 0)
    except ProcessLookupError:
        return True  # of another run, and over


class Served:
    """A house, whose tools are called as one of its agents."""

    def __init__(self, house: Octavo) -> None:
        self.house = house

    async def call(self, who: str, tool: str, /, **arguments: Any) -> Any:
        principal = self.house.works.identity.launched(who)
        call = Call("invoke", Ref("tool", (tool,)), principal, Trail(), arguments=OwnArguments(arguments))
        return await self.house.works.ask(call)

    @property
    def reads(self) -> int:
        assert isinstance(self.house.ledger, MemoryLedger)
        self.house.ledger.flush()
        return sum(b'"op":"read"' in record for record in self.house.ledger.records)


@asynccontextmanager
async def serving(folder: Path, configuration: str) -> AsyncIterator[Served]:
    loaded = load_text(f"version: 1\n{configuration}{AGENTS}{MAY}", file=folder / "octavo.yaml", environ={})
    async with Octavo(loaded, state=StateDirectory.in_memory()) as house:
        yield Served(house)


async def test_the_processes_of_the_data_tools(tmp_path: Path, asked: Asked) -> None:
    """40 queries of one agent held both workers, and `select 1` of another took a minute."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.csv").write_text("n\n1\n", encoding="utf-8")
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    sources = 'sources: {files: {kind: file, roots: [./docs], extensions: ["*"]}}\ntoolsets: [data]\n'
    async with serving(tmp_path, sources) as served:

        def ask(who: str, sql: str) -> asyncio.Task[Any]:
            return asked.begin(who, lambda: served.call(who, "query", sql=sql, target="a.csv"))

        holding = [ask(who, endless) for who in HOLDERS]
        await until(lambda: len(processes_with("octavo.tools.data.worker")) >= len(HOLDERS))
        await until(lambda: all(map(stands_behind, processes_with("octavo.tools.data.worker"))))
        for _ in range(HOSTILE):
            ask("hostile", endless)
        await until(lambda: served.reads >= HOSTILE + len(HOLDERS))
        polite = ask("polite", "SELECT 1")
        await until(lambda: served.reads > HOSTILE + len(HOLDERS))
        await turns_of_the_loop()
        await asked.served_of_the_next_two(polite, holding)


@pytest.mark.skipif(sys.platform != "linux", reason="programs of Linux")
async def test_the_places_of_commands(tmp_path: Path, asked: Asked) -> None:
    (tmp_path / "work").mkdir()
    configuration = (
        "sources: {work: {kind: file, roots: [./work]}}\ntoolsets: [process]\n"
        "commands: {at_once: 3, programs: {wait: {run: [sleep, '86399']}, nothing: {run: ['true']}}}\n"
    )
    async with serving(tmp_path, configuration) as served:

        def ask(who: str, program: str) -> asyncio.Task[Any]:
            return asked.begin(who, lambda: served.call(who, "run_command", program=program))

        holding = [ask(who, "wait") for who in HOLDERS]
        await until(lambda: len(processes_with("86399")) >= len(HOLDERS))
        for _ in range(HOSTILE):
            ask("hostile", "wait")
        await turns_of_the_loop()
        polite = ask("polite", "nothing")
        await turns_of_the_loop()
        await asked.served_of_the_next_two(polite, holding)


async def test_the_processes_that_read_documents(asked: Asked) -> None:
    mime, raw, _ = SAMPLES["docx"]
    async with Converter(workers=1) as converter:
        await converter.convert(raw, mime)
        (pid,) = workers()
        assert stands_behind(pid)
        os.kill(pid, signal.SIGSTOP)
        for _ in range(HOSTILE + 1):  # the first one is at work
            asked.begin("hostile", lambda: converter.convert(raw, mime))
        await turns_of_the_loop()
        polite = asked.begin("polite", lambda: converter.convert(raw, mime))
        await turns_of_the_loop()
        os.kill(pid, signal.SIGCONT)
        async with asyncio.timeout(30):
            await polite
        assert asked.served.index("polite") <= 2
        await asked.end()


async def test_of_documents_that_wait_nothing_is_in_memory_yet(tmp_path: Path, asked: Asked) -> None:
    """They are read when it is their turn: not all at once beside those who are served, nor kept until then."""
    names = [f"{number}.ipynb" for number in range(10)]
    for name in names:
        (tmp_path / name).write_text(notebook("before"), encoding="utf-8")
    texts = list[str | bytes]()
    async with FileSource([FileRoot(tmp_path)], secret=b"s" * 32, extensions=["*"]) as source:

        async def read(name: str) -> None:
            texts.append((await source.read(Ref.parse(f"file://{name}?as=text"), max_bytes=1000)).body)

        await read(names[0])
        (pid,) = workers()
        os.kill(pid, signal.SIGSTOP)
        reading = [asked.begin("hostile", partial(read, name)) for name in names]
        await until(lambda: len(workers()) == 2)  # the second of his two places
        await turns_of_the_loop()
        for name in names:
            (tmp_path / name).write_text(notebook("after"), encoding="utf-8")
        os.kill(pid, signal.SIGCONT)
        async with asyncio.timeout(30):
            await asyncio.gather(*reading)
    assert texts.count("before\n") <= 3 and texts.count("after\n") >= len(names) - 2


def notebook(text: str) -> str:
    return json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": [text]}]})


class Source:
    """Answers one after the other, when it is told to."""

    def __init__(self, answers: int = 0) -> None:
        self.asked: list[str] = []
        self.answer = asyncio.Semaphore(answers)

    async def __call__(self, call: Call) -> str:
        self.asked.append(f"{call.principal.id} {call.ref}")
        await self.answer.acquire()
        return "content"


class Unstamped:
    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        return None


class Reads:
    """Reads through cache and throttle, in the one flight of all who ask the same."""

    def __init__(self, asked: Asked, throttle: Throttle, source: Source) -> None:
        self._asked, self._throttle, self._source = asked, throttle, source
        self._cache = Cache(Unstamped(), max_bytes=0, ttl={}, redaction="", clock=SystemClock())

    def begin(self, who: str, uri: str) -> asyncio.Task[Any]:
        return self._asked.begin(who, lambda: self._read(who, uri))

    async def _read(self, who: str, uri: str) -> Any:
        call = Call("read", Ref.parse(uri), Principal(who), Trail(), uri, timeout=1000.0)
        return await self._cache(call, lambda call: self._throttle(call, self._source))


@pytest.mark.parametrize("wanted", ["doc://polite", f"doc://{HOSTILE}"], ids=["another", "what the hostile asks too"])
async def test_the_places_of_a_source(asked: Asked, wanted: str) -> None:
    source = Source()
    reads = Reads(asked, Throttle(limits=SourceLimits(concurrency=1)), source)
    for number in range(HOSTILE + 1):
        reads.begin("hostile", f"doc://{number}")
    await turns_of_the_loop()
    polite = reads.begin("polite", wanted)
    await turns_of_the_loop()
    for _ in range(3):  # the one inside, and two more
        source.answer.release()
        await turns_of_the_loop()
    async with asyncio.timeout(30):
        await polite
    together = wanted != "doc://polite"  # with a hostile one, in one flight: either may be told first
    assert asked.served.index("polite") <= 2 + together


async def test_of_the_many_places_of_a_source_some_are_left_to_others(asked: Asked) -> None:
    source = Source()
    reads = Reads(asked, Throttle(), source)
    for number in range(HOSTILE):
        reads.begin("hostile", f"doc://{number}")
    await turns_of_the_loop()
    reads.begin("polite", "doc://polite")
    await turns_of_the_loop()
    assert source.asked[-1] == "polite doc://polite"  # it is inside, and nobody had to leave for it
    for _ in range(HOSTILE + 1):
        source.answer.release()


async def test_the_few_places_of_a_source_are_all_for_a_caller_who_is_alone(asked: Asked) -> None:
    source = Source()
    reads = Reads(asked, Throttle(limits=SourceLimits(concurrency=2)), source)
    for number in range(2):
        reads.begin("alone", f"doc://{number}")
    await turns_of_the_loop()
    assert source.asked == ["alone doc://0", "alone doc://1"]
    for _ in range(2):
        source.answer.release()


async def test_the_pace_of_a_source(asked: Asked) -> None:
    source, moment = Source(answers=2 * HOSTILE), asyncio.Semaphore(0)

    async def sleep(_: float) -> None:
        await moment.acquire()

    reads = Reads(asked, Throttle(sources={"doc": SourceLimits(rate=1.0)}, sleep=sleep), source)
    for number in range(HOSTILE + 2):  # the first is let through, the second waits for its moment
        reads.begin("hostile", f"doc://{number}")
    await turns_of_the_loop()
    reads.begin("polite", "doc://polite")
    await turns_of_the_loop()
    assert len(source.asked) == 1
    for _ in range(3):
        moment.release()
        await turns_of_the_loop()
    assert "polite doc://polite" in source.asked[2:4]


async def test_the_threads_of_plain_functions(tmp_path: Path, asked: Asked) -> None:
    """Those of one caller may all hang, and for ever: he has half of them."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "held.py").write_text(TOOL, encoding="utf-8")
    configuration = "sources: {mem: {kind: memory, scheme: mem, resources: {a: {text: a}}}}\ntools: {dirs: [./tools]}\n"
    async with serving(tmp_path, configuration) as served:
        for _ in range(HOSTILE):
            asked.begin("hostile", lambda: served.call("hostile", "held", who="hostile"))
        await until(lambda: len(BEGUN) == 32)
        await turns_of_the_loop()
        asked.begin("polite", lambda: served.call("polite", "held", who="polite"))
        await until(lambda: len(BEGUN) == 33)
        assert BEGUN[-1] == "polite"
        GATE.set()
        await asked.end()


async def test_the_thread_of_the_ranked_search(asked: Asked) -> None:
    index, order, gate, inside = Index(None), list[str](), threading.Event(), threading.Event()
    index.put([Document(ref=Ref.parse("doc://a"), version="1", title="-", text="budget", metadata={})])
    search = FullText(index)

    def find(who: str) -> asyncio.Task[Any]:
        def allowed(_: Ref) -> bool:
            order.append(who)
            inside.set()
            return gate.wait(30)

        return asked.begin(who, lambda: search.find(TextQuery("budget"), allowed=allowed))

    find("first")
    await until(inside.is_set)
    for _ in range(HOSTILE):
        find("hostile")
    await turns_of_the_loop()
    polite = find("polite")
    await turns_of_the_loop()
    gate.set()
    async with asyncio.timeout(30):
        await polite
    await asked.end()
    assert "polite" in order[1:3]  # each looks once
    index.close()


async def test_the_ranked_search_answers_beside_a_question_that_lasts(tmp_path: Path, asked: Asked) -> None:
    """One caller has one of two threads: nobody waits for the end of what another asks."""
    index, gate, inside = Index(tmp_path / "index"), threading.Event(), list[str]()
    index.put([Document(ref=Ref.parse("doc://a"), version="1", title="-", text="budget", metadata={})])
    search = FullText(index)

    def lasts(_: Ref) -> bool:
        inside.append("hostile")
        return gate.wait(30)

    for _ in range(HOSTILE):
        asked.begin("hostile", lambda: search.find(TextQuery("budget"), allowed=lasts, viewer="all"))
    await until(lambda: bool(inside))
    found = []

    async def find() -> None:
        found.append(await search.find(TextQuery("budget"), allowed=lambda _: True, viewer="all"))

    async with asyncio.timeout(30):
        await asked.begin("polite", find)
    assert asked.served == ["polite"] and inside == ["hostile"]
    assert [len(one.items) for one in found] == [1]
    gate.set()
    await asked.end()
    index.close()


async def test_the_threads_of_a_folder(tmp_path: Path, asked: Asked) -> None:
    """Whose searches last as long as they may leaves two of the eight to others; those who wait have turns."""
    begun, gate = list[str](), threading.Event()

    def work(who: str) -> None:
        begun.append(who)
        gate.wait(30)

    async with FileSource([FileRoot(tmp_path)], secret=b"s" * 32) as source:

        def ask(who: str) -> asyncio.Task[Any]:
            in_thread = source._in_thread  # pyright: ignore[reportPrivateUsage]  # of all that a folder is asked for
            return asked.begin(who, lambda: in_thread(lambda: work(who), Ref("file")))

        for _ in range(HOSTILE):
            ask("hostile")
        await until(lambda: len(begun) == 6)
        await turns_of_the_loop()
        ask("polite")
        await until(lambda: len(begun) == 7)
        assert begun[-1] == "polite"
        gate.set()
        await asked.end()


class Held:
    """What a caller may do in a folder, which is not said before the gate opens."""

    def __init__(self, who: str, begun: list[str], gate: threading.Event) -> None:
        self.rules: dict[str, str] = {}
        self.unlimited = False
        self._who, self._begun, self._gate = who, begun, gate

    def all_below(self, verb: Verb, spellings: Collection[Ref]) -> bool:
        self._begun.append(self._who)
        self._gate.wait(30)
        return True

    def allows(self, verb: Verb, spellings: Collection[Ref]) -> bool:
        return True


async def test_the_looks_at_whole_folders(tmp_path: Path, asked: Asked) -> None:
    """Each is a walk: one of a caller at once, and a second one of somebody else."""
    begun, gate = list[str](), threading.Event()
    async with FileSource([FileRoot(tmp_path)], secret=b"s" * 32) as source:

        def ask(who: str) -> asyncio.Task[Any]:
            return asked.begin(who, lambda: source.survey(0, (), Held(who, begun, gate)))

        for _ in range(HOSTILE):
            ask("hostile")
        await until(lambda: bool(begun))
        await turns_of_the_loop()
        ask("polite")
        await until(lambda: len(begun) == 2)
        assert begun == ["hostile", "polite"]
        gate.set()
        await asked.end()
