"""Tools that reach outside: who may call them, with which arguments, and when a human is asked first."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from tests.tools.builtin.conftest import WRITABLE, Serve
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
    ("http_request", {"url": "http://127.0.0.1:9/", "method": "POST"}),
    ("http_request", {"url": "http://127.0.0.1:9/", "body": "x"}),
    ("websocket", {"action": "connect", "url": "ws://127.0.0.1:9/"}),
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


EVERYTHING_IS_ASKED = """
    sources: {work: {kind: file, roots: [./work], write: true, extensions: [.txt]}, fixed: {kind: memory, scheme: mem}}
    toolsets: [files, filesystem, seed, process, web]
    commands: {programs: {say: {run: echo, args: [{name: text}]}}}
    web: {hosts: [{host: api.example.com, methods: [GET, POST], websocket: true}]}
    agents: {ann: {}, eve: {}}
    policy:
      - {who: "*", may: "*", what: "**", approve: human}
      - {who: ann, may: [read, write, delete], what: "file://hr/*", effect: deny}
      - {who: eve, may: [read, list], what: "file://*", effect: deny}
"""
FILES = {"a.txt": "one\ntwo\ntwo\n", "b.txt": "b\n", "d/c.txt": "c\n", "hr/pay.txt": "pay\n"}
POST = {"method": "POST", "body": "x"}
IMPOSSIBLE: list[tuple[str, dict[str, Any]]] = [
    ("write", {"target": "file://hr/new.txt", "content": "x"}),
    ("write", {"target": "file://a.txt", "content": "x", "mode": "create"}),
    ("write", {"target": "file://new.txt", "content": "x", "mode": "overwrite"}),
    ("write", {"target": "file://a.txt", "content": "x", "if_match": "stale"}),
    ("write", {"target": "file://new.txt", "content": "x", "if_match": "stale"}),
    ("write", {"target": "file://a.txt", "content": "x", "base64": "eA=="}),
    ("write", {"target": "mem://x", "content": "x"}),
    ("write", {"target": "what://x", "content": "x"}),
    ("write", {"target": "file://../x.txt", "content": "x"}),
    ("edit", {"target": "file://a.txt", "edits": [{"old": "two", "new": "2"}]}),
    ("edit", {"target": "file://a.txt", "edits": [{"old": "none of it", "new": "2"}]}),
    ("edit", {"target": "file://none.txt", "edits": [{"old": "one", "new": "1"}]}),
    ("edit", {"target": "file://a.txt", "edits": [{"old": "one", "new": "1"}], "if_match": "stale"}),
    ("edit", {"target": "file://hr/pay.txt", "edits": [{"old": "pay", "new": "1"}]}),
    ("delete", {"target": "file://none.txt"}),
    ("delete", {"target": "file://a.txt", "if_match": "stale"}),
    ("delete", {"target": "file://hr/pay.txt"}),
    ("move", {"target": "file://none.txt", "to": "file://new.txt"}),
    ("move", {"target": "file://a.txt", "to": "file://b.txt"}),
    ("move", {"target": "file://a.txt", "to": "file://hr/new.txt"}),
    ("copy", {"target": "file://a.txt", "to": "mem://x"}),
    ("copy", {"target": "file://a.txt", "to": "file://b.txt"}),
    ("create_directory", {"target": "file://a.txt"}),
    ("write_file", {"path": "hr/new.txt", "content": "x"}),
    ("edit_file", {"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]}),
    ("move_file", {"source": "none.txt", "destination": "new.txt"}),
    ("deleteFile", {"path": "none.txt"}),
    ("run_command", {"program": "say", "args": {"txt": "x"}}),
    ("run_command", {"program": "say", "folder": "file://none"}),
    ("run_command", {"program": "say", "input": "x"}),
    ("start_process", {"program": "say", "args": {"txt": "x"}}),
    ("write_input", {"process": "x", "text": "y"}),
    ("stop_process", {"process": "x"}),
    ("http_request", {"url": "https://other.example/", **POST}),
    ("http_request", {"url": "http://api.example.com/", **POST}),
    ("http_request", {"url": "https://api.example.com/", "method": "DELETE"}),
    ("http_request", {"url": "https://api.example.com/", "json": {}, **POST}),
    ("http_request", {"url": "https://api.example.com/", "headers": {"Host": "x"}, **POST}),
    ("http_request", {"url": "no address", **POST}),
    ("websocket", {"action": "connect", "url": "wss://other.example/"}),
    ("websocket", {"action": "connect"}),
    ("websocket", {"action": "send", "socket": "x", "message": "y"}),
]
POSSIBLE: list[tuple[str, dict[str, Any]]] = [
    ("write", {"target": "file://new.txt", "content": "x"}),
    ("edit", {"target": "file://a.txt", "edits": [{"old": "one", "new": "1"}]}),
    ("delete", {"target": "file://a.txt"}),
    ("delete", {"target": "file://d"}),
    ("move", {"target": "file://a.txt", "to": "file://b.txt", "overwrite": True}),
    ("copy", {"target": "file://d", "to": "file://e"}),
    ("create_directory", {"target": "file://new"}),
    ("write_file", {"path": "a.txt", "content": "x"}),
    ("run_command", {"program": "say", "args": {"text": "x"}}),
    ("start_process", {"program": "say"}),
    ("http_request", {"url": "https://api.example.com/", **POST}),
    ("websocket", {"action": "connect", "url": "wss://api.example.com/"}),
]


@pytest.mark.seed("T5")
async def test_nobody_is_asked_about_what_cannot_happen(serve: Serve) -> None:
    tools = await serve(EVERYTHING_IS_ASKED, FILES)
    before = {file: file.read_bytes() for file in tools.root.rglob("*.txt")}
    for name, arguments in IMPOSSIBLE:
        with pytest.raises(OctavoError) as refused:
            await tools(name, who="ann", **arguments)
        assert not isinstance(refused.value, ApprovalRequired), (name, arguments)
        assert await tools.octavo.approvals.standing() == [], (name, arguments)
    for number, (name, arguments) in enumerate(POSSIBLE, 1):
        with pytest.raises(ApprovalRequired):
            await tools(name, who="ann", **arguments)
        assert len(await tools.octavo.approvals.standing()) == number, (name, arguments)
    assert {file: file.read_bytes() for file in tools.root.rglob("*.txt")} == before, "what was tried has no effect"


@pytest.mark.seed("T5")
async def test_who_may_not_know_what_stands_there_learns_it_by_no_refusal_before_the_question(serve: Serve) -> None:
    tools = await serve(EVERYTHING_IS_ASKED, FILES)
    for target in ("file://a.txt", "file://none.txt"):
        for name, more in (("write", {"content": "x", "mode": "create"}), ("delete", {})):
            with pytest.raises(ApprovalRequired):
                await tools(name, who="eve", target=target, **more)


@pytest.mark.seed("T5")
async def test_nor_whether_a_link_leads_to_something(serve: Serve) -> None:
    tools = await serve(EVERYTHING_IS_ASKED, FILES)
    (tools.root / "there.txt").symlink_to("a.txt")
    (tools.root / "nowhere.txt").symlink_to("none.txt")
    for target in ("file://there.txt", "file://nowhere.txt"):
        with pytest.raises(ApprovalRequired):
            await tools("delete", who="eve", target=target)


@pytest.mark.seed("T5")
async def test_an_undo_is_asked_about_and_done_when_it_is_allowed(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    rules = """
    agents: {ann: {}}
    policy:
      - {who: ann, may: "*", what: "**"}
      - {who: ann, may: invoke, what: "tool://undo", approve: human}
    """
    tools = await serve(f"    {WRITABLE}{rules}", {"a.txt": "old"})
    await tools("write", who="ann", target="a.txt", content="new")
    with pytest.raises(ApprovalRequired):
        await tools("undo", who="ann")
    assert (tools.root / "a.txt").read_text(encoding="utf-8") == "new", "what was tried has no effect"
    assert not [record for record in caplog.records if record.exc_info], "it is no fault of the source"
    (asked,) = await tools.octavo.approvals.standing()
    await tools.octavo.approvals.answer(asked.id, "a human", allow=True)
    await tools("undo", who="ann")
    assert (tools.root / "a.txt").read_text(encoding="utf-8") == "old"
