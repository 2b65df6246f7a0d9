"""The client of fastmcp lists and reads, over stdio and HTTP."""

from __future__ import annotations

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from tests.e2e.harness import Place, octavo

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.seed("A2", "F6")]

KOREAN = "file://docs/한국/소개.md"


async def lists_and_reads(transport: StdioTransport | StreamableHttpTransport) -> None:
    async with Client(transport, timeout=20) as client:
        listed = await client.list_resources()
        assert [str(one.uri) for one in listed] == ["file://docs/guide.md", KOREAN, "file://notes/plan.txt"]
        for uri, text in ((KOREAN, "안녕하세요, 옥타보입니다.\n"), ("file://notes/plan.txt", "plan\n")):
            (content,) = await client.read_resource(uri)
            assert content.text == text


async def test_fastmcp_over_stdio(place: Place) -> None:
    command, *arguments = octavo("serve", place.root)
    log = place.base / "stderr.log"
    transport = StdioTransport(command, arguments, env=place.environment, keep_alive=False, log_file=log)
    await lists_and_reads(transport)
    assert log.read_text(encoding="utf-8") == ""


async def test_fastmcp_over_http(place: Place) -> None:
    with place.serve(place.root, "--no-auth") as server:
        await lists_and_reads(StreamableHttpTransport(server.url))
    assert "Traceback" not in server.log.text
