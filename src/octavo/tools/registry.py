"""The registry of tools: the source of `tool://` and the end of every `invoke`."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from octavo.core.arguments import OwnArguments
from octavo.core.definitions import Shelf
from octavo.core.errors import Conflict, InternalError, InvalidParams, Timeout, TooLarge
from octavo.core.foreign import own_fault, owner
from octavo.core.ports.chain import Ask, Next, Reply, settled
from octavo.core.ref import Ref
from octavo.core.rehearsal import Rehearsed
from octavo.core.seal import Seal
from octavo.core.tools import Audio, Block, Embedded, Image, Text, ToolInfo, ToolResult, unknown_tool
from octavo.core.values import Call, Principal
from octavo.tools.coercion import Coercion
from octavo.tools.context import OF_THIS_PROCESS, Deadline, Seen, ToolContext
from octavo.tools.permissions import Demand, May, demand, demands
from octavo.tools.result_cache import Results
from octavo.tools.schema import Check, compile_schema, mentions

if TYPE_CHECKING:
    from octavo.core.external import Rights
    from octavo.core.forms import Questions

T = TypeVar("T")

# A str becomes one text block, a mapping structured content with its JSON as text. Anything else but
# a ToolResult goes to the wire as it is, which only makes sense for a plugin with `protocol: true`.
Outcome: TypeAlias = ToolResult | str | Mapping[str, Any] | Any
Handler: TypeAlias = Callable[[ToolContext, Mapping[str, Any]], Awaitable[Outcome]]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")


class Tool(Struct, frozen=True):
    info: ToolInfo
    handler: Handler
    protocol: bool = False  # whether the handler may use `ctx.wire`
    max_answer: int = 0  # bytes of an answer; 0: it keeps a budget of its own
    rehearses: bool = (
        False  # whether the handler says by `ctx.begins` where its effects begin, or has child calls alone
    )


class _Registered(Struct, frozen=True):
    tool: Tool
    check_input: Check
    coercion: Coercion
    check_output: Check | None
    header_schema: Mapping[str, Any] | None
    demands: tuple[Demand, ...] = ()
    foreign: bool = False  # those of the house keep budgets of their own, and speak no raw protocol


class ToolRegistry(Shelf):
    """Tools by name. Register at start-up or later; who listens by `on_change` is told."""

    def __init__(self) -> None:
        super().__init__("tool")
        self._tools: dict[str, _Registered] = {}
        self._provided: dict[str, Callable[[], Sequence[Tool]]] = {}
        self._unlisted: dict[str, _Registered] = {}
        self._ask: Ask = _unbound
        self._canonical: Callable[[Ref], Ref] = lambda ref: ref
        self._seal = OF_THIS_PROCESS
        self._may: May = lambda who, verb, ref: True
        self._questions: Callable[[], Questions] | None = None
        self._rights: Callable[[Principal], Rights] | None = None
        self._seen: Seen | None = None
        self._results = Results()

    def bind(
        self,
        ask: Ask,
        canonical: Callable[[Ref], Ref] | None = None,
        seal: Seal = OF_THIS_PROCESS,
        may: May | None = None,
        questions: Callable[[], Questions] | None = None,
        rights: Callable[[Principal], Rights] | None = None,
        seen: Seen | None = None,
    ) -> None:
        """`ask` is the folded pipeline: what tools ask on behalf of their callers goes there. `seal` is for their
        cursors, `may` says whether a caller holds what a tool demands, `questions` is for what they ask people,
        `rights` is what a caller may open by other ways than by calls, `seen` what it may see of a text."""
        self._ask, self._seal, self._questions, self._rights, self._seen = ask, seal, questions, rights, seen
        self._canonical = canonical or self._canonical
        self._may = may or self._may

    def register(self, tool: Tool) -> None:
        """Raises Conflict for a name that is taken, InvalidParams for a definition that cannot be served."""
        info = tool.info
        if not _NAME.match(info.name) or info.name in (".", ".."):
            raise InvalidParams(f"A tool name is 1 to 128 of A-Z a-z 0-9 _ . - and not {info.name!r}")
        if info.name in self._tools:
            raise Conflict(f"Tool {info.name} already registered.", toolName=info.name)
        if not info.description.strip():
            raise InvalidParams(f"The tool {info.name} needs a description", toolName=info.name)
        if not info.timeout > 0:
            raise InvalidParams(f"The tool {info.name} needs a timeout of more than 0 seconds", toolName=info.name)
        if tool.max_answer:
            tool = replace(tool, info=replace(info, answer=tool.max_answer))
        self._tools[info.name] = _registered(tool)
        self._put(info.name, _definition(info), title=info.title, description=info.description)
        self.list_changed()

    def provide(self, names: Iterable[str], make: Callable[[], Sequence[Tool]]) -> None:
        """Tools that can be called and are not listed. They are made when one of them is first asked for."""
        self._provided.update(dict.fromkeys(names, make))

    def keep_only(self, names: Sequence[str]) -> None:
        """Leaves out all others. Raises InvalidParams for a name that nothing has."""
        for name in names:
            if self._named(name) is None:
                from difflib import get_close_matches  # here: it is for who mistyped

                near = get_close_matches(name, [*self._tools, *self._provided], 1)
                hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(self.names)}"
                raise InvalidParams(f"There is no tool {name}; {hint}", toolName=name)
        for name in self.names:
            if name not in names:
                del self._tools[name]
                self._drop(name)
        for kept in (self._provided, self._unlisted):
            for name in [name for name in kept if name not in names]:
                del kept[name]
        self.list_changed()

    def tool(self, name: str) -> ToolInfo | None:
        registered = self._named(name)
        return None if registered is None else registered.tool.info

    @property
    def long(self) -> bool:
        return any(one.tool.info.task != "never" for one in self._tools.values())

    def header_schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool that mirrors arguments into headers (`x-mcp-header`), else None.

        It is asked before anybody is identified, so it tells nothing of other tools.
        """
        registered = self._named(name)
        return None if registered is None else registered.header_schema

    def meant(self, call: Call) -> Call:
        registered = self._named(call.ref.path)
        if registered is None or (meant := registered.coercion.meant(call.values)) is call.values:
            return call
        return call._replace(arguments=OwnArguments(meant))

    async def invoke(self, call: Call) -> ToolResult | Any:
        """Runs the tool that `call.ref` names.

        Raises InvalidParams for an unknown tool (data `toolName`) and for wrong arguments (data
        `toolName`, `validationErrors`), Forbidden where the caller lacks a permission, Timeout after the
        tool's own limit, InternalError when the answer breaks the tool's output schema. What the handler
        raises passes through.
        """
        arguments = dict(call.values)
        registered = self._fitting(call, arguments)
        info = registered.tool.info
        if info.cache and info.hints.read_only:
            return await self._results.answer(
                call, info.cache, self._ask, lambda ask: self._run(registered, call, arguments, ask)
            )
        return await self._run(registered, call, arguments, self._ask)

    async def rehearse(self, call: Call, look: Next) -> None:
        registered = self._fitting(call, arguments := dict(call.values))
        if not registered.tool.rehearses:
            return

        async def ask(child: Call) -> Reply:
            return await settled(look(child))

        context = self._context(registered.tool, call, ask, Deadline(registered.tool.info.timeout), rehearsal=True)
        try:
            await registered.tool.handler(context, arguments)
        except Rehearsed:
            pass

    async def _run(
        self, registered: _Registered, call: Call, arguments: Mapping[str, Any], ask: Ask
    ) -> ToolResult | Any:
        tool = registered.tool
        if registered.foreign:
            ask = _of_the_house(ask)
        deadline = Deadline(tool.info.timeout)
        context = self._context(tool, call, ask, deadline)
        try:
            work = tool.handler(context, arguments)
            if registered.foreign:
                work = _owned(f"tool {tool.info.name}", work)
            outcome = await (work if tool.info.lane_safe else _within(tool.info, deadline, work))
        except BaseException as end:  # of the tool, and never of the server: a loop that sees one ends
            fault = own_fault(end, "the tool")
            if fault is end:
                raise
            raise fault from fault.__cause__
        return _checked(registered, _as_result(outcome))

    def _context(self, tool: Tool, call: Call, ask: Ask, deadline: Deadline, *, rehearsal: bool = False) -> ToolContext:
        return ToolContext(
            call,
            ask,
            protocol=tool.protocol,
            canonical=self._canonical,
            seal=self._seal,
            deadline=deadline,
            questions=self._questions,
            may=self._may,
            rights=self._rights,
            seen=self._seen,
            read_only=tool.info.hints.read_only,
            rehearsal=rehearsal,
        )

    def _fitting(self, call: Call, arguments: dict[str, Any]) -> _Registered:
        name = call.ref.path
        registered = self._named(name)
        if registered is None:
            raise unknown_tool(name)
        if registered.demands:
            demand(self._may, call.principal, registered.demands, name)
        problems = registered.check_input(arguments) or registered.coercion.inexact(arguments)
        if problems:
            raise InvalidParams(
                f"Invalid parameters for tool {name}: {_sentence(problems)}", toolName=name, validationErrors=problems
            )
        return registered

    def _named(self, name: str) -> _Registered | None:
        found = self._tools.get(name) or self._unlisted.get(name)
        if found is None and name in self._provided:
            made = (tool for tool in self._provided[name]() if tool.info.name in self._provided)
            self._unlisted.update({tool.info.name: _registered(tool) for tool in made})
            found = self._unlisted.get(name)
        return found


_json = json.JSONEncoder(ensure_ascii=False).encode


def _registered(tool: Tool) -> _Registered:
    info = tool.info
    return _Registered(
        tool,
        _compiled(info, "input", info.input_schema),
        Coercion(info.input_schema),
        None if info.output_schema is None else _compiled(info, "output", info.output_schema),
        info.input_schema if mentions(info.input_schema, "x-mcp-header") else None,
        demands(info.permissions) if info.permissions else (),
        tool.protocol or tool.max_answer > 0,
    )


async def _owned(name: str, work: Awaitable[T]) -> T:
    """Threads that it asks for meanwhile are counted as its own."""
    before = owner.get()
    owner.set(name)
    try:
        return await work
    finally:
        owner.set(before)


def tool_in(frame: FrameType) -> str | None:
    """`tool NAME` of a frame that waits for a tool of an author's, "" of one that waits for what such a tool asks of
    the house, and None of all others."""
    return str(frame.f_locals["name"]) if frame.f_code is _owned.__code__ else None


def _of_the_house(ask: Ask) -> Ask:
    """What it asks the house for is no work of its own."""

    def asked(call: Call) -> Awaitable[Reply]:
        return _owned("", ask(call))

    return asked


async def _within(info: ToolInfo, deadline: Deadline, work: Awaitable[Outcome]) -> Outcome:
    # Not for tools of the hot lane: it runs them without a task, and what they do is child calls,
    # each of which has a deadline of its own.
    try:
        async with deadline.kept():
            return await work
    except TimeoutError:
        if not deadline.passed:
            raise
        raise Timeout(f"The tool {info.name} did not end within {info.timeout:g} s", toolName=info.name) from None


def _as_result(outcome: Outcome) -> ToolResult | Any:
    if isinstance(outcome, str):
        return ToolResult(content=(Text(outcome),))
    if isinstance(outcome, Mapping):
        structured = dict(cast("Mapping[str, Any]", outcome))
        return ToolResult(content=(Text(_json(structured)),), structured=structured)
    return outcome


def _checked(registered: _Registered, result: ToolResult | Any) -> ToolResult | Any:
    name = registered.tool.info.name
    if not isinstance(result, ToolResult):
        if registered.tool.protocol:
            return result
        raise InternalError(f"The tool {name} gave an answer that is no tool result", toolName=name)
    if registered.tool.max_answer:
        _fits(result, registered.tool)
    if registered.check_output is None or result.is_error:
        return result
    if result.structured is None or registered.check_output(dict(result.structured)):
        raise InternalError(f"The answer of the tool {name} does not match its output schema", toolName=name)
    return result


def _fits(result: ToolResult, tool: Tool) -> None:
    size = sum(map(_size, result.content))
    if result.structured is not None:
        size = max(size, len(msgspec.json.encode(result.structured)))
    if size > tool.max_answer:
        raise TooLarge(
            f"The answer of the tool {tool.info.name} has {size:,} bytes, and an answer holds {tool.max_answer:,}: "
            "ask it for less; its author can give a part, or write a resource and name its address",
            toolName=tool.info.name, size=size, limit=tool.max_answer,
        )  # fmt: skip


def _size(block: Block) -> int:
    """In bytes, as near as a limit needs it."""
    if isinstance(block, Text):
        return len(block.text.encode("utf-8", "surrogatepass"))
    if isinstance(block, (Image, Audio)):
        return len(block.data)
    if isinstance(block, Embedded):
        return len(block.uri) + block.content.size
    return len(block.uri) + len(block.entry.name) + len(block.entry.description or "")


def _compiled(info: ToolInfo, which: str, schema: Mapping[str, Any]) -> Check:
    if schema.get("type") != "object":
        raise InvalidParams(f'The {which} schema of the tool {info.name} needs "type": "object"', toolName=info.name)
    try:
        return compile_schema(schema)
    except InvalidParams as error:
        raise InvalidParams(f"Invalid {which} schema for tool {info.name}: {error}", toolName=info.name) from None


def _definition(info: ToolInfo) -> dict[str, Any]:
    known = {
        "name": info.name,
        "title": info.title,
        "description": info.description,
        "inputSchema": info.input_schema,
        "outputSchema": info.output_schema,
        "annotations": {
            "readOnlyHint": info.hints.read_only,
            "destructiveHint": info.hints.destructive,
            "idempotentHint": info.hints.idempotent,
            "openWorldHint": info.hints.open_world,
        },
        "permissions": [*info.permissions] or None,
    }
    return {key: value for key, value in known.items() if value is not None}


def _sentence(problems: list[dict[str, str]]) -> str:
    first = problems[0]
    where = f"{first['path']}: " if first["path"] else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{where}{first['message']}{more}"


async def _unbound(call: Call) -> Reply:
    raise InternalError("The tools are not bound to a pipeline yet")
