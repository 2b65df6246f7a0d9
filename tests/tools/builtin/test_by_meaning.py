"""`search` with an embedder of the operator's own (B6): a small endpoint here, which knows three things by heart."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from octavo.app.configuration import load_text
from octavo.config.problems import ConfigError

pytestmark = [pytest.mark.anyio, pytest.mark.seed("B6")]

THINGS = (("vacation", "holiday", "휴가"), ("budget", "money"), ("secret", "key"))
SECRET = "AKIAQ3EGRJ5XTWMZPBR7"


class Endpoint:
    """Answers POST /v1/embeddings in the usual form; `wrong` is answered instead, if it is there."""

    def __init__(self) -> None:
        self.port = 0
        self.heard: list[dict[str, Any]] = []
        self.wrong: bytes | None = None

    def vector(self, text: str) -> list[float]:
        return [0.01 + sum(map(text.lower().count, words)) for words in THINGS]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                (length,) = (
                    int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
                )
                asked = json.loads(await reader.readexactly(length))
                self.heard.append(asked)
                rows = [{"index": n, "embedding": self.vector(text)} for n, text in enumerate(asked["input"])]
                body = self.wrong if self.wrong is not None else json.dumps({"data": rows[::-1]}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def endpoint(anyio_backend: str) -> AsyncIterator[Endpoint]:
    made = Endpoint()
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made


def configuration(port: int, further: str = "") -> str:
    return f"""
sources: {{work: {{kind: file, uris: relative, roots: [./work]}}}}
search:
  embedder: {{url: "http://127.0.0.1:{port}/v1/embeddings", model: small, inside: [127.0.0.0/8]}}
{further}"""


FILES: dict[str, str | bytes] = {
    "rest.md": "# Time off\n\nHow holiday is asked for.\n",
    "spend.md": "# Spending\n\nWho decides on money.\n",
    "hr/pay.md": "# Pay\n\nholiday money\n",
}


async def found(tools: Any, query: str, **asked: Any) -> list[str]:
    return [one["uri"] for one in (await tools.data("search", query=query, kind="ranked", **asked))["results"]]


async def until_found(tools: Any, query: str, wanted: str) -> None:
    with anyio.fail_after(30):
        while wanted not in await found(tools, query):
            await anyio.lowlevel.checkpoint()


async def test_a_page_is_found_by_what_it_means(serve: Any, endpoint: Endpoint) -> None:
    tools = await serve(configuration(endpoint.port), FILES)
    await until_found(tools, "휴가", "file://rest.md")
    assert (await found(tools, "휴가"))[0] == "file://rest.md"
    assert {one["model"] for one in endpoint.heard} == {"small"}


async def test_what_is_hidden_is_not_found_by_its_meaning(serve: Any, endpoint: Endpoint) -> None:
    rules = """
agents: {guest: {}}
policy:
  - {who: guest, may: [list, read, search], what: "file://*"}
  - {who: guest, may: "*", what: "file://hr/*", effect: deny}
"""
    tools = await serve(configuration(endpoint.port, rules), FILES)
    with anyio.fail_after(30):
        while "file://rest.md" not in (given := await found(tools, "휴가", who="guest")):
            await anyio.lowlevel.checkpoint()
    assert "file://hr/pay.md" not in given


async def test_only_what_anybody_is_shown_leaves(serve: Any, endpoint: Endpoint) -> None:
    tools = await serve(configuration(endpoint.port), {"a.md": f"holiday {SECRET}\n"})
    await until_found(tools, "휴가", "file://a.md")
    await found(tools, f"where is {SECRET}")
    assert SECRET not in json.dumps(endpoint.heard)


@pytest.mark.parametrize(
    "wrong",
    [b"", b"{}", b"[]", b'{"data": []}', b'{"data": [{"embedding": ["x"]}]}', b'{"data": [{"embedding": [NaN]}]}'],
)
async def test_whatever_the_endpoint_answers_words_are_found(serve: Any, endpoint: Endpoint, wrong: bytes) -> None:
    endpoint.wrong = wrong
    tools = await serve(configuration(endpoint.port), FILES)
    assert await found(tools, "holiday asked") == ["file://rest.md", "file://hr/pay.md"]
    assert await found(tools, "휴가") == []


async def test_nothing_is_asked_unless_it_is_configured(serve: Any, endpoint: Endpoint) -> None:
    tools = await serve("sources: {work: {kind: file, uris: relative, roots: [./work]}}", FILES)
    assert await found(tools, "휴가") == []
    assert endpoint.heard == []


@pytest.mark.parametrize(
    ("embedder", "said"),
    [
        ("{url: 'http://10.1.2.3/v1', model: m}", r"inside: \[10.1.2.3/32\]"),
        ("{url: 'http://localhost:9/v1', model: m}", r"inside: \[127.0.0.1/32\]"),
        ("{url: 'http://example.com/v1', model: m, key: '${KEY}'}", "https"),
        ("{url: 'ftp://example.com', model: m}", "http or https"),
        ("{url: 'https://example.com/v1'}", "model"),
    ],
)
async def test_an_embedder_that_cannot_be_is_said(embedder: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_text(
            f"version: 1\nsearch: {{embedder: {embedder}}}\n", file=Path("octavo.yaml"), environ={"KEY": "x" * 20}
        )
    assert any(re.search(said, str(one)) for one in refused.value.problems)
