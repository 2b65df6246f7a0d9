"""The only outbound requests of this room: small documents of configured issuers, within bounds."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import httpx2

from octavo.core.errors import SourceUnavailable
from octavo.core.issuers import may_be_fetched, metadata_of, on_this_machine
from octavo.core.sizes import KIB

SECONDS = 5.0
MAX_BYTES = 256 * KIB
HEADERS = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "octavo"}

Fetch = Callable[[str], Awaitable[bytes]]


async def fetch(url: str) -> bytes:
    """The body. No redirects, no proxies of the environment, no credentials. Raises SourceUnavailable."""
    try:
        async with (
            asyncio.timeout(SECONDS),
            httpx2.AsyncClient(verify=_trust(), trust_env=False, follow_redirects=False, timeout=SECONDS) as client,
            client.stream("GET", url, headers=HEADERS) as reply,
        ):
            if reply.status_code != 200 or reply.headers.get("content-encoding", "identity") != "identity":
                raise SourceUnavailable(f"{url} answers with status {reply.status_code}")
            body = b""
            async for chunk in reply.aiter_raw():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise SourceUnavailable(f"{url} answers with more than {MAX_BYTES} bytes")
            return body
    except (httpx2.HTTPError, OSError) as error:
        raise SourceUnavailable(f"{url} cannot be reached: {type(error).__name__}") from None


class JwksOf:
    """The key set of an issuer, found by its metadata unless the operator says where it is."""

    def __init__(self, issuer: str, jwks: str, fetch: Fetch = fetch) -> None:
        self._issuer, self._given, self._fetch = issuer, jwks, fetch
        self._found = ""

    async def __call__(self) -> bytes:
        place, self._found = self._given or self._found, ""
        if not place:
            place = await self._discovered()
        body = await self._fetch(place)
        self._found = place  # until it fails
        return body

    async def _discovered(self) -> str:
        """Raises SourceUnavailable where no document describes exactly this issuer."""
        problem = SourceUnavailable(f"{self._issuer} does not describe itself")
        for place in metadata_of(self._issuer):
            try:
                document: Any = json.loads(await self._fetch(place))
            except SourceUnavailable as error:
                problem = error
                continue
            except (ValueError, RecursionError):
                continue
            if not isinstance(document, dict) or document.get("issuer") != self._issuer:
                continue
            jwks = document.get("jwks_uri")
            if isinstance(jwks, str) and may_be_fetched(jwks, loopback=on_this_machine(self._issuer)):
                return jwks
        raise problem


@cache
def _trust() -> ssl.SSLContext:
    """The certificates that this machine trusts."""
    return ssl.create_default_context()
