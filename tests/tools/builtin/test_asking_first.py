"""Tools that reach outside: who may call them, with which arguments, and when a human is asked first."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from tests.tools.builtin.conftest import Serve
from tests.tools.builtin.test_commands import printed

from octavo.core.errors import ApprovalRequired, Forbidden, OctavoError, SourceUnavailable

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="programs of Linux")]

BOTH = """
    sources: {work: {kind: file, roots: [./work]}}
    toolsets: [files, process, web]
    commands: {programs: {say: {run: echo, args: [{name: text}], input: true}, show: {run: cat}}}
    web:
      hosts: [{host: 127.0.0.1, ports: [9], plain: true, methods: [GET, HEAD, POST], websocket: true}]
      inside: [127.0.0.0/8]
"""
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("run_command", {"program": "say"}),
    ("start_process", {"program": "say"}),
    ("write_input", {"process": "x", "text": "y"}),
    ("http_request", {"url": "http://127.0.0.1:9/", "method": "POST"}),
    ("http_request", {"url": "http://127.0.0.1:9/", "body": "x"}),
    ("websocket", {"action": "connect", "url": "ws://127.0.0.1:9/"}),
    ("websocket", {"action": "send", "socket": "x", "message": "y"}),
]
NOT_ASKED: list[tuple[str, dict[str, Any]]] = [
    ("list_processes", {}),
    ("read_output", {"process": "x"}),
    ("stop_process", {"process": "x"}),
    ("http_request", {"url": "http://127.0.0.1:9/"}),
    ("http_request", {"url": "http://127.0.0.1:9/", "method": "HEAD"}),
    ("websocket", {"action": "close", "socket": "x"}),
]


@pytest.mark.seed("T5")
@pytest.mark.parametrize(("name", "arguments"), ASKED)
async def test_without_a_rule_a_human_is_asked_first(serve: Serve, name: str, arguments: dict[str, Any]) -> None:
    tools = await serve(BOTH)
    with pytest.raises(ApprovalRequired):
        await tools(name, **arguments)


@pytest.mark.parametrize(("name", "arguments"), NOT_ASKED)
async def test_nobody_is_asked_about_what_only_looks(serve: Serve, name: str, arguments: dict[str, Any]) -> None:
    tools = await serve(BOTH)
    try:
        await tools(name, **arguments)
    except ApprovalRequired:
        pytest.fail("a human was asked")
    except OctavoError:
        pass  # there is no such process, and nobody listens there


async def test_a_rule_allows_one_program_and_no_other_by_the_arguments_of_a_call(serve: Serve) -> None:
    rules = """
    agents: {ann: {}}
    policy:
      - {who: ann, may: [list, read], what: "file://*"}
      - {who: ann, may: [invoke], what: "tool://run_command", when: {arguments: {program: say}}, approve: never}
    """
    tools = await serve(BOTH + rules)
    assert printed(await tools("run_command", who="ann", program="say", args={"text": "x"})) == "x\n"
    for name, arguments in (("run_command", {"program": "show"}), *NOT_ASKED, *ASKED[1:]):
        with pytest.raises(Forbidden):
            await tools(name, who="ann", **arguments)


async def test_without_a_grant_even_reading_tools_of_these_sets_are_refused(serve: Serve) -> None:
    rules = """
    agents: {ann: {}}
    policy: [{who: ann, may: [list, read], what: "file://*"}]
    """
    tools = await serve(BOTH + rules)
    for name, arguments in (*ASKED, *NOT_ASKED):
        with pytest.raises(Forbidden):
            await tools(name, who="ann", **arguments)


async def test_the_token_of_the_caller_goes_nowhere(serve: Serve) -> None:
    heard: list[bytes] = []

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    tools = await serve(BOTH.replace("[9]", f"[{server.sockets[0].getsockname()[1]}]"))
    with pytest.raises(SourceUnavailable):
        await tools("http_request", url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    names = {line.split(b":")[0].lower() for line in heard[0].split(b"\r\n")[1:] if line}
    assert names == {b"host", b"user-agent", b"accept", b"accept-encoding"}
    server.close()


async def test_hints_say_what_the_tools_do(serve: Serve) -> None:
    tools = await serve(BOTH)
    registry = tools.octavo.works.tools
    for name in ("run_command", "start_process", "write_input", "http_request", "websocket"):
        info = registry.tool(name)
        assert info is not None
        assert (info.hints.read_only, info.hints.destructive, info.hints.open_world) == (False, True, True), name
    for name in ("read_output", "list_processes"):
        info = registry.tool(name)
        assert info is not None and info.hints.read_only, name
