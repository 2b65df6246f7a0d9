"""The lane: common requests answered through the same folds without the SDK.

Rules that keep it honest:

- Before the pipeline is entered the lane may only decline: the untouched bytes then go to the SDK. After
  it has entered it must answer, or the call would be counted and recorded twice.
- One struct is the guard. Whatever it does not know (other members, null ids, retries with state) is
  declined.
- `_meta` is compared, never parsed: bytes that the SDK has accepted before are known, all others declined.
- It owns decoding, its memo and encoding, nothing else. Errors come from the pipeline and are numbered by
  the table that the SDK path uses too.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from types import CoroutineType
from typing import Any, Literal

import msgspec

from octavo.core.errors import OctavoError, ProtocolError
from octavo.core.memo import Bounded
from octavo.core.operations import FOREIGN, METHODS, VERB_OF
from octavo.core.ports.chain import Reply, several
from octavo.core.ports.server import Composition
from octavo.core.ref import Ref
from octavo.core.tools import PromptResult, ToolResult, is_unknown_tool
from octavo.core.values import Call, Content, Op, Page, Principal, Template
from octavo.transport.mcp import frames, shapes, wire_names
from octavo.transport.mcp.calls import Calls, incident
from octavo.transport.mcp.eager import begin, start

KNOWN_META = 256  # envelopes remembered; the oldest makes room
KNOWN_OF_ONE = 32  # of one principal: more push out its own
SEEN = 4096  # frames remembered but for their id
MAX_SEEN = 1024  # bytes of one worth remembering
COPIED = 8192  # bytes of a content up to which a copy is cheaper than another piece
MAX_META = 4096  # bytes of an envelope worth remembering
_ENVELOPE = {wire_names.PROTOCOL_VERSION, wire_names.CLIENT_CAPABILITIES, wire_names.CLIENT_INFO}

_encode = msgspec.json.Encoder().encode
_NO_RAW = msgspec.Raw(b"")
# A request that has one text beside its id, both empty.
_SHORTEST = {
    method: len(b'{"jsonrpc":"2.0","id":,"method":"%b","params":{"%b":""}}' % (method.encode(), member))
    for method, member in (("resources/read", b"uri"), ("resources/list", b"cursor"))
}
_REPEATABLE = frozenset(_SHORTEST)  # their calls hold nothing that a tool could change
_SCHEMES: Mapping[Op, str] = {"invoke": "tool", "render": "prompt"}
_META = len(',"_meta":')
_OPENING, _METHOD = b'{"jsonrpc":"2.0","id":', b',"method":'
_ID_AT, _DIGITS, _ZERO = len(_OPENING), 18, ord("0")
_RESULT = b',"result":{'
_LEAST, _MOST = -frames.MAX_INTEGER, frames.MAX_INTEGER


class _FrameParams(msgspec.Struct, forbid_unknown_fields=True):
    uri: str | None = None
    cursor: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = _NO_RAW
    meta: msgspec.Raw = msgspec.field(default=_NO_RAW, name="_meta")


class _Frame(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: str
    params: _FrameParams | None = None


_NO_PARAMS = _FrameParams()


class _Declined(Exception):
    """The lane leaves this request to the SDK; the argument is the reason, for the counters."""


class _Asked:
    """What a frame asks for, whoever asks and whatever its id is. What follows from it alone is found out once."""

    __slots__ = ("call", "contents", "method", "modern", "params", "tail")

    def __init__(self, method: str, params: _FrameParams, modern: bool, tail: bytes) -> None:
        self.method, self.params, self.modern = method, params, modern
        self.tail = tail  # what ends the result
        self.contents = b"" if params.uri is None else b',"result":{"contents":[{"uri":' + _encode(params.uri)
        self.call: Call | None = None  # what it asked for last, where asking again is the same

    def at(self, uri: str) -> _Asked:
        """The same for another address."""
        return _Asked(self.method, _FrameParams(uri=uri), self.modern, self.tail)


class Taken(msgspec.Struct, frozen=True, gc=False):
    """A request that the lane will answer."""

    spelled: bytes  # its id, as the answer repeats it
    asked: _Asked
    call: Call

    @property
    def id(self) -> int | str:
        value: int | str = json.loads(self.spelled)
        return value

    @property
    def method(self) -> str:
        return self.asked.method


class EncodedAnswer(msgspec.Struct, frozen=True, gc=False):
    pieces: tuple[bytes, ...]  # of the frame: what is large and encoded already is not copied once more
    id: bytes | None  # of the request, as JSON; None for what answers none
    code: int | None = None  # of an error; None for a result
    # Of a request that changed something (and so none of the lane's): whether its outcome is stored, so that nothing
    # holds the answer back. None: it changed nothing.
    kept: bool | None = None


Answered = Callable[[EncodedAnswer], None]


class Lane:
    def __init__(self, calls: Calls, *, server_info: Mapping[str, Any], on: bool, end: bytes = b"") -> None:
        """`end` closes every frame: on stdio the line end, which costs nothing here and a copy later."""
        self._calls, self._end = calls, end
        self.codes = calls.codes
        self._on = on
        self._decode = msgspec.json.Decoder(_Frame).decode
        self._envelopes: Bounded[bytes, str] = Bounded(KNOWN_META)  # and who brought each
        self._seen: tuple[Bounded[bytes, _Asked], ...] = (Bounded(SEEN), Bounded(SEEN))  # by era
        self._composition: Composition | None = None  # of which the known frames asked
        calls.server.on_swap(self._forget)
        self.hits = 0
        self.declined: Counter[str] = Counter()
        self._server_info = {wire_names.SERVER_INFO: server_info}
        # What a modern result has beside its payload, by method; and the same encoded, to follow the payload.
        self._rests = {
            "resources/read": self._rest(0),
            "resources/list": self._rest(0),
            "resources/templates/list": self._rest(60_000),
            "tools/list": self._rest(60_000),
            "prompts/list": self._rest(60_000),
            "tools/call": self._rest(None),
            "prompts/get": self._rest(None),
        }
        self._tails = {method: b"," + _encode(rest)[1:] + b"}" + end for method, rest in self._rests.items()}
        self._plain_tail = b"}}" + end

    def take(self, frame: bytes, who: Principal, modern: bool, moment: int) -> Taken | None:
        """All protocol checks. None declines: somebody else must answer. `moment`: see `Call`; 0 where it has none."""
        if not self._on:
            return None
        digits, rest = _split(frame)
        asked = self._seen[modern].get(rest)
        if asked is not None:
            call = asked.call
            if call is not None and call.principal is who and self._composition is self._calls.server.works:
                return Taken(digits, asked, call.again(moment))
            return self._known(asked, digits, who, moment)
        try:
            request = self._decode(frame)
            params = request.params or _NO_PARAMS
            meta = bytes(params.meta)
            if meta not in self._envelopes if modern else meta:
                raise _Declined("meta")
            if not (_is_shortest(frame, request, params, meta) or _within_bounds(frame, request, params, meta)):
                raise _Declined("bounds")
            call = self._call(request.method, params, who, moment)
            asked = _Asked(request.method, params, modern, self._tails[request.method] if modern else self._plain_tail)
            if rest:
                self._seen[modern].keep(rest, asked)
            return Taken(spelled(request.id), asked, call)
        except _Declined as why:
            self.declined[why.args[0]] += 1
        except (ValueError, RecursionError):
            self.declined["shape"] += 1
        return None

    def _known(self, asked: _Asked, digits: bytes, who: Principal, moment: int) -> Taken | None:
        """What a known frame asks for, of these works and for this caller."""
        try:
            call = self._call(asked.method, asked.params, who, moment)
        except _Declined as why:
            self.declined[why.args[0]] += 1
            return None
        if call.fault is None and asked.method in _REPEATABLE:
            composition = self._calls.server.works
            if self._composition is not composition:
                self._forget()
                self._composition = composition
            asked.call = call
        return Taken(digits, asked, call)

    def _forget(self) -> None:
        """Nothing that was asked of works that no longer stand is asked again, nor kept alive by it."""
        self._composition = None
        for asked in (one for seen in self._seen for one in seen.values()):
            asked.call = None

    def knows(self, meta: bytes) -> bool:
        """Whether the SDK has accepted this envelope before."""
        return self._on and meta in self._envelopes

    def envelope(self, frame: bytes) -> bytes | None:
        """The bytes of `_meta` that may be learnt from this frame, once the SDK has accepted it."""
        if not self._on:
            return None
        try:
            request = self._decode(frame)
        except (ValueError, RecursionError):
            return None
        meta = b"" if request.params is None else bytes(request.params.meta)
        return meta if self.fits(meta) else None

    def fits(self, meta: bytes) -> bool:
        """Whether it may be learnt, and is not known yet."""
        if not self._on or not 0 < len(meta) <= MAX_META or meta in self._envelopes:
            return False
        try:
            said: Any = msgspec.json.decode(meta)
        except (ValueError, RecursionError):
            return False
        return isinstance(said, dict) and set(said) <= _ENVELOPE

    def learn(self, meta: bytes, who: Principal) -> None:
        own = [known for known, whose in self._envelopes.items() if whose == who.id]
        if len(own) >= KNOWN_OF_ONE:
            del self._envelopes[own[0]]
        self._envelopes.keep(meta, who.id)

    def run(self, taken: Taken, answered: Answered) -> asyncio.Task[Reply] | None:
        """Answers at once and gives None, or gives the task that will answer.

        A task that somebody cancelled never answers.
        """
        self.hits += 1
        try:
            reply = self._calls.server.works.begin(taken.call)
            task = None
            if type(reply) is CoroutineType:
                reply, task = (begin if taken.call.op in FOREIGN else start)(reply)
        except (Exception, asyncio.CancelledError) as error:  # whatever comes out of the pipeline is the answer
            answered(self._error(taken, error))
            return None
        if task is None:
            answered(self._answer(taken, reply))
            return None
        task.add_done_callback(lambda done: self._conclude(taken, done, answered))
        return task

    def _conclude(self, taken: Taken, task: asyncio.Task[Reply], answered: Answered) -> None:
        if task.cancelled():
            if not task.cancelling():  # nobody asked for it: something inside was cancelled
                answered(self._error(taken, asyncio.CancelledError()))
            return
        error = task.exception()
        answered(self._answer(taken, task.result()) if error is None else self._error(taken, error))

    def _call(self, method: str, params: _FrameParams, who: Principal, moment: int) -> Call:
        calls, uri, cursor, name = self._calls, params.uri, params.cursor, params.name
        arguments = params.arguments is not _NO_RAW
        if method == "resources/read":
            if uri is None or cursor is not None or name is not None or arguments:
                raise _Declined("params")
            return calls.build.read(who, uri, moment=moment)
        if method in ("tools/call", "prompts/get"):
            if name is None or uri is not None or cursor is not None:
                raise _Declined("params")
            return self._named(method, name, params.arguments, who)
        if uri is not None or name is not None or arguments:
            raise _Declined("params")
        match method:
            case "resources/list":
                return calls.list_resources(who, cursor, moment=moment)
            case "resources/templates/list":
                return calls.build.templates(who, cursor)
            case "tools/list":
                return calls.list_tools(who, cursor)
            case "prompts/list":
                return calls.list_prompts(who, cursor)
            case _:
                raise _Declined("method")

    def _named(self, method: str, name: str, raw: msgspec.Raw, who: Principal) -> Call:
        composition = self._calls.works
        info = composition.tools.tool(name) if method == "tools/call" else composition.prompts.prompt(name)
        if info is None or not info.lane_safe:
            raise _Declined("tool")
        op = METHODS[method]
        if composition.policy.hides(who, VERB_OF[op], Ref(_SCHEMES[op], (name,))):
            raise _Declined("tool")  # it goes the way of a name that nobody knows
        if method == "tools/call" and composition.tools.header_schema(name) is not None:
            raise _Declined("tool")  # takes arguments from headers too, which the SDK compares
        arguments: Any = {}
        if raw is not _NO_RAW:
            try:
                arguments = frames.check_value(bytes(raw), around=2)
            except frames.Malformed:
                raise _Declined("params") from None
            if not isinstance(arguments, dict):
                raise _Declined("params")
            if method == "prompts/get" and not all(isinstance(value, str) for value in arguments.values()):
                raise _Declined("params")
        if method == "tools/call":
            call = self._calls.build.invoke(who, name, arguments, None)
            if composition.policy.asks(who, call.ref):
                raise _Declined("tool")  # a human is asked first, by means that the lane does not have
            return call
        return self._calls.build.render(who, name, arguments, None)

    # -- encoding

    def _answer(self, taken: Taken, reply: Reply) -> EncodedAnswer:
        spelled, asked = taken.spelled, taken.asked
        if type(reply) is Content and taken.call.trail.ref is not None and not taken.call.ref.absolute:
            asked = asked.at(str(taken.call.trail.ref))
        if type(reply) is Content and (fragment := reply.memo.get("wire")) is not None:  # as most are
            if len(fragment) > COPIED:
                return EncodedAnswer((b"".join((_OPENING, spelled, asked.contents)), fragment, asked.tail), spelled)
            return EncodedAnswer((b"".join((_OPENING, spelled, asked.contents, fragment, asked.tail)),), spelled)
        try:
            pieces = self._result(taken, asked, reply)
        except Exception as error:  # a reply that is no JSON: half a surrogate pair, an object of a plugin's
            return self._error(taken, error)
        return EncodedAnswer((_OPENING + spelled, *pieces), spelled)

    def _result(self, taken: Taken, asked: _Asked, reply: Reply) -> tuple[bytes, ...]:
        """All that follows the id, in pieces. Contents and pages are encoded once."""
        if isinstance(reply, Content):
            shape = shapes.contents(reply, "")
            del shape["uri"]
            fragment = reply.memo["wire"] = b"," + _encode(shape)[1:] + b"]"
            return asked.contents, fragment, asked.tail
        if isinstance(reply, Page):
            if reply.unavailable:
                return _RESULT, self._whole(taken, self._calls.page(taken.call, reply))
            return self._page(taken, reply, asked.tail)
        if isinstance(reply, ToolResult):
            return _RESULT, self._whole(taken, self._calls.tool_result(taken.call.ref.path, reply))
        if isinstance(reply, PromptResult):
            return _RESULT, self._whole(taken, self._calls.prompt_result(reply))
        return _RESULT, self._whole(taken, self._calls.templates(several(reply, Template)))

    def _page(self, taken: Taken, page: Page[Any], tail: bytes) -> tuple[bytes, ...]:
        """The entries are the same for everybody who sees all of a page and from whom the same is hidden; the cursor is
        one caller's."""
        memo, method, who = page.memo, taken.asked.method, taken.call.principal
        known: tuple[bytes, bytes] | None = memo.get((method, who))
        if known is None:
            result = self._calls.page(taken.call, page)
            following = result.pop("nextCursor", None)
            rest = b"" if following is None else b',"nextCursor":' + _encode(following)
            shared = (method, self._calls.works.sees_as(who))
            known = memo[method, who] = memo.setdefault(shared, _RESULT + _encode(result)[1:-1]), rest
        return *known, tail

    def _whole(self, taken: Taken, shape: dict[str, Any]) -> bytes:
        if taken.asked.modern:
            shape = {**shape, **self._rests[taken.method], "_meta": {**shape.get("_meta", {}), **self._server_info}}
        return _encode(shape)[1:] + b"}" + self._end

    def _error(self, taken: Taken, error: BaseException) -> EncodedAnswer:
        if not isinstance(error, OctavoError):
            error = incident(error)
        wire = self._calls.codes.encode(error, modern=taken.asked.modern)
        name = taken.call.ref.name
        if taken.method == "tools/call" and not isinstance(error, ProtocolError) and not is_unknown_tool(error, name):
            result = self._whole(taken, self._calls.tool_error(name, wire))
            return EncodedAnswer((_OPENING, taken.spelled, _RESULT, result), taken.spelled)
        fault = _encode({"code": wire.code, "message": wire.message, "data": wire.data})
        return EncodedAnswer((_OPENING, taken.spelled, b',"error":', fault, b"}", self._end), taken.spelled, wire.code)

    def _rest(self, ttl: int | None) -> dict[str, Any]:
        cached = {} if ttl is None else {"ttlMs": ttl, "cacheScope": "private"}
        return {"resultType": "complete", **cached, "_meta": self._server_info}


def _split(frame: bytes) -> tuple[bytes, bytes]:
    """The digits of the id, and all that follows the name of the member behind it, of a frame that begins as most
    clients begin it; else nothing to follow.

    Frames that are equal but for the digits of a good id mean the same, so one that was checked vouches for the
    others.
    """
    opening, _, rest = frame.partition(_METHOD)
    digits = opening[_ID_AT:]
    if not opening.startswith(_OPENING) or not digits.isdigit() or len(digits) > _DIGITS or len(rest) > MAX_SEEN:
        return b"", b""
    return (digits, rest) if digits[0] != _ZERO or len(digits) == 1 else (b"", b"")


def _is_shortest(frame: bytes, request: _Frame, params: _FrameParams, meta: bytes) -> bool:
    """Whether the frame is as short as what was read from it can be written: then there is nothing else in it.

    For the commonest requests only. What cannot be shorter has no member twice and no escape.
    """
    request_id, text = request.id, params.uri or params.cursor
    return (
        text is not None
        and type(request_id) is int
        and _LEAST < request_id < _MOST
        and len(frame)
        == _SHORTEST.get(request.method, 0) + len(text) + len(str(request_id)) + (len(meta) + _META if meta else 0)
    )


def _within_bounds(frame: bytes, request: _Frame, params: _FrameParams, meta: bytes) -> bool:
    """Whether `frames.check` would accept a frame that the struct accepted; False where that is not sure.

    Left to see to are integers of more than 64 bits and members that are there twice. The latter shows in
    the number of colons: one a member, and those inside the texts, none of them written as an escape. A method
    with a colon is none of the lane's, and so is declined here or later.
    """
    request_id = request.id
    colons = 4  # jsonrpc, id, method, params
    if isinstance(request_id, str):
        if len(request_id) > frames.MAX_NAME:
            return False
        colons += request_id.count(":")
    elif not _LEAST < request_id < _MOST:
        return False
    if params is _NO_PARAMS:
        colons = 3
    else:
        if (uri := params.uri) is not None:
            colons += 1 + uri.count(":")
        if (cursor := params.cursor) is not None:
            colons += 1 + cursor.count(":")
        if (name := params.name) is not None:
            colons += 1 + name.count(":")
        if meta:
            colons += 1 + meta.count(b":")
        if params.arguments is not _NO_RAW:
            colons += 1 + bytes(params.arguments).count(b":")
    return frame.count(b":") == colons and b"\\u003" not in frame


def spelled(request_id: int | str) -> bytes:
    """An id as JSON: also one of more bits than the encoder takes."""
    return b"%d" % request_id if isinstance(request_id, int) else _encode(request_id)
