"""The client of fastmcp lists and reads, over stdio and HTTP."""

from __future__ import annotations

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from tests.e2e.harness import ODD_NAMES, Place, octavo

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.seed("A2", "F1", "F6")]


async def lists_and_reads(place: Place, transport: StdioTransport | StreamableHttpTransport) -> None:
    """Every resource by the address that its list gives."""
    place.edit_all(ODD_NAMES)
    async with Client(transport, timeout=20) as client:
        listed = {one.name: one.uri for one in await client.list_resources()}
        for name in ODD_NAMES:
            (content,) = await client.read_resource(listed.pop(name.rpartition("/")[2]))
            assert content.text == f"{name}\n"
        assert sorted(listed) == ["guide.md", "plan.txt", "소개.md"]
        (content,) = await client.read_resource("file://docs/한국/소개.md")
        assert content.text == "안녕하세요, 옥타보입니다.\n"


async def test_fastmcp_over_stdio(place: Place) -> None:
    command, *arguments = octavo("serve", place.root)
    log = place.base / "stderr.log"
    transport = StdioTransport(command, arguments, env=place.environment, keep_alive=False, log_file=log)
    await lists_and_reads(place, transport)
    assert log.read_text(encoding="utf-8") == ""


async def test_fastmcp_over_http(place: Place) -> None:
    with place.serve(place.root, "--no-auth") as server:
        await lists_and_reads(place, StreamableHttpTransport(server.url))
    assert "Traceback" not in server.log.text
