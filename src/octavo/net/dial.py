"""Connections to addresses that were looked at: resolved once, vetted all, dialled by number."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Any

import httpcore2

from octavo.core.errors import Forbidden, SourceUnavailable
from octavo.net.addresses import Address, Network, vetted

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # host and port to addresses
Dial = Callable[[str, int, float | None], Awaitable[httpcore2.AsyncNetworkStream]]  # address, port, seconds


async def resolve(host: str, port: int) -> Sequence[str]:
    """All addresses of a name. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def dial(address: str, port: int, seconds: float | None) -> httpcore2.AsyncNetworkStream:
    return await httpcore2.AnyIOBackend().connect_tcp(address, port, timeout=seconds)


class VettedNetwork(httpcore2.AsyncNetworkBackend):
    """All that a client may connect to. A name is resolved here and nowhere else."""

    def __init__(
        self,
        inside: Sequence[Network],
        resolve: Resolve = resolve,
        dial: Dial = dial,
        named: Callable[[str], bool] = lambda host: True,
    ) -> None:
        """`inside`: networks that the operator allows although they are not public, to hosts that are `named`: anybody
        can give a name of his own an address in them."""
        self._inside, self._resolve, self._dial, self._named = inside, resolve, dial, named

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raises Forbidden for an address that is not public, SourceUnavailable for one that does not answer."""
        try:
            addresses = vetted(await self._resolve(host, port), self._inside if self._named(host) else ())
        except (OSError, UnicodeError):
            raise SourceUnavailable(f"The name {host} is not known") from None
        if not addresses:
            raise Forbidden(f"{host} does not lead to a public address, and the operator allows no other")
        for address in addresses:
            try:
                stream = await self._dial(str(address), port, timeout)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout, OSError):
                continue
            if not _is_at(stream, address):
                await stream.aclose()
                raise Forbidden(f"{host} answered from another address than the one that was asked")
            return stream
        raise SourceUnavailable(f"{host} does not answer on port {port}")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise Forbidden("There is no way to sockets of this machine")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _is_at(stream: httpcore2.AsyncNetworkStream, address: Address) -> bool:
    """Whether the kernel says so too; streams that are not sockets cannot be asked."""
    peer = stream.get_extra_info("server_addr")
    return peer is None or ip_address(str(peer[0])) == address
