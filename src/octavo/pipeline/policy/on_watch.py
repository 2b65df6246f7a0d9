"""The policy for subscriptions: who may watch what, and which past changes each caller is told of."""

from __future__ import annotations

from msgspec.structs import replace

from octavo.core.arguments import ChangesArguments, WatchArguments
from octavo.core.glob import Glob
from octavo.core.ports.chain import Next, Reply, expected, settled
from octavo.core.values import Call, Change, News
from octavo.pipeline.policy.refusals import refusal
from octavo.pipeline.policy.rules import CLOSED, Decision
from octavo.pipeline.policy.visibility import Seeing, under

_BY_EVENT = Decision(True, "by event", "each event is decided when it is delivered")


async def watch(seeing: Seeing, call: Call, call_next: Next) -> Reply:
    _demand(seeing, call, call.given(WatchArguments).glob)
    return await settled(call_next(call))


async def changes(seeing: Seeing, call: Call, call_next: Next, *, page: int) -> News:
    """As many changes as a page may hold, each as its caller may be told of it; the latest without `after`.

    They come in parts. How many it takes until there is something for this caller says nothing to it: `next` is the
    number of what it is told, or of the end."""
    _demand(seeing, call, under(call.ref))
    limit, after = max(1, min(call.limit, page)), call.given(ChangesArguments).after
    told: list[Change] = []
    while True:
        news = expected(await settled(call_next(call)), News)
        told += (part for change in news.changes if (part := seeing.told(call.principal, "watch", change)) is not None)
        if after is None:
            return replace(news, changes=tuple(told[-limit:]))
        if len(told) > limit:
            return replace(news, changes=tuple(told[:limit]), next=told[limit - 1].seq, more=True)
        if not news.more:
            return news if news.gap else replace(news, changes=tuple(told))
        call = call._replace(arguments=replace(call.given(ChangesArguments), after=news.next))


def _demand(seeing: Seeing, call: Call, glob: Glob) -> None:
    """Raises the refusal unless it may be watched."""
    if glob.exact or not seeing.may_reach(call.principal, "watch", glob):
        decision = seeing.at_best(call.principal, "watch", call.ref)
        decision = decision if glob.exact or not decision.allowed else CLOSED
    else:
        decision = _BY_EVENT
    call.trail.rule = decision.rule
    # What does not exist can be watched, and so can what is hidden: no event of it is ever delivered.
    if not decision.allowed and not decision.hidden:
        raise refusal(call, "watch", decision)
