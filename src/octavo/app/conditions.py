"""Turns the conditions of configured rules into those of the policy; loaded where a rule has one."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from octavo.config.sections.conditions import DAYS, Between, Demands, Moment
from octavo.pipeline.policy import conditions


def condition(when: Demands | None, unless: Demands | None) -> conditions.Condition:
    return conditions.Condition(*(None if one is None else _demands(one) for one in (when, unless)))


def _demands(written: Demands) -> conditions.Conditions:
    given = tuple(
        (name, conditions.NumberRange(values.least, values.most) if isinstance(values, Between) else values)
        for name, values in written.arguments.items()
    )
    return conditions.Conditions(
        metadata=conditions.Metadata(tuple(written.metadata.items())) if written.metadata else None,
        time=None if written.time is None else _times(written.time),
        arguments=conditions.ArgumentsAre(given) if given else None,
    )


def _times(written: Moment) -> conditions.Times:
    days = frozenset(map(DAYS.index, written.days))
    return conditions.Times(
        zone=ZoneInfo(written.zone),
        days=days if len(days) < len(DAYS) else frozenset(),
        hours=written.hours,
        first=written.first,
        last=written.last,
    )
