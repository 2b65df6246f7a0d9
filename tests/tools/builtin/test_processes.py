"""Processes that run on: read by offset, written to, stopped, listed; each its caller's alone."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.tools.builtin.conftest import Serve, Tools
from tests.tools.builtin.test_commands import ENDLESS, configuration, processes_with, python, until

from octavo.core.errors import Conflict, InvalidParams, NotFound
from octavo.tools.builtin.process.started import OutputTail

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="programs of Linux")]


async def all_of(tools: Tools, process: str, **more: Any) -> tuple[str, str]:
    """What it prints until it has ended, and how it ended."""
    text, after = "", 0
    while True:
        result = await tools("read_output", process=process, after=after, seconds=20)
        data = dict(result.structured or {})
        if data["next"] == after and data["state"] != "running":
            return text, data["state"]
        if data["next"] > after:
            text += result.content[0].text  # type: ignore[union-attr]
        after = data["next"]


@pytest.mark.seed("T4")
async def test_a_process_is_started_read_written_and_ended(serve: Serve) -> None:
    code = 'import sys\nprint("ready", flush=True)\nfor line in sys.stdin: print("got", line.strip(), flush=True)'
    tools = await serve(configuration(f"chat: {python(code, ', input: true')}"))
    name = (await tools.data("start_process", program="chat"))["process"]
    first = await tools.data("read_output", process=name, seconds=20)
    assert first["state"] == "running" and first["next"] == len("ready\n")
    await tools("write_input", process=name, text="한 줄\n")
    assert await tools.text("read_output", process=name, after=first["next"], seconds=20) == "got 한 줄\n"
    await tools("write_input", process=name, end=True)
    assert await all_of(tools, name) == ("ready\ngot 한 줄\n", "exit 0")
    listed = await tools.data("list_processes")
    assert [row["program"] for row in listed["processes"]] == ["chat"]
    with pytest.raises(Conflict, match="ended: exit 0"):
        await tools("write_input", process=name, text="x")


async def test_nobody_sees_anothers_process(serve: Serve) -> None:
    more = """
        agents: {ann: {}, bob: {}}
        policy:
          - {who: "*", may: [invoke], what: "tool://*", approve: never}
          - {who: "*", may: [list, read], what: "file://*"}
    """
    tools = await serve(configuration(f"wait: {python(ENDLESS, ', input: true')}", more=more))
    name = (await tools.data("start_process", who="ann", program="wait"))["process"]
    assert (await tools.data("list_processes", who="bob"))["processes"] == []
    for tool in ("read_output", "write_input", "stop_process"):
        with pytest.raises(NotFound):
            await tools(tool, who="bob", process=name)
    assert (await tools.data("read_output", who="ann", process=name))["state"] == "running"


async def test_a_caller_has_few_and_one_that_ended_makes_room(serve: Serve) -> None:
    tools = await serve(configuration(f"wait: {python(ENDLESS)}, say: {{run: echo}}", commands="started: 2"))
    short = (await tools.data("start_process", program="say"))["process"]
    await all_of(tools, short)
    for _ in range(2):
        await tools("start_process", program="wait")
    with pytest.raises(Conflict, match="end one first"):
        await tools("start_process", program="wait")


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_process_is_stopped_politely_or_by_force(serve: Serve, tmp_path: Path, stubborn: bool) -> None:
    mark = f"mark-{tmp_path.name}"
    ignore = "import signal; signal.signal(15, signal.SIG_IGN)\n" if stubborn else ""
    code = f"# {mark}\n{ignore}print(1, flush=True)\n{ENDLESS}"
    tools = await serve(configuration(f"wait: {python(code)}"))
    name = (await tools.data("start_process", program="wait"))["process"]
    await tools("read_output", process=name, seconds=20)
    state = (await tools.data("stop_process", process=name, seconds=0.1 if stubborn else 20))["state"]
    assert state == ("killed: it was stopped" if stubborn else "ended by SIGTERM")
    assert processes_with(mark) == []


async def test_only_the_last_output_is_kept_and_what_is_lost_is_told(serve: Serve) -> None:
    code = 'print("x" * 100000); print("end")'
    tools = await serve(configuration(f"print: {python(code)}", commands="output: 1000"))
    name = (await tools.data("start_process", program="print"))["process"]
    await until_ended(tools, name)
    data = await tools.data("read_output", process=name)
    assert data["dropped"] == len("x" * 100_000 + "\n") and data["next"] == 100_005
    assert (await tools.text("read_output", process=name)).endswith("kept]\nend\n")
    with pytest.raises(InvalidParams, match="only 100005"):
        await tools("read_output", process=name, after=200_000)


async def until_ended(tools: Tools, name: str) -> None:
    after = 0
    while (data := await tools.data("read_output", process=name, after=after, seconds=20))["state"] == "running":
        after = data["next"]


async def test_a_process_that_nobody_asks_for_ends(serve: Serve, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    code = f"# {mark}\n{ENDLESS}"
    tools = await serve(configuration(f"wait: {python(code)}", commands="idle: 50ms"))
    name = (await tools.data("start_process", program="wait"))["process"]
    await until(lambda: not processes_with(mark))
    with pytest.raises(NotFound):
        await tools("read_output", process=name)


async def test_a_process_has_a_lifetime(serve: Serve) -> None:
    tools = await serve(configuration(f"wait: {python(ENDLESS)}", commands="lifetime: 100ms"))
    name = (await tools.data("start_process", program="wait"))["process"]
    assert (await all_of(tools, name))[1].startswith("killed: it did not end within")


async def test_all_end_with_the_server(serve: Serve, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    code = f"# {mark}\nimport os\nif not os.fork(): os.setsid()\nprint(1, flush=True)\n{ENDLESS}"
    tools = await serve(configuration(f"wait: {python(code)}"))
    await tools("start_process", program="wait")
    await until(lambda: len(processes_with(mark)) >= 2)
    await tools.octavo.__aexit__(None, None, None)
    assert processes_with(mark) == []


async def test_input_that_is_not_read_does_not_pile_up(serve: Serve) -> None:
    tools = await serve(configuration(f"wait: {python(ENDLESS, ', input: true')}", commands="input: 200KB"))
    name = (await tools.data("start_process", program="wait"))["process"]
    with pytest.raises(Conflict, match="has not read"):
        for _ in range(10):
            await tools("write_input", process=name, text="x" * 100_000)


async def test_two_readers_wait_at_once(serve: Serve) -> None:
    code = 'import sys; sys.stdin.readline(); print("both", flush=True)'
    tools = await serve(configuration(f"wait: {python(code, ', input: true')}"))
    name = (await tools.data("start_process", program="wait"))["process"]
    readers = [asyncio.ensure_future(tools.text("read_output", process=name, seconds=20)) for _ in range(2)]
    await asyncio.sleep(0)
    await tools("write_input", process=name, text="\n")
    assert await asyncio.gather(*readers) == ["both\n", "both\n"]


def test_a_character_is_never_cut_in_two() -> None:
    tail = OutputTail(100)
    data = "가나🙂다".encode()
    text, after = "", 0
    for index in range(len(data)):
        tail.take(data[index : index + 1])
        part = tail.part(after, 50, whole=index == len(data) - 1)
        text, after = text + part.text, part.next
    assert text == "가나🙂다" and after == len(data)


async def test_no_offset_into_what_a_process_printed_shows_half_of_a_secret(serve: Serve) -> None:
    """By its half nobody would recognise it."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    code = f'print("first\\ntoken {token}\\nlast")'
    tools = await serve(configuration(f"tell: {python(code)}"))
    name = (await tools.data("start_process", program="tell"))["process"]
    told, _ = await all_of(tools, name)
    assert "first" in told and "last" in told and token[-8:] not in told
    for after in range(len(f"first\ntoken {token}\nlast\n")):
        assert token[-8:] not in await tools.text("read_output", process=name, after=after), after
