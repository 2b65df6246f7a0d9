"""Conditions of rules, as the configuration writes them under `when` and `unless`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Final, Literal, TypeAlias, cast
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    model_validator,
)

from octavo.config.strict import Strict
from octavo.config.words import Name, one_or_many

Day: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS: Final = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)\Z")

Scalar: TypeAlias = str | int | float | bool


def parse_values(value: object) -> tuple[Scalar, ...]:
    """One or several."""
    values = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)
    if not values:
        raise ValueError("must not be empty")
    if not all(isinstance(one, str | int | float) for one in values):
        raise ValueError("must be text, a number, true or false, or a list of these")
    return tuple(values)


def _spread(value: object) -> object:
    """`mon-fri` is five days, `sat-mon` three."""
    value = one_or_many(value)
    if not isinstance(value, list | tuple):
        return value
    days: list[object] = []
    for one in value:
        first, dash, last = one.partition("-") if isinstance(one, str) else ("", "", "")
        if dash and first in DAYS and last in DAYS:
            begin = DAYS.index(first)
            days += [DAYS[(begin + step) % 7] for step in range((DAYS.index(last) - begin) % 7 + 1)]
        else:
            days.append(one)
    return days


def parse_hours(value: object) -> tuple[int, int]:
    """Minutes since midnight."""
    found = _HOURS.match(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError('must be written as "09:00-18:00"')
    begin, end = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
    if max(int(found[2]), int(found[4])) > 59 or max(begin, end) > 24 * 60 or begin in (end, 24 * 60):
        raise ValueError('must be two times of a day that differ, such as "22:00-06:00"')
    return begin, end


def _written_hours(hours: tuple[int, int]) -> str:
    return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in hours)


def parse_date(value: object) -> date:
    try:
        return value if type(value) is date else date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("must be a date such as 2026-12-31") from None


def _check_zone(zone: str) -> str:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise ValueError("is no time zone that this machine knows, such as Asia/Seoul or UTC") from None
    return zone


Hours: TypeAlias = Annotated[
    tuple[int, int],
    PlainValidator(parse_hours, json_schema_input_type=str),
    PlainSerializer(_written_hours, return_type=str),
]
Date: TypeAlias = Annotated[
    date, PlainValidator(parse_date, json_schema_input_type=str), PlainSerializer(str, return_type=str)
]


class Moment(Strict):
    days: Annotated[
        tuple[Day, ...], Field(min_length=1), BeforeValidator(_spread, json_schema_input_type=str | list[str])
    ] = Field(default=DAYS, description="Days of the week: mon, [sat, sun], mon-fri.")
    hours: Hours | None = Field(
        default=None, description='Times of the day, the second not included: "09:00-18:00". May go past midnight.'
    )
    first: Date | None = Field(default=None, alias="from", description="The first day, such as 2026-01-01.")
    last: Date | None = Field(default=None, alias="until", description="The last day, included.")
    zone: Annotated[str, AfterValidator(_check_zone)] = Field(
        default="UTC", description="Whose clocks are meant, such as Asia/Seoul."
    )

    @model_validator(mode="after")
    def _can_come(self) -> Moment:
        if self.first is not None and self.last is not None and self.last < self.first:
            raise ValueError("ends before it begins, so that it never is")
        return self


class Between(Strict):
    least: float | None = Field(default=None, alias="min", description="The smallest number that fits.")
    most: float | None = Field(default=None, alias="max", description="The largest number that fits.")

    @model_validator(mode="after")
    def _can_be(self) -> Between:
        if self.least is None and self.most is None:
            raise ValueError("needs min, max or both")
        if self.least is not None and self.most is not None and self.most < self.least:
            raise ValueError("has a max below its min, so that nothing fits")
        return self


def parse_wanted(value: object) -> tuple[Scalar, ...] | Between:
    """Values, or the bounds of a number."""
    if not isinstance(value, Mapping):
        return parse_values(value)
    try:
        return Between.model_validate(value)
    except ValidationError as error:
        wrong: Any = error.errors(include_url=False)[0]
        said = wrong.get("ctx", {}).get("error")
        raise ValueError(str(said) if said else "must be {min: NUMBER, max: NUMBER}, or one of the two") from None


Values: TypeAlias = Annotated[
    tuple[Scalar, ...], PlainValidator(parse_values, json_schema_input_type=Scalar | list[Scalar])
]
Wanted: TypeAlias = Annotated[
    tuple[Scalar, ...] | Between, PlainValidator(parse_wanted, json_schema_input_type=Scalar | list[Scalar] | Between)
]


class Demands(Strict):
    metadata: dict[Name, Values] = Field(
        default={}, description="Metadata of the resource, by key: one value, or several of which one must be there."
    )
    time: Moment | None = Field(default=None, description="When the request comes.")
    arguments: dict[Name, Wanted] = Field(
        default={},
        description="Arguments of a tool or prompt, by name: values, texts with * for any characters, or {min, max}.",
    )

    @model_validator(mode="after")
    def _asks_something(self) -> Demands:
        if not self.metadata and not self.arguments and self.time is None:
            raise ValueError("asks for nothing: give it metadata, time or arguments")
        return self
