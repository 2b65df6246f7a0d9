"""HTTP: the SDK's app behind one front door.

The front checks Host and Origin, finds out who asks, reads the body within a deadline, serves hot
requests in the lane, and lets no byte out before its audit record is stored. What it does not know it
passes on untouched.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import check_accept_headers
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, decode_header_value
from starlette.requests import Request

from octavo.core.errors import OctavoError, Unauthenticated
from octavo.core.house import House
from octavo.core.model import Principal
from octavo.transport.mcp import frames, keys
from octavo.transport.mcp.codes import WireError
from octavo.transport.mcp.lane import Lane, Taken

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/mcp"
BODY_SECONDS = 30.0  # for a whole request body to arrive
LANE_BODY = 64 * 1024
MEMO_SIZE = 1024  # header combinations known to be good

_HOT = frozenset(
    (b"resources/read", b"resources/list", b"resources/templates/list", b"tools/list", b"prompts/list",
     b"tools/call", b"prompts/get")
)  # fmt: skip
_NAMED = {"resources/read": "uri", "tools/call": "name", "prompts/get": "name"}
_ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
_IDENTIFYING = (b"host", b"origin", b"content-type", b"accept", b"authorization")


class Access(NamedTuple):
    """How callers are told apart: by key, or all of them as one principal on loopback."""

    everybody: str | None = None  # agent id with `--no-auth`, "" for the local user; None: keys


class Front:
    def __init__(
        self, app: App, house: House, lane: Lane, security: TransportSecuritySettings, access: Access
    ) -> None:
        self._app, self._house, self._lane, self._access = app, house, lane, access
        self._security = TransportSecurityMiddleware(security)
        self._good: dict[tuple[bytes, ...], Principal] = {}
        house.on_swap(self._good.clear)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == "/healthz":
            await _json(send, 200, {"status": "ok"})
        elif scope["path"] == PATH:
            # The HTTP parser keeps white space around values, which is not part of them.
            scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
            await self._mcp(scope, receive, self._recorded(send))
        else:
            await _json(send, 404, {"error": "not found"})

    async def _mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        identifying = _headers(scope, _IDENTIFYING)
        principal = self._good.get(identifying) if identifying is not None else None
        if principal is None:
            principal = await self._admit(scope, receive, send)
            if principal is None:
                return
            if identifying is not None and scope["method"] == "POST" and _acceptable(scope):
                if len(self._good) >= MEMO_SIZE:
                    self._good.clear()
                self._good[identifying] = principal
            else:
                identifying = None
        scope["octavo.principal"] = principal
        # The SDK binds a session to the user of its first request.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=principal.id, scopes=[]))
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await self._body(receive, send, principal)
        if body is None:
            return
        replayed = _replay(body, receive)
        if identifying is not None and await self._in_lane(scope, body, replayed, send, principal):
            return
        if (fault := frames.fault(body)) is not None:
            self._house.note(principal.id, "malformed", f"error {fault.code}")
            await _error(send, 400, fault)
            return
        await self._sdk(scope, body, replayed, send, principal)

    async def _sdk(self, scope: Scope, body: bytes, receive: Receive, send: Send, who: Principal) -> None:
        modern = _header(scope, b"mcp-protocol-version") == keys.MODERN.encode()
        envelope = self._lane.envelope(body) if modern else None
        statuses: list[int] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                if not scope.get("octavo.recorded"):
                    # Refused by the SDK before it looked at the method, or a notification.
                    self._house.note(who.id, "request", f"status {message['status']}")
            elif envelope is not None and statuses == [200] and b'"result"' in message.get("body", b""):
                self._lane.learn(envelope)
            await send(message)

        await self._app(scope, receive, watched)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> Principal | None:
        """Who asks, or None after the refusal has been sent."""
        request = Request(scope, receive)
        refused = await self._security.validate_request(request, is_post=scope["method"] == "POST")
        if refused is not None:
            self._house.note("unknown", "http", f"status {refused.status_code}")
            await refused(scope, receive, send)
            return None
        try:
            return self._authenticate(_header(scope, b"authorization"))
        except Unauthenticated as why:
            self._house.note("unknown", "http", why.reason)
            body = {"error": why.reason, "message": why.message}
            await _json(send, 401, body, [(b"www-authenticate", b'Bearer realm="octavo"')])
            return None

    def _authenticate(self, authorization: bytes | None) -> Principal:
        identity = self._house.works.identity
        if self._access.everybody is not None:
            return identity.launched(self._access.everybody or None)
        scheme, _, key = (authorization or b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Unauthenticated("Send the agent's key as `Authorization: Bearer KEY`")
        return identity.by_key(key.strip())

    async def _body(self, receive: Receive, send: Send, who: Principal) -> bytes | None:
        limit = self._house.works.limits.line
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > limit:
                        self._house.note(who.id, "malformed", "too_large")
                        too_large = WireError(-32600, f"A message is longer than {limit} bytes", {"reason": "too_large"})
                        await _error(send, 413, too_large)
                        return None
                    if not message.get("more_body"):
                        return b"".join(chunks)
        except TimeoutError:
            self._house.note(who.id, "malformed", "timeout")
            await _error(send, 408, WireError(-32600, "The request body did not arrive in time", {"reason": "timeout"}))
            return None

    async def _in_lane(self, scope: Scope, body: bytes, receive: Receive, send: Send, who: Principal) -> bool:
        """Whether the lane took the request."""
        routing = _headers(scope, _ROUTING)
        if routing is None or len(body) > LANE_BODY or routing[0] != keys.MODERN.encode() or routing[1] not in _HOT:
            return False
        if any(name.startswith(b"mcp-param-") or name == b"content-encoding" for name, _ in scope["headers"]):
            return False
        taken = self._lane.take(body, who, modern=True)
        if taken is None or not _says_the_same(routing, taken):
            return False
        answers: asyncio.Queue[bytes] = asyncio.Queue()
        task = self._lane.run(taken, answers.put_nowait)
        if task is not None:
            gone = asyncio.ensure_future(_disconnected(receive))
            try:
                await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                if not task.done():
                    task.cancel()  # the client left: nobody waits for the answer
            if task.cancelled() or not task.done():
                return True
        answer = await answers.get()
        await _respond(send, _status(answer), answer)
        return True

    def _recorded(self, send: Send) -> Send:
        async def after_the_record(message: Message) -> None:
            self._house.ledger.flush()
            await send(message)

        return after_the_record


def principal_of(request: Any) -> Principal:
    who: Principal = request.scope["octavo.principal"]
    return who


def mark_recorded(ctx: Any) -> None:
    """Tells the front that this exchange has its audit record."""
    ctx.request.scope["octavo.recorded"] = True


def _says_the_same(routing: tuple[bytes, ...], taken: Taken) -> bool:
    """Headers and body must agree; where they do not, the SDK says so."""
    if routing[1].decode("latin-1") != taken.method:
        return False
    name = routing[2]
    if taken.method not in _NAMED:
        return name == b""
    asked = taken.call.uri if taken.method == "resources/read" else taken.call.uri.partition("://")[2]
    return decode_header_value(name.decode("latin-1")) == asked


def _status(answer: bytes) -> int:
    if b'"error":{"code":' not in answer[:200]:
        return 200
    return ERROR_CODE_HTTP_STATUS.get(json.loads(answer)["error"]["code"], 200)


def _headers(scope: Scope, names: tuple[bytes, ...]) -> tuple[bytes, ...] | None:
    """The values of these headers, b"" for a missing one; None if one of them is there twice."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in names:
            if name in found:
                return None
            found[name] = value
    return tuple(found.get(name, b"") for name in names)


def _header(scope: Scope, wanted: bytes) -> bytes | None:
    return next((value for name, value in scope["headers"] if name == wanted), None)


def _acceptable(scope: Scope) -> bool:
    return all(check_accept_headers(Request(scope)))


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever the client does next."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _respond(
    send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    told = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json"), *(headers or ())]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})


async def _json(
    send: Send, status: int, body: Mapping[str, Any], headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    await _respond(send, status, json.dumps(body, ensure_ascii=False).encode("utf-8"), headers)


async def _error(send: Send, status: int, error: WireError) -> None:
    await _respond(send, status, frames.error_frame(error))
