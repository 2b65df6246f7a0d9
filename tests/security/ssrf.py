"""URLs that lead inward, straight, by redirects and by names that change: no connection is made to where they lead.

    python -m tests.security.ssrf

The client is the real one, and allows every host, port and method: all that is between a URL and this machine are the
addresses that it vets. Names are answered by a resolver of the test. The dialler connects to nothing but canaries: for
a public address it is a stand-in in memory, for any other a real listener of this machine that counts. So no packet
leaves the machine, and one that should not be sent would be seen.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any, NamedTuple

import httpcore2
from tests.security.inward import urls

from octavo.core.errors import OctavoError
from octavo.core.external import HttpRequest
from octavo.net.addresses import network, outward
from octavo.net.client import GuardedClient, HostRule, HttpLimits
from octavo.net.dial import VettedNetwork

PUBLIC = "93.184.216.34"
TABLE = {
    "inside.test": ["10.1.2.3"],
    "both.test": [PUBLIC, "127.0.0.1"],
    "six.test": ["::1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "localhost": ["127.0.0.1", "::1"],
    "ip6-localhost": ["::1"],
}
METHODS = frozenset(("GET", "HEAD", "POST"))


class Figures(NamedTuple):
    urls: int
    requests: int
    refused: Counter[str]
    answered: int  # by the stand-in, for hostile URLs that only looked inward
    inward: int  # connections that a canary saw
    dialled: int  # addresses that are not public and were dialled
    rebound: int  # requests to a name that changed
    good: int

    @property
    def held(self) -> bool:
        return not self.inward and not self.dialled and self.good == 50


class StandIn(httpcore2.AsyncNetworkStream):
    """A public server in memory. `/to/N` leads to the URL of that number, `/step/K/N` there by K more steps."""

    def __init__(self, corpus: Sequence[str]) -> None:
        self._corpus, self._asked, self._reply = corpus, b"", b""
        self.name = ""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._asked += buffer
        if b"\r\n\r\n" in self._asked and not self._reply:
            self._reply = self._answer(self._asked.split(b" ", 2)[1].decode("latin-1"))

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        given, self._reply = self._reply[:max_bytes], self._reply[max_bytes:]
        return given

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> StandIn:
        self.name = server_hostname or ""
        return self

    async def aclose(self) -> None: ...

    def get_extra_info(self, info: str) -> Any:
        return None

    def _answer(self, target: str) -> bytes:
        _, what, *numbers = target.split("/")
        if not all(number.isdigit() for number in numbers):
            what = "a relative redirect"
        if what == "to":
            place = self._corpus[int(numbers[0])]
        elif what == "step":
            left, number = map(int, numbers)
            place = f"http://good{left}.test/" + (f"step/{left - 1}/{number}" if left else f"to/{number}")
        else:
            return b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
        header = place.replace("\r", "").replace("\n", "").encode("utf-8", "replace")
        return b"HTTP/1.1 302 Found\r\nlocation: " + header + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Canaries:
    """Listeners of this machine, and the dialler that leads to them."""

    def __init__(self, corpus: Sequence[str]) -> None:
        self._corpus = corpus
        self.seen = self.dialled = 0

    async def __aenter__(self) -> Canaries:
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def dial(self, address: str, port: int, seconds: float | None) -> httpcore2.AsyncNetworkStream:
        if outward(ip_address(address)):
            return StandIn(self._corpus)
        self.dialled += 1
        return await httpcore2.AnyIOBackend().connect_tcp("127.0.0.1", self._port)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret")
        await writer.drain()
        writer.close()


class Names:
    """A resolver: numbers as the C library reads them, names of the table, and one that changes each time."""

    def __init__(self) -> None:
        self.asked = 0

    async def resolve(self, host: str, port: int) -> list[str]:
        if host == "rebind.test":
            self.asked += 1
            return [PUBLIC] if self.asked % 2 else ["127.0.0.1"]
        if host.startswith("good"):
            return [PUBLIC, "2606:2800:220:1::1"]
        if host in TABLE:
            return TABLE[host]
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return [str(address[0]) for *_, address in found]


async def run(inside: Sequence[str] = ()) -> Figures:
    """`inside`: networks that the client is told to allow, by which a test sees that the canaries see."""
    corpus, names = urls()[:100] if inside else urls(), Names()
    refused: Counter[str] = Counter()
    requests = answered = rebound = good = 0
    async with Canaries(corpus) as canaries:
        rule = HostRule(host="*", methods=METHODS, ports=frozenset(range(1, 65536)), plain=True)
        client = GuardedClient(
            [rule], VettedNetwork([*map(network, inside)], names.resolve, canaries.dial), HttpLimits(redirects=3)
        )

        async def ask(url: str, method: str = "GET") -> bool:
            nonlocal requests
            requests += 1
            try:
                reply = await client.fetch(HttpRequest(url=url, method=method))
            except OctavoError as error:
                refused[error.reason] += 1
                return False
            return reply.body != b"secret"

        for number, url in enumerate(corpus):
            for hostile in (url, f"http://good.test/to/{number}", f"http://good.test/step/1/{number}"):
                answered += await ask(hostile)
        for _ in range(50):
            rebound += 1
            await ask("http://rebind.test/")
        for number in range(50):
            scheme = "https" if number % 2 else "http"
            good += await ask(f"{scheme}://good{number}.test/a?b={number}", "POST" if number % 5 == 0 else "GET")
        await client.aclose()
    return Figures(len(corpus), requests, refused, answered, canaries.seen, canaries.dialled, rebound, good)


def main() -> None:
    figures = asyncio.run(run())
    print(
        f"{figures.urls} URLs, {figures.requests} requests (straight, redirected, rebound {figures.rebound} times): "
        f"{figures.inward} inward connections, {figures.dialled} inward addresses dialled; "
        f"refused {dict(figures.refused)}, {figures.answered} answered by public stand-ins, "
        f"{figures.good} of 50 good pass"
    )
    sys.exit(not figures.held)


if __name__ == "__main__":
    main()
