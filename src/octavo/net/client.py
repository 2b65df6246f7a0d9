"""Requests to hosts that are listed, with redirects that are looked at like requests, and answers in bounds."""

from __future__ import annotations

import asyncio
import re
import ssl
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final
from urllib.parse import urljoin

import httpcore2
from msgspec import Struct

from octavo.core.errors import Forbidden, InvalidParams, OctavoError, SourceUnavailable, Timeout, TooLarge
from octavo.core.external import HttpReply, HttpRequest
from octavo.core.fair import FairQueue
from octavo.core.sizes import KIB, MIB
from octavo.net.dial import VettedNetwork
from octavo.net.urls import Url, parse_url, spelled_url

_RATIO: Final = 100
_FIRST: Final = 64 * KIB  # bytes of which any may come out before the ratio counts


class Body:
    """Taken piece by piece. Raises TooLarge above the limit, SourceUnavailable for what cannot be read."""

    def __init__(self, encoding: str, limit: int, host: str) -> None:
        self._limit, self._host = limit, host
        self._taken = 0
        self._made = bytearray()
        self._decoder = None
        match encoding.strip().lower():
            case "" | "identity":
                pass
            case "gzip" | "x-gzip":
                self._decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
            case "deflate":
                self._decoder = zlib.decompressobj()
            case _:
                raise SourceUnavailable(f"{host} answers in an encoding that was not asked for")

    def take(self, data: bytes) -> None:
        self._taken += len(data)
        if self._taken > self._limit:
            raise self._too_large()
        if self._decoder is None:
            self._made += data
            return
        while data:
            try:
                self._made += self._decoder.decompress(data, self._limit + 1 - len(self._made))
            except zlib.error:
                raise SourceUnavailable(f"{self._host} answers with a body that cannot be decoded") from None
            if len(self._made) > max(_FIRST, _RATIO * self._taken) or len(self._made) > self._limit:
                raise self._too_large()
            data = self._decoder.unconsumed_tail

    def whole(self) -> bytes:
        if self._decoder is not None and self._taken and not self._decoder.eof:
            raise SourceUnavailable(f"{self._host} ended in the middle of its answer")
        return bytes(self._made)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"The answer of {self._host} is larger than {self._limit:,} bytes", limit=self._limit)


_REDIRECTS: Final = (301, 302, 303, 307, 308)
_OURS: Final = {"user-agent": "octavo", "accept": "*/*", "accept-encoding": "gzip, identity"}
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
# Nobody but us says who asks, how a body ends, or what a proxy may believe.
_HARMLESS: Final = frozenset(
    ("accept", "accept-language", "content-type", "if-match", "if-none-match", "if-modified-since",
     "if-unmodified-since", "range", "prefer", "cache-control")
)  # fmt: skip
_KEPT: Final = 100  # characters of a reason that are told


class HostRule(Struct, frozen=True, kw_only=True):
    """A host that may be asked, and how."""

    host: str  # a name, `*.name` for those below it, or `*` for every public host
    methods: frozenset[str] = frozenset(("GET", "HEAD"))
    ports: frozenset[int] = frozenset((443,))
    plain: bool = False  # http too
    websocket: bool = False
    headers: Mapping[str, str] = {}  # sent with every request to it, and never elsewhere
    takes: frozenset[str] = frozenset()  # further headers that callers may give

    def covers(self, host: str) -> bool:
        if self.host.startswith("*."):
            return host.endswith(self.host[1:])
        return self.host in ("*", host)


class HttpLimits(Struct, frozen=True, kw_only=True):
    seconds: float = 10.0
    answer: int = 8 * MIB
    body: int = MIB
    redirects: int = 3
    connections: int = 16


class GuardedClient:
    """The `Fetcher` of the server. Connections are kept for a while and used again, each for its host alone."""

    def __init__(self, rules: Sequence[HostRule], network: VettedNetwork, limits: HttpLimits) -> None:
        self._rules, self._limits = rules, limits
        self._room = FairQueue(limits.connections, "web", spare=min(1, limits.connections - 1))
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trust(),
            max_connections=limits.connections,
            max_keepalive_connections=limits.connections,
            keepalive_expiry=15.0,
            network_backend=network,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()

    def refuse(self, request: HttpRequest) -> None:
        url = self._spelled(request)
        _allowed(request.headers, self.rule(url, request.method), request.body)

    def _spelled(self, request: HttpRequest) -> Url:
        if len(request.body) > self._limits.body:
            raise TooLarge(f"The body has more than {self._limits.body:,} bytes", limit=self._limits.body)
        url = spelled_url(request.url)
        if url.scheme not in ("http", "https"):
            raise InvalidParams("The URL of a request begins with https:// or http://")
        return url

    async def fetch(self, request: HttpRequest) -> HttpReply:
        url, method, body, headers = self._spelled(request), request.method, request.body, request.headers
        try:
            async with asyncio.timeout(self._limits.seconds), self._room.turn():
                for _ in range(self._limits.redirects + 1):
                    reply, onward = await self._once(url, method, headers, body)
                    if onward is None:
                        return reply
                    if url.secure and not onward.secure:
                        raise Forbidden(f"{url.host} leads from https to http, which is not followed")
                    if reply.status == 303 or (reply.status in (301, 302) and method == "POST"):
                        method, body = ("HEAD" if method == "HEAD" else "GET"), b""
                    if onward.origin != url.origin:  # what was meant for one is not told to another
                        if method not in ("GET", "HEAD"):
                            raise Forbidden(f"{url.host} leads a {method} on to {onward.host}, which is not followed")
                        headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}
                    url = onward
        except TimeoutError:
            message = f"{url.host} did not answer within {self._limits.seconds:g} s"
            raise Timeout(message, telling=False) from None
        raise SourceUnavailable(f"{url.host} leads on more than {self._limits.redirects} times")

    async def _once(self, url: Url, method: str, given: Mapping[str, str], body: bytes) -> tuple[HttpReply, Url | None]:
        if url.scheme not in ("http", "https"):
            raise InvalidParams("The URL of a request begins with https:// or http://")
        rule = self.rule(url, method)
        headers = [*_written({"host": url.authority, **_OURS, **_allowed(given, rule, body), **rule.headers})]
        content = body if body or method in ("POST", "PUT", "PATCH") else None
        target = httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
        try:
            async with self._pool.stream(method, target, headers=headers, content=content) as got:
                told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in got.headers}
                if got.status in _REDIRECTS and "location" in told:
                    return HttpReply(status=got.status, url=str(url)), _joined(url, told["location"])
                taken = Body(told.get("content-encoding", ""), self._limits.answer, url.host)
                async for piece in got.aiter_stream():
                    taken.take(piece)
                return HttpReply(status=got.status, url=str(url), headers=told, body=taken.whole()), None
        except OctavoError:
            raise
        except (httpcore2.ConnectError, ssl.SSLError) as error:
            raise SourceUnavailable(f"{url.host} cannot be reached safely: {str(error)[:_KEPT]}") from None
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
            raise SourceUnavailable(f"{url.host} did not answer as a server should: {type(error).__name__}") from None

    def rule(self, url: Url, method: str) -> HostRule:
        """The first that covers the host. Raises Forbidden, and says what is allowed."""
        found = next((rule for rule in self._rules if rule.covers(url.host)), None)
        if found is None:
            raise Forbidden(
                f"The operator does not allow requests to {url.host}: web.hosts in the configuration must name it",
                host=url.host,
            )
        if method not in found.methods:
            raise Forbidden(f"{url.host} may be asked with {', '.join(sorted(found.methods))} only", host=url.host)
        if not url.secure and not found.plain:
            raise Forbidden(f"{url.host} may be asked over https only", host=url.host)
        if url.port not in found.ports and not (url.port == 80 and found.plain):
            raise Forbidden(f"{url.host} may not be asked on port {url.port}", host=url.host)
        return found


@cache
def trust() -> ssl.SSLContext:
    """The certificates that this machine trusts."""
    return ssl.create_default_context()


def _allowed(given: Mapping[str, str], rule: HostRule, body: bytes) -> dict[str, str]:
    """Raises InvalidParams for a header that is not the caller's to give."""
    headers: dict[str, str] = {}
    for name, value in given.items():
        lower = name.lower()
        if not _NAME.match(name) or lower not in _HARMLESS | rule.takes:
            known = ", ".join(sorted(_HARMLESS | rule.takes))
            raise InvalidParams(f"The header {name[:60]!r} may not be given; there are {known}")
        if len(value) > 2000 or any(ord(c) < 32 or ord(c) > 255 or ord(c) == 127 for c in value):
            raise InvalidParams(f"The header {name} has a value that no header can have")
        headers[lower] = value
    if not body:
        headers.pop("content-type", None)
    return headers


def _written(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]


def _joined(url: Url, location: str) -> Url:
    """Where a redirect leads. Raises SourceUnavailable for what is no address."""
    try:
        return parse_url(urljoin(str(url), location))
    except (InvalidParams, ValueError):
        raise SourceUnavailable(f"{url.host} leads to what is no address") from None
