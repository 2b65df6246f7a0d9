"""Small documents of a server that the operator names, such as the keys of an issuer, through the vetted client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.core.external import HttpRequest
from octavo.core.issuers import on_this_machine
from octavo.core.sizes import KIB
from octavo.net.addresses import network
from octavo.net.client import GuardedClient, HostRule, HttpLimits
from octavo.net.dial import Resolve, VettedNetwork, resolve

_LIMITS: Final = HttpLimits(seconds=5.0, answer=256 * KIB, redirects=0, connections=2)
_LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
_OK: Final = 200


def fetcher(
    urls: Iterable[str], inside: Sequence[str] = (), resolve: Resolve = resolve
) -> Callable[[str], Awaitable[bytes]]:
    """Gives the body at an address. No redirects, no proxies of the environment, no credentials.

    `urls` are what the operator wrote. Their hosts alone may lead to networks that are not public, into those of
    `inside`, and to this machine where one of them is on it; and their ports alone may be others than 443.
    """
    written = [urlsplit(url) for url in urls]
    hosts = frozenset((parts.hostname or "").lower() for parts in written)
    ports = frozenset((443, *(parts.port or (80 if parts.scheme == "http" else 443) for parts in written)))
    here = {host for host in hosts if on_this_machine(f"http://{host if ':' not in host else f'[{host}]'}/")}
    plain = any(parts.scheme == "http" for parts in written)
    networks = [network(text) for text in (*inside, *(_LOOPBACK if here else ()))]
    rules = [
        *(HostRule(host=host, ports=ports, plain=plain) for host in sorted(here)),
        HostRule(host="*", ports=ports),
    ]

    async def fetch(url: str) -> bytes:
        """Raises SourceUnavailable."""
        client = GuardedClient(rules, VettedNetwork(networks, resolve, named=hosts.__contains__), _LIMITS)
        try:
            reply = await client.fetch(HttpRequest(url=url, headers={"accept": "application/json"}))
        except OctavoError as error:
            raise SourceUnavailable(f"{url} cannot be reached: {error.message}") from None
        finally:
            await client.aclose()
        if reply.status != _OK:
            raise SourceUnavailable(f"{url} answers with status {reply.status}")
        return reply.body

    return fetch
