"""From what a client asked to a Call of the pipeline, and from the reply to a result of the protocol.

Both the SDK's handlers and the hot lane come through here, so a request means the same on both ways.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from octavo.core.arguments import (
    NOTHING,
    PLAIN,
    AnswerArguments,
    Arguments,
    CompleteArguments,
    ListArguments,
    OwnArguments,
    TaskArguments,
    WatchArguments,
)
from octavo.core.errors import InternalError, InvalidParams, OctavoError
from octavo.core.glob import Glob
from octavo.core.house import House, Works
from octavo.core.memo import Memo
from octavo.core.model import EVERYTHING, Call, Content, Entry, Op, Page, Principal, Template, Trail
from octavo.core.operations import METHODS
from octavo.core.ports import Channel, Reply
from octavo.core.ref import Ref
from octavo.core.shelf import most_entries
from octavo.core.skill import Skill
from octavo.core.surface import PromptResult, ToolResult, unknown_prompt, unknown_task, unknown_tool
from octavo.transport.mcp import keys, shapes
from octavo.transport.mcp.codes import Codes, WireError
from octavo.transport.mcp.cursors import Cursors

if TYPE_CHECKING:
    from octavo.core.asking import Answer

logger = logging.getLogger(__name__)

MEMO_SIZE = 20_000  # addresses kept parsed
MEMO_CHARACTERS = 256  # of an address worth keeping: longer ones are rare, and would fill the memory
MEMO_NAMES = 1000  # of tools and prompts
NOWHERE = Ref("invalid")  # stands in a call whose address could not be parsed; `fault` says why

# What becomes a call of the pipeline, unless something is wrong with it.
CALLING = frozenset(METHODS)

_EVERYWHERE = str(EVERYTHING)


class Account:
    """What became of one request on its way to its audit record."""

    __slots__ = ("begun", "trail")

    def __init__(self) -> None:
        self.trail: Trail | None = None  # of the call that was made of it
        self.begun: object = None  # what was announced for one that never becomes a call

    @property
    def kept(self) -> bool | None:
        """Of a request that changed something: whether its outcome is stored. None: it changed nothing."""
        return None if self.trail is None or not self.trail.changed else self.trail.kept


# The account of the request at hand.
_account: ContextVar[Account] = ContextVar("account")


@contextmanager
def accounting() -> Iterator[Account]:
    """Around one request."""
    account = Account()
    token = _account.set(account)
    try:
        yield account
    finally:
        _account.reset(token)


def announced(begun: object) -> None:
    """The request at hand is about to change something, and that is on record."""
    _account.get(Account()).begun = begun


def incident(fault: BaseException) -> InternalError:
    """For the client a number; the cause stands in the log under it."""
    number = secrets.token_hex(6)
    logger.error("Incident %s", number, exc_info=fault)
    return InternalError("Internal error", incident=number)


def _named(op: Op, scope: Ref, arguments: Arguments) -> str:
    """The listing to which a cursor belongs, and to no other."""
    wanted = arguments.filter if isinstance(arguments, ListArguments) else NOTHING
    return json.dumps([op, str(scope), sorted(wanted.items(), key=str)])


@lru_cache(MEMO_NAMES)
def _ref(scheme: str, name: str) -> Ref:
    return Ref.of(scheme, (name,))


class Calls:
    def __init__(self, house: House, *, strict_codes: bool) -> None:
        self.house = house
        self.codes = Codes(strict=strict_codes)
        self._cursors = Cursors(house.key("cursor"))
        self._parsed: Memo[str, tuple[Ref, OctavoError | None]] = Memo(MEMO_SIZE)

    @property
    def works(self) -> Works:
        return self.house.works

    def parse(self, uri: str) -> tuple[Ref, OctavoError | None]:
        """The address, or what is wrong with it. Good ones are remembered."""
        known = self._parsed.get(uri) or self._parsed.again(uri)
        if known is not None:
            return known
        try:
            parsed = (Ref.parse(uri), None)
        except OctavoError as fault:
            return NOWHERE, fault
        return self._parsed.keep(uri, parsed) if len(uri) <= MEMO_CHARACTERS else parsed

    async def ask(self, call: Call) -> Reply:
        """Into the pipeline. From here on the request has its audit record."""
        _account.get(Account()).trail = call.trail
        return await self.house.works.ask(call)

    # -- resources

    def read(self, who: Principal, uri: str, channel: Channel | None = None, moment: int = 0) -> Call:
        ref, fault = self.parse(uri)
        limits = self.house.works.limits
        return Call(
            "read", ref, who, Trail(), uri, PLAIN, None, limits.page, limits.max_bytes, limits.timeout, None, channel,
            fault, moment,
        )  # fmt: skip

    def list_resources(
        self, who: Principal, cursor: str | None, wanted: Mapping[str, Any] | None = None, *, moment: int = 0
    ) -> Call:
        asked = dict(wanted or {})
        under = asked.pop("under", None)
        scope, fault = EVERYTHING, None
        if under is not None:
            scope, fault = (
                self.parse(under)
                if isinstance(under, str)
                else (NOWHERE, InvalidParams("`under` must be the URI of a folder or of a source"))
            )
            if scope.scheme in ("tool", "prompt"):
                scope, fault = (
                    NOWHERE,
                    InvalidParams("Tools and prompts have lists of their own: use tools/list and prompts/list"),
                )
        if not wanted:
            return self._listing(who, scope, cursor, moment=moment)
        arguments = ListArguments(filter=asked) if asked else PLAIN
        call = self._listing(who, scope, cursor, arguments=arguments, fault=fault)
        return call if fault is None else call._replace(uri=str(under)[:200])

    def list_templates(self, who: Principal, cursor: str | None) -> Call:
        fault = None if cursor is None else InvalidParams("This list has one page only", reason="invalid_cursor")
        return Call("templates", EVERYTHING, who, Trail(), "templates", fault=fault)

    def list_tools(self, who: Principal, cursor: str | None) -> Call:
        return self._listing(who, Ref("tool"), cursor)

    def list_prompts(self, who: Principal, cursor: str | None) -> Call:
        return self._listing(who, Ref("prompt"), cursor)

    def list_skills(self, who: Principal, cursor: str | None) -> Call:
        return self._listing(who, EVERYTHING, cursor, op="skills")

    def get_skill(self, who: Principal, uri: str) -> Call:
        ref, fault = self.parse(uri)
        limits = self.house.works.limits
        return Call("skills", ref, who, Trail(), uri, max_bytes=limits.max_bytes, timeout=limits.timeout, fault=fault)

    def read_directory(self, who: Principal, uri: str, cursor: str | None) -> Call:
        ref, fault = self.parse(uri)
        return self._listing(who, ref, cursor, op="directory", fault=fault)._replace(uri=uri)

    def _listing(
        self,
        who: Principal,
        scope: Ref,
        cursor: str | None,
        *,
        op: Op = "list",
        arguments: Arguments = PLAIN,
        fault: OctavoError | None = None,
        moment: int = 0,
    ) -> Call:
        works = self.house.works
        inner: str | None = None
        if cursor is not None and fault is None:
            try:
                named = _named(op, scope, arguments)
                inner = self._cursors.open(cursor, scope=named, epoch=works.policy.epoch, principal=who)
            except InvalidParams as bad:
                fault = bad
        limits = works.limits
        uri = _EVERYWHERE if scope is EVERYTHING else str(scope)
        return Call(
            op, scope, who, Trail(), uri, arguments, inner,
            most_entries(scope, limits.page), limits.max_bytes, limits.timeout, None, None, fault, moment,
        )  # fmt: skip

    def next_cursor(self, call: Call, page: Page[Any]) -> str | None:
        if page.cursor is None:
            return None
        # One page of a source can stand in several listings, each with a cursor of its own.
        named, epoch = _named(call.op, call.ref, call.arguments), self.house.works.policy.epoch
        key = ("next", page.cursor, named, epoch, call.principal)
        sealed: str | None = page.memo.get(key)
        if sealed is None:
            sealed = self._cursors.seal(page.cursor, scope=named, epoch=epoch, principal=call.principal)
            page.memo[key] = sealed
        return sealed

    def page(self, call: Call, page: Page[Entry]) -> dict[str, Any]:
        """The result of a listing; which one is seen from the scope."""
        works = self.house.works
        if call.ref.scheme == "tool":
            infos = (works.tools.tool(entry.ref.name) for entry in page.items)
            result: dict[str, Any] = {"tools": [shapes.tool(info) for info in infos if info is not None]}
        elif call.ref.scheme == "prompt":
            found = (works.prompt_info(entry.ref.name, call.principal) for entry in page.items)
            result = {"prompts": [shapes.prompt(info) for info in found if info is not None]}
        else:
            result = {"resources": [shapes.resource(entry) for entry in page.items]}
        following = self.next_cursor(call, page)
        if following is not None:
            result["nextCursor"] = following
        if page.unavailable:
            result["_meta"] = {keys.UNAVAILABLE: list(page.unavailable)}
        return result

    def directory(self, call: Call, page: Page[Entry]) -> dict[str, Any]:
        return self._paged(call, page, {"resources": [shapes.resource(entry) for entry in page.items]})

    def skills(self, call: Call, page: Page[Skill]) -> dict[str, Any]:
        return self._paged(call, page, {"skills": [shapes.skill(one) for one in page.items]})

    def _paged(self, call: Call, page: Page[Any], result: dict[str, Any]) -> dict[str, Any]:
        following = self.next_cursor(call, page)
        return result if following is None else {**result, "nextCursor": following}

    def templates(self, offered: Sequence[Template]) -> dict[str, Any]:
        return {"resourceTemplates": [shapes.template(one) for one in offered]}

    def contents(self, call: Call, content: Content) -> dict[str, Any]:
        return {"contents": [shapes.contents(content, answered(call))]}

    def watch(self, who: Principal, pattern: str) -> Call:
        """For a subscription: an address, or a pattern over many."""
        if "*" in pattern or pattern.endswith("/"):
            try:
                glob = Glob(pattern)
                ref, fault = glob.literal, _without_query(glob)
            except OctavoError as bad:
                ref, fault, glob = NOWHERE, bad, Glob.at(NOWHERE)
        else:
            ref, fault = self.parse(pattern)
            glob = Glob.at(ref)
        return Call("watch", ref, who, Trail(), pattern, WatchArguments(glob), fault=fault)

    def complete_template(
        self, who: Principal, template: str, argument: str, prefix: str, given: Mapping[str, str]
    ) -> Call:
        scheme, separator, _ = template.partition("://")
        fault = None if separator else InvalidParams("Not a resource template: expected scheme://path")
        asked = CompleteArguments(argument=argument, prefix=prefix, given=given, template=template)
        return Call("complete", Ref(scheme.lower()), who, Trail(), template, asked, fault=fault)

    def complete_prompt(self, who: Principal, name: str, argument: str, prefix: str, given: Mapping[str, str]) -> Call:
        asked = CompleteArguments(argument=argument, prefix=prefix, given=given)
        return self._named("complete", "prompt", name, who, asked, None)

    def invoke(self, who: Principal, name: str, arguments: Mapping[str, Any], channel: Channel | None) -> Call:
        return self._named("invoke", "tool", name, who, OwnArguments(arguments), channel)

    async def task(
        self,
        op: Literal["poll", "answer", "cancel"],
        who: Principal,
        task_id: str,
        fault: OctavoError | None,
        answers: Mapping[str, Answer] = NOTHING,
    ) -> Call:
        """At the address of its tool: whoever may no longer call that may ask for no result of it either."""
        found = None if fault is not None else await self.house.tasks.find(who.id, task_id)
        if found is None:
            return Call(op, NOWHERE, who, Trail(), "task://unknown", fault=fault or unknown_task(task_id))
        uri = f"tool://{found.tool}"
        asked = AnswerArguments(task_id, answers) if op == "answer" else TaskArguments(task_id)
        return Call(op, Ref.of("tool", (found.tool,)), who, Trail(), uri, asked)

    def render(self, who: Principal, name: str, arguments: Mapping[str, Any], channel: Channel | None) -> Call:
        return self._named("render", "prompt", name, who, OwnArguments(arguments), channel)

    def _named(
        self, op: Op, scheme: str, name: str, who: Principal, arguments: Arguments, channel: Channel | None
    ) -> Call:
        try:
            ref, fault = _ref(scheme, name), None
        except OctavoError:
            ref, fault = NOWHERE, (unknown_tool if scheme == "tool" else unknown_prompt)(name[:80])
        return Call(op, ref, who, Trail(), f"{scheme}://{name[:200]}", arguments, channel=channel, fault=fault)

    # -- tools and prompts

    def tool_result(self, name: str, result: ToolResult) -> dict[str, Any]:
        """A tool that tells of its failure in words of its own has the same object beside them as every error."""
        shape: dict[str, Any] = {
            "content": [shapes.block(part) for part in result.content],
            "isError": result.is_error,
        }
        if result.structured is not None:
            shape["structuredContent"] = dict(result.structured)
        if result.is_error:
            failed = InternalError(f"The tool {name} failed; its content says why", reason="tool_failed")
            shape["_meta"] = {keys.ERROR: self.codes.encode(failed, modern=True).of_tool(name)}
        return shape

    def tool_error(self, name: str, error: WireError) -> dict[str, Any]:
        """What the model sees when a call failed: enough to correct itself."""
        body = error.of_tool(name)
        shape: dict[str, Any] = {
            "content": [{"type": "text", "text": json.dumps(body, ensure_ascii=False)}],
            "isError": True,
            "_meta": {keys.ERROR: body},
        }
        info = self.house.works.tools.tool(name)
        if info is None or info.output_schema is None:
            # Clients validate structured content against the output schema even for errors.
            shape["structuredContent"] = {"error": body}
        return shape

    def prompt_result(self, result: PromptResult) -> dict[str, Any]:
        shape: dict[str, Any] = {"messages": [shapes.message(said) for said in result.messages]}
        if result.description is not None:
            shape["description"] = result.description
        if result.locale:
            shape["_meta"] = {keys.LOCALE: result.locale}
        return shape


def answered(call: Call) -> str:
    """The address in an answer: that of the name where an id was asked for, else as the caller wrote it."""
    named = call.trail.ref
    return call.uri if named is None or call.ref.absolute else str(named)


def _without_query(glob: Glob) -> OctavoError | None:
    if not glob.asks:
        return None
    return InvalidParams("A pattern is about paths and has no query; a question mark in a name is written %3F")
