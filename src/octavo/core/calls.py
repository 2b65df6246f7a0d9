"""The one place that makes calls out of what somebody asked: for clients, the command line, tasks and the house itself.

What is wrong with an address or a name becomes the fault of the call, and not an error here: so it walks the pipeline,
and is counted and recorded like every other request. What a tool or a prompt asks is made by `Call.child`.

It stands in the core since every room needs it and knows no other; it decides nothing and asks nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from octavo.core.arguments import (
    NOTHING,
    PLAIN,
    AnswerArguments,
    Arguments,
    CompleteArguments,
    OwnArguments,
    TaskArguments,
    WatchArguments,
)
from octavo.core.cursor import INVALID
from octavo.core.definitions import most_entries
from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.glob import Glob
from octavo.core.memo import Memo
from octavo.core.ref import Ref
from octavo.core.tools import unknown_prompt, unknown_task, unknown_tool
from octavo.core.values import EVERYTHING, NOWHERE, Call, Op, Principal, Trail

if TYPE_CHECKING:
    from octavo.core.forms import Answer
    from octavo.core.ports.client import Channel
    from octavo.core.ports.server import CallLimits

MEMO_SIZE: Final = 20_000  # addresses kept parsed
MEMO_CHARACTERS: Final = 256  # of an address worth keeping: longer ones are rare, and would fill the memory
MEMO_NAMES: Final = 1000  # of tools and prompts
_EVERYWHERE: Final = str(EVERYTHING)


class Parses:
    """Addresses as clients write them; good ones are remembered, since clients repeat them."""

    def __init__(self) -> None:
        self._parsed: Memo[str, tuple[Ref, OctavoError | None]] = Memo(MEMO_SIZE)

    def __call__(self, uri: str) -> tuple[Ref, OctavoError | None]:
        """The address, or what is wrong with it."""
        known = self._parsed.get(uri) or self._parsed.again(uri)
        if known is not None:
            return known
        try:
            parsed = (Ref.parse(uri), None)
        except OctavoError as fault:
            return NOWHERE, fault
        return self._parsed.keep(uri, parsed) if len(uri) <= MEMO_CHARACTERS else parsed


class Builder:
    """Makes calls within the limits of one configuration. What it makes has no parent."""

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self.parse = Parses()

    def read(self, who: Principal, uri: str, channel: Channel | None = None, moment: int = 0) -> Call:
        ref, fault = self.parse(uri)
        limits = self.limits
        return Call(
            "read", ref, who, Trail(), uri, PLAIN, None, limits.page, limits.max_bytes, limits.timeout, None, channel,
            fault, moment,
        )  # fmt: skip

    def listing(
        self,
        who: Principal,
        scope: Ref,
        cursor: str | None = None,
        *,
        op: Op = "list",
        uri: str = "",
        arguments: Arguments = PLAIN,
        fault: OctavoError | None = None,
        moment: int = 0,
    ) -> Call:
        """One page. `cursor` is that of the pipeline, without the seal of a transport."""
        limits = self.limits
        spelled = uri or (_EVERYWHERE if scope is EVERYTHING else str(scope))
        return Call(
            op, scope, who, Trail(), spelled, arguments, cursor, most_entries(scope, limits.page), limits.max_bytes,
            limits.timeout, None, None, fault, moment,
        )  # fmt: skip

    def at(
        self,
        op: Op,
        who: Principal,
        place: Ref | str | None = None,
        arguments: Arguments = PLAIN,
        *,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Call:
        """Any operation at an address, also as somebody writes it, or over everything."""
        fault: OctavoError | None = None
        if isinstance(place, str):
            uri, (ref, fault) = place, self.parse(place)
        else:
            ref, uri = (EVERYTHING, "") if place is None else (place, str(place))
        limits = self.limits
        return Call(
            op, ref, who, Trail(), uri, arguments, cursor, limits.page if limit is None else limit,
            limits.max_bytes, limits.timeout, None, None, fault,
        )  # fmt: skip

    @staticmethod
    def templates(who: Principal, cursor: str | None = None) -> Call:
        fault = None if cursor is None else InvalidParams("This list has one page only", reason=INVALID)
        return Call("templates", EVERYTHING, who, Trail(), "templates", fault=fault)

    def watch(self, who: Principal, pattern: str) -> Call:
        """Of an address, or of a pattern over many; which of them is in the arguments."""
        fault: OctavoError | None
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

    @staticmethod
    def complete_template(who: Principal, template: str, argument: str, prefix: str, given: Mapping[str, str]) -> Call:
        scheme, separator, _ = template.partition("://")
        fault = None if separator else InvalidParams("Not a resource template: expected scheme://path")
        asked = CompleteArguments(argument=argument, prefix=prefix, given=given, template=template)
        return Call("complete", Ref(scheme.lower()), who, Trail(), template, asked, fault=fault)

    @staticmethod
    def complete_prompt(who: Principal, name: str, argument: str, prefix: str, given: Mapping[str, str]) -> Call:
        asked = CompleteArguments(argument=argument, prefix=prefix, given=given)
        return _named("complete", "prompt", name, who, asked, None)

    @staticmethod
    def invoke(who: Principal, name: str, arguments: Mapping[str, Any], channel: Channel | None = None) -> Call:
        return _named("invoke", "tool", name, who, OwnArguments(arguments), channel)

    @staticmethod
    def render(who: Principal, name: str, arguments: Mapping[str, Any], channel: Channel | None = None) -> Call:
        return _named("render", "prompt", name, who, OwnArguments(arguments), channel)

    @staticmethod
    def task(
        op: Literal["poll", "answer", "cancel"],
        who: Principal,
        task_id: str,
        tool: str | None,
        fault: OctavoError | None = None,
        answers: Mapping[str, Answer] = NOTHING,
    ) -> Call:
        """At the address of its tool: whoever may no longer call that may ask for no result of it either. `tool` is
        None where the principal has no such task."""
        if tool is None or fault is not None:
            return Call(op, NOWHERE, who, Trail(), "task://unknown", fault=fault or unknown_task(task_id))
        asked = AnswerArguments(task_id, answers) if op == "answer" else TaskArguments(task_id)
        return Call(op, Ref.of("tool", (tool,)), who, Trail(), f"tool://{tool}", asked)


def _named(op: Op, scheme: str, name: str, who: Principal, arguments: Arguments, channel: Channel | None) -> Call:
    fault: OctavoError | None = None
    try:
        ref = _ref(scheme, name)
    except OctavoError:
        ref, fault = NOWHERE, (unknown_tool if scheme == "tool" else unknown_prompt)(name[:80])
    return Call(op, ref, who, Trail(), f"{scheme}://{name[:200]}", arguments, channel=channel, fault=fault)


@lru_cache(MEMO_NAMES)
def _ref(scheme: str, name: str) -> Ref:
    return Ref.of(scheme, (name,))


def _without_query(glob: Glob) -> OctavoError | None:
    if not glob.asks:
        return None
    return InvalidParams("A pattern is about paths and has no query; a question mark in a name is written %3F")
