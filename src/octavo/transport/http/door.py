"""The door for routes: what rooms serve beside the protocol, under the same identity, limits, deadlines and audit.

Host and Origin come first, then the method, who asks, whether there is too much, whether he may, and only then the
body, each refused before the next costs anything. What a handler does has a deadline; the pieces of its answer end with
the server, with the credential of who asked, and with the client.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl

from octavo.core.errors import Forbidden, InternalError, InvalidParams, OctavoError, RateLimited, Timeout
from octavo.core.operations import OPERATIONS
from octavo.core.ports.chain import Reply
from octavo.core.ports.server import Admitted, Server
from octavo.core.routes import Anybody, Route, RouteAnswer, RouteRequest, Routes
from octavo.core.values import Call, Principal
from octavo.transport.http.auth import Authenticator
from octavo.transport.http.backlog import Backlog
from octavo.transport.http.deadlines import CONNECTION
from octavo.transport.http.exchange import Message, Receive, Scope, Send, respond
from octavo.transport.http.leases import at
from octavo.transport.http.limits import AddressRates
from octavo.transport.http.table import MatchedRoute, RouteTable
from octavo.transport.http.turns import Turns
from octavo.transport.mcp import frames
from octavo.transport.mcp.calls import incident

logger = logging.getLogger(__name__)

UNKNOWN: Final = "unknown"
FIELDS: Final = 100  # of one query

# What is left of a body that was not read is nobody's: not of the next request either.
_ENDS: Final = [(b"connection", b"close")]
_STATUS: Final[Mapping[str, int]] = {
    "invalid_params": 400, "unauthenticated": 401, "forbidden": 403, "not_found": 404, "timeout": 504,
    "conflict": 409, "approval_required": 409, "input_required": 409, "too_large": 413, "rate_limited": 429,
    "source_unavailable": 503,
}  # fmt: skip
_SECRET: Final = frozenset(("authorization", "cookie", "proxy-authorization"))
_WORDS: Final = re.compile(r"[\x20-\x7e]+\Z")  # what may stand in a header that a handler gives


class Reads(Protocol):
    async def __call__(self, scope: Scope, receive: Receive, whose: str, limit: int) -> bytes | None:
        """The whole body, which is among the weights then; None if the client left. Raises Malformed, RateLimited."""
        ...


class DoorParts(NamedTuple):
    """What the front has for all that it serves."""

    entry: Authenticator
    turns: Turns
    backlog: Backlog
    read: Reads
    weighed: Callable[[str, int], None]  # such a body is worked off
    recorded: Callable[[Scope, Send], Send]  # lets nothing out before its record is stored


class Door:
    def __init__(self, server: Server, shared: DoorParts, given: Sequence[Routes], taken: str) -> None:
        """Raises ValueError for routes that cannot be served; `taken` is the path of the protocol."""
        self.server, self.shared = server, shared
        self._table = RouteTable(given, taken)
        self.budgets = AddressRates()
        self._running: Counter[str] = Counter()
        self.streams: set[_Exchange] = set()
        self._streams_of: Counter[str] = Counter()
        self.stopping = False
        server.on_swap(self._reloaded)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Whether there is a route at that path."""
        found = self._table.find(scope["path"])
        if found is None or not scope["raw_path"].startswith(found.route.path.encode()):
            return False  # also for what is spelled in another way: a proxy in front may know one spelling alone
        # The HTTP parser keeps white space around values, which is not part of them.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await _Exchange(self, found, scope, receive, send).serve()
        return True

    def stop(self) -> None:
        """Lets every stream end; an open one would hold up the shutdown."""
        self.stopping = True
        for one in list(self.streams):
            one.over.set()

    def _reloaded(self) -> None:
        self._table.reload()
        for one in list(self.streams):
            if not one.may_go_on():
                one.over.set()

    def serves(self, route: Route) -> bool:
        """Whether it still stands there, for the same callers."""
        found = self._table.find(route.path)
        return found is not None and (found.route.path, found.route.needs) == (route.path, route.needs)

    @contextmanager
    def running(self, whose: str) -> Iterator[None]:
        with _counted(self._running, whose, self.server.works.limits.in_flight, "in_flight"):
            yield

    @contextmanager
    def streaming(self, exchange: _Exchange) -> Iterator[None]:
        who = exchange.who
        limit = self.server.works.limits.subscriptions if who is None else self.server.works.subscriptions(who)
        with _counted(self._streams_of, exchange.whose, limit, "subscriptions"):
            self.streams.add(exchange)
            try:
                yield
            finally:
                self.streams.discard(exchange)


@contextmanager
def _counted(count: Counter[str], whose: str, limit: int, what: str) -> Iterator[None]:
    if count[whose] >= limit:
        message = f"Too many of your requests are open (limits.{what}: {limit})"
        raise RateLimited(message, retry_after=1.0, limit=what, allowed=limit)
    count[whose] += 1
    try:
        yield
    finally:
        count[whose] -= 1
        if not count[whose]:
            del count[whose]


class _ClientLeft(Exception):
    """Nobody waits for the answer."""


class _Exchange:
    """One request at one route."""

    def __init__(self, door: Door, found: MatchedRoute, scope: Scope, receive: Receive, send: Send) -> None:
        self._door, self._server, self._shared = door, door.server, door.shared
        self._route, self._below = found
        self._scope, self._receive = scope, receive
        # A sign of life must be seen also where nothing can be recorded, and has no record itself.
        self._send = send
        self._recording = door.shared.recorded(scope, send)
        self._admitted: Admitted | None = None
        self._refused_by_entry: OctavoError | None = None
        self._asked = False  # the pipeline, which has recorded it
        self._streams = False
        self._address = str((scope.get("client") or ("",))[0])
        self.over = asyncio.Event()

    @property
    def who(self) -> Principal | None:
        return None if self._admitted is None else self._admitted.principal

    @property
    def whose(self) -> str:
        """Among whose requests it counts."""
        return f"from {self._address}" if self._admitted is None else self._admitted.principal.id

    @property
    def _lives(self) -> bool:
        """Whether it asks for a sign of life, which nobody's flood may take from who looks after the server."""
        return isinstance(self._route.needs, Anybody) and self._route.needs.rate is None

    @property
    def _quiet(self) -> bool:
        """A sign of life, for somebody who did not say who he is."""
        return self._route.stands_for is None and self._admitted is None

    async def serve(self) -> None:
        route, entry = self._route, self._shared.entry
        if not route.any_host and await entry.turned_away(self._scope, self._receive, self._recording, is_post=False):
            return
        if self._scope["method"] not in self._methods():
            await self._refuse_method()
            return
        try:
            await self._shared.turns.come(self.whose)  # nobody knows yet who it is
            if not isinstance(route.needs, Anybody):
                who = await self._identify(counted=route.stands_for not in OPERATIONS)
                await self._shared.turns.come(who.id)
            self._admit()
            with ExitStack() as running:
                if not self._lives:
                    running.enter_context(self._door.running(self.whose))
                await self._serve(running)
        except OctavoError as why:
            await self._refuse(why)
        except _ClientLeft:
            self._note("disconnected")

    def _methods(self) -> list[str]:
        methods: list[str] = [*self._route.methods]
        return [*methods, "HEAD"] if "GET" in methods else methods

    async def _refuse_method(self) -> None:
        self._server.note(UNKNOWN, "http", "status 405", **self._facts())
        allow = [(b"allow", ", ".join(self._methods()).encode())]
        await respond(self._recording, 405, _body({"error": "method not allowed"}), [*allow, *_ENDS])

    async def _identify(self, *, counted: bool) -> Principal:
        """Raises what refuses it. `counted`: here, and not by the pipeline."""
        if self._admitted is None:
            try:
                admitted = await self._shared.entry.identify(self._scope)
            except OctavoError as why:
                self._refused_by_entry = why
                raise
            self._admitted = admitted
            if (connection := self._scope.get(CONNECTION)) is not None:
                connection.used_by(admitted.principal.id)
            if counted:
                self._server.works.count(admitted.principal)
        return self._admitted.principal

    def _admit(self) -> None:
        """Raises where there is too much, or its caller may not."""
        route, composition = self._route, self._server.works
        if self._lives:
            return
        if isinstance(route.needs, Anybody) and route.needs.rate is not None:
            self._door.budgets.take(route.path, self._address, route.needs.rate)
        if self._shared.backlog.full(self.whose, composition.limits.timeout):
            raise RateLimited("The server has too much to do: try again", retry_after=1.0, limit="load")
        if self.who is not None and not self._may(self.who):
            raise self._forbidden()

    def _may(self, who: Principal) -> bool:
        route, composition = self._route, self._server.works
        if route.needs == "admin":
            return composition.administers(who, route.what)
        verb = route.stands_for
        return verb is None or verb in OPERATIONS or composition.policy.allows(who, verb, route.what)  # type: ignore[arg-type]

    def _forbidden(self) -> Forbidden:
        verb, what = str(self._route.stands_for), str(self._route.what)
        return Forbidden(f"This needs {verb} on {what}", required_permission=verb, resource=what)

    def may_go_on(self) -> bool:
        """Whether other rules, or other agents, leave a stream as it is."""
        try:
            who = None if self.who is None else self._server.works.identity.current(self.who)
        except OctavoError:
            return False
        return self._door.serves(self._route) and (who is None or self._may(who))

    async def _serve(self, running: ExitStack) -> None:
        """`running` is closed where a request becomes a stream: there is a limit of its own for those."""
        whose, read = self.whose, self._shared.read  # whoever says later who he is has been counted by then
        try:
            body = await read(self._scope, self._receive, whose, self._route.body)
        except frames.Malformed as bad:
            await self._refuse_body(bad)
            return
        except RateLimited as why:
            await self._refuse(why, _ENDS)
            return
        if body is None:
            raise _ClientLeft
        gone = asyncio.ensure_future(self._gone())
        place = None if self._lives else self._shared.backlog.enter(whose)
        try:
            answer = await self._answer(body, gone)
            if isinstance(answer.body, bytes):
                self._note("ok" if answer.status < 400 else f"status {answer.status}")
                await self._respond(answer, answer.body)
                return
            with self._door.streaming(self):
                running.close()
                if place is not None:
                    self._shared.backlog.leave(place)
                    place = None
                await self._stream(answer, answer.body)
        except asyncio.CancelledError:
            if not self._streams:  # else its end is on record
                self._note("cancelled")
            raise
        finally:
            self._shared.weighed(whose, len(body))
            if place is not None:
                self._shared.backlog.leave(place)
            gone.cancel()

    async def _refuse_body(self, bad: frames.Malformed) -> None:
        reason = bad.error.data["reason"]
        status = 413 if reason == "too_large" else 408
        self._note(f"status {status}", refused=True)
        await respond(self._recording, status, _body({"error": reason, "message": bad.error.message}), _ENDS)

    async def _gone(self) -> None:
        """Until the client has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.over.set()

    async def _answer(self, body: bytes, gone: asyncio.Future[None]) -> RouteAnswer:
        """Raises OctavoError, and _ClientLeft."""
        seconds = self._server.works.limits.timeout
        handling = asyncio.ensure_future(_called(self._route, self._request(body)))
        try:
            await asyncio.wait({handling, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if handling.done():
                return _checked(handling.result())
            if gone.done():
                raise _ClientLeft
            raise Timeout(f"There is no answer within {seconds:g} s")
        except (OctavoError, _ClientLeft):
            raise
        except Exception as fault:
            raise incident(fault) from None
        finally:
            handling.cancel()
            await asyncio.wait({handling})

    def _request(self, body: bytes) -> RouteRequest:
        return RouteRequest(
            method=self._scope["method"],
            below=self._below,
            query={} if self._lives else _query(self._scope["query_string"]),
            headers=_headers(self._scope["headers"]),
            body=body,
            who=self.who,
            named=self._shared.entry.knows(self._scope),
            shown=any(name == b"authorization" for name, _ in self._scope["headers"]),
            ask=self._ask,
            identify=lambda: self._identify(counted=True),
        )

    async def _ask(self, call: Call) -> Reply:
        self._asked = True
        return await self._server.works.ask(call)

    # -- out

    async def _respond(self, answer: RouteAnswer, body: bytes) -> None:
        send = self._send if self._quiet else self._recording
        told = [(b"cache-control", answer.cache.encode()), (b"x-content-type-options", b"nosniff")]
        await respond(send, answer.status, body, told, answer.media_type.encode())

    async def _stream(self, answer: RouteAnswer, pieces: AsyncGenerator[bytes, None]) -> None:
        """Until there are no more pieces, or nobody may have them, or wants them."""
        send = self._send if self._quiet else self._recording
        timer = None if self._admitted is None else at(self._admitted.until, self.over.set)
        over = asyncio.ensure_future(self.over.wait())
        if self._door.stopping:
            self.over.set()
        self._streams = True
        self._note("ok")
        whole = False
        try:
            told = [
                (b"content-type", answer.media_type.encode()), (b"cache-control", answer.cache.encode()),
                (b"x-content-type-options", b"nosniff"),
            ]  # fmt: skip
            await send({"type": "http.response.start", "status": answer.status, "headers": told})
            if self._scope["method"] != "HEAD":
                await self._pieces(send, pieces, over)
            whole = True
        except OctavoError as fault:
            logger.error("the stream of %s ends: %s", self._route.path, fault)
        finally:
            over.cancel()
            if timer is not None:
                timer.cancel()
            await _close(pieces)
            self._note("end", ends=True)
            if whole:  # else it is cut off, and the client sees that
                await send({"type": "http.response.body", "body": b""})

    async def _pieces(self, send: Send, pieces: AsyncGenerator[bytes, None], over: asyncio.Future[Any]) -> None:
        while not self.over.is_set():
            coming = asyncio.ensure_future(anext(pieces))
            try:
                await asyncio.wait({coming, over}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    return
                piece = coming.result()
            except StopAsyncIteration:
                return
            except OctavoError:
                raise
            except Exception as fault:
                raise incident(fault) from None
            finally:
                coming.cancel()
                await asyncio.wait({coming})
            message: Message = {"type": "http.response.body", "body": piece, "more_body": True}
            if piece:
                await send(message)

    async def _refuse(self, why: OctavoError, further: Sequence[tuple[bytes, bytes]] = ()) -> None:
        if why is self._refused_by_entry:
            await self._shared.entry.refuse(self._scope, self._recording, why)
            return
        why = self._once_more(why)
        self._note(why.reason if not isinstance(why, InternalError) else "crash", refused=True)
        wait = getattr(why, "retry_after", None)
        if wait is not None:
            further = [*further, (b"retry-after", b"%d" % max(1, math.ceil(wait)))]
        status = _STATUS.get(why.reason, 503 if why.reason == "unrecorded" else 500)
        told = {"error": why.reason, "message": why.message}
        await respond(self._recording, status, _body(told), [*further])

    def _once_more(self, why: OctavoError) -> OctavoError:
        """What was to become a call, and did not, is counted when that is known."""
        if self.who is None or self._asked or self._route.stands_for not in OPERATIONS or why.reason == "rate_limited":
            return why
        try:
            self._server.works.count(self.who)
        except RateLimited as limited:
            return limited
        return why

    def _note(self, outcome: str, *, refused: bool = False, ends: bool = False) -> None:
        """What the pipeline has recorded needs no second record; but for the end of what goes on."""
        if (self._asked and not ends) or (self._quiet and not refused):
            return
        who = UNKNOWN if self.who is None else self.who.id
        self._server.note(who, str(self._route.stands_for or "http"), outcome, **self._facts())

    def _facts(self) -> dict[str, str]:
        told = {"uri": str(self._route.what)}
        return told if self.who is not None or not self._address else {**told, "from": self._address}


async def _close(pieces: AsyncGenerator[bytes, None]) -> None:
    try:
        await pieces.aclose()
    except Exception as fault:
        incident(fault)


async def _called(route: Route, request: RouteRequest) -> Any:
    return await route.handle(request)


def _checked(answer: Any) -> RouteAnswer:
    """Raises what is an incident for an answer that no client should see."""
    if not isinstance(answer, RouteAnswer):
        raise TypeError("a route gives a RouteAnswer")
    if not (_WORDS.match(answer.media_type) and _WORDS.match(answer.cache) and 200 <= answer.status < 600):
        raise ValueError("an answer has a status, a media type and who may keep it")
    return answer


def _query(raw: bytes) -> Mapping[str, str]:
    """Raises InvalidParams for what can be read in two ways."""
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(raw),
            errors="strict",
            max_num_fields=FIELDS,
        )
    except ValueError:
        raise InvalidParams("The query cannot be read: NAME=VALUE, joined by &, in UTF-8") from None
    query = dict(pairs)
    if len(query) < len(pairs):
        raise InvalidParams("The query has a name twice")
    return query


def _headers(told: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for raw, value in told:
        name, text = raw.decode("latin-1"), value.decode("latin-1")
        if name not in _SECRET:
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers


def _body(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8")
