"""The HTTP front: the checks that every request passes before the SDK's app or a route sees it.

The front checks Host and Origin, finds out who asks, reads the body within a deadline, serves hot
requests in the lane, and lets no byte out before its audit record is stored. What it does not know it
passes on untouched.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, decode_header_value
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from octavo.core.errors import OctavoError, RateLimited
from octavo.core.fair import FairQueue, acting_for
from octavo.core.ports.server import Admitted, Server
from octavo.core.routes import Routes, no_routes
from octavo.core.sizes import KIB
from octavo.core.values import Principal
from octavo.transport.http.auth import Authentication, Authenticator
from octavo.transport.http.backlog import Backlog
from octavo.transport.http.deadlines import CONNECTION
from octavo.transport.http.door import Door, DoorParts
from octavo.transport.http.exchange import App, Message, Receive, Scope, Send, header, headers, respond
from octavo.transport.http.health import Signs
from octavo.transport.http.leases import CredentialLeases
from octavo.transport.http.limits import Bodies
from octavo.transport.http.listening import ListenLane, ListenRequest
from octavo.transport.http.records import BODY, DATA, KEPT, RecordedSend, refuse
from octavo.transport.http.refusals import RefusalSent
from octavo.transport.http.sessions import SessionCounts
from octavo.transport.http.turns import Turns
from octavo.transport.mcp import frames, wire_names
from octavo.transport.mcp.fast_path import EncodedAnswer, Lane, Taken
from octavo.transport.mcp.subscriptions import Hub

PATH = "/mcp"
_PATHS = frozenset((PATH, f"{PATH}/"))  # clients are given the one or the other, and some do not follow a redirect
_NO_DOOR = f'{{"error": "not found", "message": "MCP is served at {PATH}"}}'.encode()
BODY_SECONDS = 30.0  # for a whole request body to arrive
LANE_BODY = 64 * KIB
HANDSHAKES = 2  # at once, of which one caller has one: each takes many turns of the loop

_HOT = frozenset(
    (b"resources/read", b"resources/list", b"resources/templates/list", b"tools/list", b"prompts/list",
     b"tools/call", b"prompts/get")
)  # fmt: skip
_LISTEN = b"subscriptions/listen"
_MODERN = wire_names.MODERN.encode()
Header: TypeAlias = tuple[bytes, bytes]

_NAMED = ("resources/read", "tools/call", "prompts/get")
_ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
_ADMITTED = "octavo.admitted"  # in the scope: who asks
_RECORDED = "octavo.recorded"  # in the scope of an exchange that has its audit record
_COUNTED = "octavo.counted"  # in the scope of a request that was counted before the SDK saw it
_SESSION = b"mcp-session-id"
_HANDSHAKES = (None, *(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS))  # those with sessions
# What is left of a body that was not read is nobody's: not of the next request either.
_ENDS: Sequence[Header] = ((b"connection", b"close"),)
_REFUSED = {"too_large": 413, "timeout": 408}  # HTTP status of a malformed message by its reason; else 400


class Front:
    def __init__(
        self,
        app: App,
        server: Server,
        lane: Lane,
        security: TransportSecuritySettings,
        access: Authentication,
        hub: Hub,
        sessions: SessionCounts,
        listening: ListenLane,
        *,
        routes: Routes = no_routes,
        body_seconds: float = BODY_SECONDS,
        traced: bool = False,
    ) -> None:
        """`routes` are those of rooms, beside the signs of life. Raises ValueError where they cannot be served."""
        self._app, self._server = app, server
        self.lane = lane
        self.backlog = Backlog()
        self._turns = Turns()
        self._weights = Bodies()  # of them
        self._handshakes = FairQueue(HANDSHAKES, "handshakes", spare=1)
        self._entry = Authenticator(server, security, access)
        self.signs = Signs(server, hub, self.backlog)
        shared = DoorParts(self._entry, self._turns, self.backlog, self._body, self._weights.leave, self._recorded)
        self._door = Door(server, shared, (self.signs.routes, self._entry.routes, routes), PATH)
        self._leases = CredentialLeases(server)
        self._sessions, self._listening = sessions, listening
        self._body_seconds = body_seconds
        self._traced = traced
        # Made once: when it is sent there is too much to do already.
        busy = RateLimited("The server has too much to do: try again", retry_after=1.0, limit="load")
        self._busy = frames.error_frame(lane.codes.encode(busy, modern=True))
        self._bodies: set[asyncio.Timeout] = set()  # deadlines of the bodies that are being read

    def stop(self) -> None:
        """Waits for no body any longer: one that never comes would hold up the shutdown."""
        self.signs.stopping = True
        self._door.stop()
        for deadline in self._bodies:
            deadline.reschedule(0.0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] in _PATHS:
            scope["path"], scope["raw_path"] = PATH, PATH.encode()
            # The HTTP parser keeps white space around values, which is not part of them.
            scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
            await self._mcp(scope, receive, self._recorded(scope, send))
        elif not await self._door.serve(scope, receive, send):
            await respond(send, 404, _NO_DOOR)

    async def _mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        mark = self._entry.mark(scope)
        admitted = self._entry.recall(mark)
        known = admitted is not None
        if admitted is None:
            await self._turns.come(f"from {(scope.get('client') or ('',))[0]}")  # nobody knows yet who it is
            admitted = await self._entry.admit(scope, receive, send)
            if admitted is None:
                return
            known = mark is not None and self._entry.remember(mark, scope, admitted)
        principal = admitted.principal
        scope[_ADMITTED] = admitted
        if (connection := scope.get(CONNECTION)) is not None:
            connection.used_by(principal.id)
        if scope["method"] != "POST":
            await self._turns.come(principal.id)
            if await self._counted(scope, send, principal):
                await self._sdk(scope, receive, send, principal)
            return
        streams = header(scope, b"mcp-method") == _LISTEN  # there are limits of their own for them
        if not streams and self.backlog.full(principal.id, self._server.works.limits.timeout):
            await self._turns.come(principal.id)  # to say no is work too
            await self._refuse(send, principal)
            return
        body = await self._received(scope, receive, send, principal)
        if body is None:
            return
        place = None if streams else self.backlog.enter(principal.id)
        try:
            await self._turns.come(principal.id)
            await self._ask(scope, body, receive, send, principal, known=known)
        finally:
            self._weights.leave(principal.id, len(body))
            if place is not None:
                self.backlog.leave(place)

    async def _refuse(
        self, send: Send, who: Principal, why: RateLimited | None = None, further: Sequence[Header] = ()
    ) -> None:
        self._server.note(who.id, "request", "rate_limited")
        body = self._busy if why is None else frames.error_frame(self.lane.codes.encode(why, modern=True))
        wait = 1 if why is None else max(1, math.ceil(why.retry_after or 1))
        await respond(send, 429, body, [(b"retry-after", b"%d" % wait), *further])

    async def _counted(self, scope: Scope, send: Send, who: Principal, further: Sequence[Header] = ()) -> bool:
        """Whether a request that becomes no call is within the caller's rate; False after it was refused."""
        try:
            self._server.works.count(who)
        except RateLimited as why:
            await self._refuse(send, who, why, further)
            return False
        scope[_COUNTED] = True
        return True

    async def _received(self, scope: Scope, receive: Receive, send: Send, who: Principal) -> bytes | None:
        """The whole body, which is among the weights then; None after it was refused, or the client has left."""
        try:
            body = await self._body(scope, receive, who.id, self._server.works.limits.line)
        except frames.Malformed as bad:
            await self._malformed(bad, scope, send, who)
            return None
        except RateLimited as why:
            await self._refuse(send, who, why, _ENDS)
            return None
        if body is None:
            self._server.note(who.id, "malformed", "disconnected")
        return body

    async def _malformed(self, bad: frames.Malformed, scope: Scope, send: Send, who: Principal) -> None:
        status = _REFUSED.get(bad.error.data["reason"], 400)
        ends = _ENDS if status != 400 else ()
        if not await self._counted(scope, send, who, ends):
            return
        self._server.note(who.id, "malformed", f"error {bad.error.code}")
        await respond(send, status, frames.error_frame(bad.error, bad.id), [*ends])

    async def _ask(
        self, scope: Scope, body: bytes, receive: Receive, send: Send, principal: Principal, *, known: bool
    ) -> None:
        replayed = _replay(body, receive)
        scope[BODY] = body
        try:
            self._server.ledger.flush()
        except OctavoError as fault:  # refused here, before anything is done: what is passed on goes its own way
            self._server.note(principal.id, "request", fault.reason)
            await refuse(scope, send, fault)
            return
        try:
            if known and await self._in_lane(scope, body, replayed, send, principal):
                return
            message = frames.check(body)
        except frames.Malformed as bad:
            await self._malformed(bad, scope, send, principal)
            return
        silent = "id" not in message or "method" not in message  # a notification, or what answers a question
        del message  # a stream can last for days, and the SDK reads its own
        if known and (asked := self._listens(scope, body)) is not None:
            await self._listening.serve(asked, receive, send, scope[_ADMITTED])
            return
        if silent and not await self._counted(scope, send, principal):
            return
        await self._sdk(scope, replayed, send, principal)
        # `_meta` that the SDK accepted is known from now on.
        modern = header(scope, b"mcp-protocol-version") == _MODERN
        if modern and scope.get(_RECORDED) == "ok" and (envelope := self.lane.envelope(body)) is not None:
            self.lane.learn(envelope, principal)

    async def _sdk(self, scope: Scope, receive: Receive, send: Send, who: Principal) -> None:
        if not self._traced:
            await self._passed_on(scope, receive, send, who)
            return
        from octavo.transport.mcp.traces import below

        end = below(scope)
        try:
            await self._passed_on(scope, receive, send, who)
        finally:
            end()

    async def _passed_on(self, scope: Scope, receive: Receive, send: Send, who: Principal) -> None:
        noted = limited = False
        place: str | None = None  # among the handshakes
        refused: RefusalSent | None = None
        session = header(scope, _SESSION)
        # The SDK binds a session to the user of its first request.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=who.id, scopes=[]))

        def note(outcome: str) -> None:
            nonlocal noted
            if not noted and _RECORDED not in scope:
                noted = True
                self._server.note(who.id, "request" if scope["method"] == "POST" else scope["method"], outcome)

        def leave() -> None:
            nonlocal place
            if place is not None:
                self._handshakes.leave(place)
                place = None

        async def watched(message: Message) -> None:
            nonlocal noted, limited, session, refused
            if message["type"] == "http.response.start":
                status, already = message["status"], _RECORDED in scope  # what has its record is explained as well
                if status >= 400 and not already and _COUNTED not in scope:
                    noted = limited = not await self._counted(scope, send, who)
                elif status < 400:
                    session = header(message, _SESSION)
                # A POST that begins with 200 may still become a call, which then has its own record.
                if status != 200 or scope["method"] != "POST":
                    note(f"status {status}")
                if status >= 400 and not already and scope["method"] != "HEAD":
                    refused = RefusalSent(send)
            if DATA in message.get("body", b""):
                leave()  # the answer is made: a client that does not take it holds up nobody
                self._learn(scope, who)
            if not limited:
                await (send if refused is None else refused)(message)

        async def serve() -> None:
            if scope["method"] == "GET":
                await self._leases.serve(self._app, scope, receive, watched, scope[_ADMITTED])
            else:
                await self._app(scope, receive, watched)

        try:
            if session is not None:
                with self._sessions.using(who, session.decode("latin-1")):
                    await serve()
            elif header(scope, b"mcp-protocol-version") not in _HANDSHAKES:
                await serve()
            elif _COUNTED in scope or await self._counted(scope, send, who):
                with acting_for(who.id):
                    place = await self._handshakes.enter()
                try:
                    whose = await self._sessions.make_room(who)
                    try:
                        await serve()
                    finally:
                        self._sessions.opened(whose, None if session is None else session.decode("latin-1"))
                finally:
                    leave()
            else:
                noted = True
        except RateLimited as why:
            noted = True
            await self._refuse(send, who, why)
        finally:
            note("ended")

    def _learn(self, scope: Scope, who: Principal) -> None:
        """What the SDK has accepted of a stream, which may last for days."""
        if header(scope, b"mcp-method") == _LISTEN and header(scope, b"mcp-protocol-version") == _MODERN:
            meta = self._listening.envelope(scope[BODY])
            if meta is not None and self.lane.fits(meta):
                self.lane.learn(meta, who)

    async def _body(self, scope: Scope, receive: Receive, whose: str, limit: int) -> bytes | None:
        """The whole body; None if the client left. Raises Malformed above the limit, or when it takes too long, and
        RateLimited where the caller's bodies weigh too much together."""
        announced = header(scope, b"content-length") or b""
        if announced.isdigit() and int(announced[:20]) > limit:
            raise frames.too_large(limit)
        chunks: list[bytes] = []
        size = 0
        whole = False
        deadline = asyncio.timeout(self._body_seconds)
        self._bodies.add(deadline)
        try:
            async with deadline:
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    chunk = message.get("body", b"")
                    if size + len(chunk) > limit:
                        raise frames.too_large(limit)
                    self._weights.take(whose, len(chunk))
                    chunks.append(chunk)
                    size += len(chunk)
                    if not message.get("more_body"):
                        whole = True
                        return b"".join(chunks)
        except TimeoutError:
            raise frames.invalid("The request body did not arrive in time", "timeout") from None
        finally:
            self._bodies.discard(deadline)
            if not whole:
                self._weights.leave(whose, size)

    async def _in_lane(self, scope: Scope, body: bytes, receive: Receive, send: Send, who: Principal) -> bool:
        """Whether the lane took the request."""
        routing = headers(scope, _ROUTING)
        if routing is None or len(body) > LANE_BODY or routing[0] != _MODERN or routing[1] not in _HOT:
            return False
        if _has_more(scope):
            return False
        taken = self.lane.take(body, who, modern=True, moment=0)
        if taken is None or not _says_the_same(routing, taken):
            return False
        answers: list[EncodedAnswer] = []
        task = self.lane.run(taken, answers.append)
        if task is not None:
            gone = asyncio.ensure_future(_disconnected(receive))
            try:
                await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                task.cancel()  # without effect on one that has ended; else the client left and nobody waits
                await asyncio.wait({task})
        if answers:
            status = 200 if answers[0].code is None else ERROR_CODE_HTTP_STATUS.get(answers[0].code, 200)
            await respond(send, status, b"".join(answers[0].pieces))
        return True

    def _listens(self, scope: Scope, body: bytes) -> ListenRequest | None:
        """Of a request for a stream that is answered here."""
        routing = headers(scope, _ROUTING)
        if routing != (_MODERN, _LISTEN, None) or self._traced or _has_more(scope):
            return None
        return self._listening.take(body, scope[_ADMITTED])

    def _recorded(self, scope: Scope, send: Send) -> Send:
        return RecordedSend(self._server.ledger, scope, send)


def admitted_by(request: Any) -> Admitted:
    admitted: Admitted = request.scope[_ADMITTED]
    return admitted


def was_counted(ctx: Any) -> bool:
    """Whether the front has counted this exchange among its caller's requests."""
    return _COUNTED in ctx.request.scope


def mark_recorded(ctx: Any, succeeded: bool, kept: bool | None) -> None:
    """Tells the front that this exchange has its audit record, and whether that is stored already."""
    scope = ctx.request.scope
    scope[_RECORDED] = "ok" if succeeded else "error"
    if kept is not None:
        scope[KEPT] = kept


def _has_more(scope: Scope) -> bool:
    """Whether headers say more than who asks for what."""
    return any(name.startswith(b"mcp-param-") or name == b"content-encoding" for name, _ in scope["headers"])


def _says_the_same(routing: tuple[bytes | None, ...], taken: Taken) -> bool:
    """Headers and body must agree; where they do not, the SDK says so."""
    method, name = routing[1], routing[2]
    if method is None or method.decode("latin-1") != taken.method:
        return False
    if taken.method not in _NAMED:
        return name is None
    asked = taken.call.uri if taken.method == "resources/read" else taken.call.uri.partition("://")[2]
    return name is not None and decode_header_value(name.decode("latin-1")) == asked


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
