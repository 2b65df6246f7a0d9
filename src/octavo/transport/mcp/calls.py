"""From what a client asked to a Call of the pipeline, and from the reply to a result of the protocol.

`core.calls` makes the calls; here cursors are opened and sealed, and replies become results. Both the SDK's handlers
and the hot lane come through here, so a request means the same on both ways.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

from octavo.core.arguments import (
    NOTHING,
    PLAIN,
    Arguments,
    ListArguments,
)
from octavo.core.calls import Builder
from octavo.core.errors import InternalError, InvalidParams, OctavoError
from octavo.core.operations import METHODS
from octavo.core.ports.chain import Reply
from octavo.core.ports.server import Composition, Server
from octavo.core.ref import Ref
from octavo.core.skill import Skill
from octavo.core.tools import PromptResult, ToolResult
from octavo.core.values import EVERYTHING, NOWHERE, Call, Content, Entry, Op, Page, Principal, Template, Trail
from octavo.transport.mcp import shapes, wire_names
from octavo.transport.mcp.codes import Codes, WireError
from octavo.transport.mcp.cursors import Cursors

if TYPE_CHECKING:
    from octavo.core.forms import Answer

logger = logging.getLogger(__name__)


# What becomes a call of the pipeline, unless something is wrong with it.
CALLING = frozenset(METHODS)


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


class Calls:
    def __init__(self, server: Server, *, strict_codes: bool) -> None:
        self.server = server
        self.codes = Codes(strict=strict_codes)
        self._cursors = Cursors(server.key("cursor"))

    @property
    def works(self) -> Composition:
        return self.server.works

    @property
    def build(self) -> Builder:
        return self.server.works.calls

    async def ask(self, call: Call) -> Reply:
        """Into the pipeline. From here on the request has its audit record."""
        _account.get(Account()).trail = call.trail
        return await self.server.works.ask(call)

    # -- resources

    def list_resources(
        self, who: Principal, cursor: str | None, wanted: Mapping[str, Any] | None = None, *, moment: int = 0
    ) -> Call:
        asked = dict(wanted or {})
        under = asked.pop("under", None)
        scope, fault = EVERYTHING, None
        if under is not None:
            scope, fault = (
                self.build.parse(under)
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

    def list_tools(self, who: Principal, cursor: str | None) -> Call:
        return self._listing(who, Ref("tool"), cursor)

    def list_prompts(self, who: Principal, cursor: str | None) -> Call:
        return self._listing(who, Ref("prompt"), cursor)

    def list_skills(self, who: Principal, cursor: str | None) -> Call:
        return self._listing(who, EVERYTHING, cursor, op="skills")

    def read_directory(self, who: Principal, uri: str, cursor: str | None) -> Call:
        ref, fault = self.build.parse(uri)
        return self._listing(who, ref, cursor, op="directory", uri=uri, fault=fault)

    def _listing(
        self,
        who: Principal,
        scope: Ref,
        cursor: str | None,
        *,
        op: Op = "list",
        uri: str = "",
        arguments: Arguments = PLAIN,
        fault: OctavoError | None = None,
        moment: int = 0,
    ) -> Call:
        """`cursor` is sealed: it belongs to one listing of one caller under one policy."""
        composition = self.server.works
        inner: str | None = None
        if cursor is not None and fault is None:
            try:
                named = _named(op, scope, arguments)
                inner = self._cursors.open(cursor, scope=named, epoch=composition.policy.epoch, principal=who)
            except InvalidParams as bad:
                fault = bad
        return composition.calls.listing(
            who, scope, inner, op=op, uri=uri, arguments=arguments, fault=fault, moment=moment
        )

    def next_cursor(self, call: Call, page: Page[Any]) -> str | None:
        if page.cursor is None:
            return None
        # One page of a source can stand in several listings, each with a cursor of its own.
        named, epoch = _named(call.op, call.ref, call.arguments), self.server.works.policy.epoch
        key = ("next", page.cursor, named, epoch, call.principal)
        sealed: str | None = page.memo.get(key)
        if sealed is None:
            sealed = self._cursors.seal(page.cursor, scope=named, epoch=epoch, principal=call.principal)
            page.memo[key] = sealed
        return sealed

    def page(self, call: Call, page: Page[Entry]) -> dict[str, Any]:
        """The result of a listing; which one is seen from the scope."""
        composition = self.server.works
        if call.ref.scheme == "tool":
            infos = (composition.tools.tool(entry.ref.name) for entry in page.items)
            result: dict[str, Any] = {"tools": [shapes.tool(info) for info in infos if info is not None]}
        elif call.ref.scheme == "prompt":
            found = (composition.prompt_info(entry.ref.name, call.principal) for entry in page.items)
            result = {"prompts": [shapes.prompt(info) for info in found if info is not None]}
        else:
            result = {"resources": [shapes.resource(entry) for entry in page.items]}
        following = self.next_cursor(call, page)
        if following is not None:
            result["nextCursor"] = following
        if page.unavailable:
            result["_meta"] = {wire_names.UNAVAILABLE: list(page.unavailable)}
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

    async def task(
        self,
        op: Literal["poll", "answer", "cancel"],
        who: Principal,
        task_id: str,
        fault: OctavoError | None,
        answers: Mapping[str, Answer] = NOTHING,
    ) -> Call:
        found = None if fault is not None else await self.server.tasks.find(who.id, task_id)
        tool = None if found is None else found.tool
        return self.build.task(op, who, task_id, tool, fault, answers)

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
            shape["_meta"] = {wire_names.ERROR: self.codes.encode(failed, modern=True).of_tool(name)}
        return shape

    def tool_error(self, name: str, error: WireError) -> dict[str, Any]:
        """What the model sees when a call failed: enough to correct itself."""
        body = error.of_tool(name)
        shape: dict[str, Any] = {
            "content": [{"type": "text", "text": json.dumps(body, ensure_ascii=False)}],
            "isError": True,
            "_meta": {wire_names.ERROR: body},
        }
        info = self.server.works.tools.tool(name)
        if info is None or info.output_schema is None:
            # Clients validate structured content against the output schema even for errors.
            shape["structuredContent"] = {"error": body}
        return shape

    def prompt_result(self, result: PromptResult) -> dict[str, Any]:
        shape: dict[str, Any] = {"messages": [shapes.message(said) for said in result.messages]}
        if result.description is not None:
            shape["description"] = result.description
        if result.locale:
            shape["_meta"] = {wire_names.LOCALE: result.locale}
        return shape


def answered(call: Call) -> str:
    """The address in an answer: that of the name where an id was asked for, else as the caller wrote it."""
    named = call.trail.ref
    return call.uri if named is None or call.ref.absolute else str(named)
