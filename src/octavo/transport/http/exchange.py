"""One HTTP exchange, in the words of ASGI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def headers(scope: Scope, names: tuple[bytes, ...]) -> tuple[bytes | None, ...] | None:
    """The values of these headers, None for a missing one; nothing at all if one of them is there twice."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in names:
            if name in found:
                return None
            found[name] = value
    return tuple(found.get(name) for name in names)


def header(scope: Scope, wanted: bytes) -> bytes | None:
    return next((value for name, value in scope["headers"] if name == wanted), None)


async def respond(
    send: Send,
    status: int,
    body: bytes,
    headers: list[tuple[bytes, bytes]] | None = None,
    media_type: bytes = b"application/json",
) -> None:
    told = [(b"content-length", b"%d" % len(body)), (b"content-type", media_type), *(headers or ())]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})
