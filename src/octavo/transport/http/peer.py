"""Who is at the other end of a unix socket: the kernel says it, not the client."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import Any, cast

from octavo.transport.http.auth import PEER
from octavo.transport.http.deadlines import Connection

_CREDENTIALS = struct.Struct("iII")  # process, user, group


def peer_of(descriptor: int) -> int | None:
    """The user id of whoever connected; None where this system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    with socket.socket(fileno=os.dup(descriptor)) as connected:
        _, uid, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return int(uid)


class PeerConnection(Connection):
    _uid: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connected = transport.get_extra_info("socket")
        self._uid = None if connected is None else peer_of(connected.fileno())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._uid is not None:
            cast("dict[str, Any]", self.scope)[PEER] = self._uid
