"""What a rule may ask besides who, what and which verb: metadata, the time, and the arguments of a tool.

A condition is true, false, or unknown (None): a document whose metadata cannot be read, an argument that a tool fills
in itself, a value behind a redaction mark. Unknown never widens: an allow needs true, a deny only not false.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, tzinfo
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from octavo.core import marks
from octavo.core.glob import fits
from octavo.pipeline.policy.rules import Facts, Truth

Scalar: TypeAlias = str | int | float | bool
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
PROBLEMS: Final = "problems"  # under which metadata say that they could not be read in full
_MARKS: Final = (marks.START, "⟨U+")  # of values that are not what was written


class Metadata(Struct, frozen=True):
    """Every key has one of its values. A list of metadata, such as tags, has each of its members."""

    wanted: tuple[tuple[str, tuple[Scalar, ...]], ...]

    def holds(self, metadata: Mapping[str, Any] | None) -> Truth:
        if metadata is None:
            return None
        return _every(_has(metadata, key, values) for key, values in self.wanted)

    def __str__(self) -> str:
        return ", ".join(f"{key} is {_either(values)}" for key, values in self.wanted)


class Times(Struct, frozen=True):
    """On these days, in these minutes of the day, between these dates, as clocks in the zone show them."""

    zone: tzinfo
    days: frozenset[int] = frozenset()  # 0 is Monday; none is every day
    hours: tuple[int, int] | None = None  # minutes since midnight, the second not included; may go past midnight
    first: date | None = None
    last: date | None = None  # included

    def holds(self, at: float | None) -> Truth:
        if at is None:
            return None
        try:
            now = datetime.fromtimestamp(at, self.zone)
        except (OverflowError, ValueError, OSError):  # a clock that shows no year of ours
            return None
        if self.days and now.weekday() not in self.days:
            return False
        if (self.first is not None and now.date() < self.first) or (self.last is not None and now.date() > self.last):
            return False
        if self.hours is None:
            return True
        (begin, end), minute = self.hours, now.hour * 60 + now.minute
        return begin <= minute < end if begin < end else minute >= begin or minute < end

    def __str__(self) -> str:
        told = [", ".join(DAYS[day] for day in sorted(self.days))] if self.days else []
        if self.hours is not None:
            told.append("-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in self.hours))
        told += [f"from {self.first}"] if self.first is not None else []
        told += [f"until {self.last}"] if self.last is not None else []
        return f"the time is {' '.join(told) or 'any'} ({self.zone})"


class NumberRange(Struct, frozen=True):
    least: float | None = None
    most: float | None = None

    def holds(self, value: Any) -> Truth:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        if self.least is None or self.most is None:
            return f"at most {self.most:g}" if self.most is not None else f"at least {self.least or 0:g}"
        return f"{self.least:g} to {self.most:g}"


class ArgumentsAre(Struct, frozen=True):
    """Every argument has one of its values. An argument that is not given is unknown: the tool may have a default."""

    wanted: tuple[tuple[str, tuple[Scalar, ...] | NumberRange], ...]

    def holds(self, arguments: Mapping[str, Any] | None) -> Truth:
        if arguments is None:
            return None
        return _every(_given(arguments.get(name), values) for name, values in self.wanted)

    def __str__(self) -> str:
        return ", ".join(
            f"argument {name} is {values if isinstance(values, NumberRange) else _either(values)}"
            for name, values in self.wanted
        )


class Conditions(Struct, frozen=True):
    """What stands under `when:` or `unless:`: all of it."""

    metadata: Metadata | None = None
    time: Times | None = None
    arguments: ArgumentsAre | None = None

    def holds(self, facts: Facts) -> Truth:
        return _every(
            one
            for one in (
                self.time is None or self.time.holds(facts.at),
                self.metadata is None or self.metadata.holds(facts.metadata),
                self.arguments is None or self.arguments.holds(facts.arguments),
            )
        )

    def __str__(self) -> str:
        return " and ".join(str(part) for part in (self.metadata, self.time, self.arguments) if part is not None)


class Condition(Struct, frozen=True):
    when: Conditions | None = None
    unless: Conditions | None = None

    def holds(self, facts: Facts) -> Truth:
        excepted = None if self.unless is None else self.unless.holds(facts)
        otherwise: Truth = True if self.unless is None else None if excepted is None else not excepted
        return _every((self.when is None or self.when.holds(facts), otherwise))

    @property
    def times(self) -> tuple[Times, ...]:
        return tuple(part.time for part in (self.when, self.unless) if part is not None and part.time is not None)

    def __str__(self) -> str:
        told = [f"when {self.when}"] if self.when is not None else []
        return " ".join([*told, f"unless {self.unless}"] if self.unless is not None else told)


def _every(truths: Iterable[Truth]) -> Truth:
    told: Truth = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            told = None
    return told


def _some(truths: Iterable[Truth]) -> Truth:
    told: Truth = False
    for truth in truths:
        if truth:
            return True
        if truth is None:
            told = None
    return told


def _has(metadata: Mapping[str, Any], key: str, accepted: Sequence[Scalar]) -> Truth:
    if metadata.get(key) is None:
        return None if PROBLEMS in metadata else False
    words = {_word(one) for one in accepted}
    return _some(_is_word(value, words) for value in _members(metadata[key]))


def _is_word(value: Any, words: set[str]) -> Truth:
    """People write metadata, so capitals and spaces around a word do not matter."""
    if isinstance(value, Mapping | list | tuple):
        return None
    word = _word(value)
    return True if word in words else None if any(mark.casefold() in word for mark in _MARKS) else False


def _given(value: Any, wanted: tuple[Scalar, ...] | NumberRange) -> Truth:
    """Of a list, every member must fit, and none may for it not to: in between nobody can tell."""
    if value is None:
        return None
    truths = {
        wanted.holds(one) if isinstance(wanted, NumberRange) else _some(_equals(one, text) for text in wanted)
        for one in _members(value)
    }
    return truths.pop() if len(truths) == 1 else None


def _equals(value: Any, wanted: Scalar) -> Truth:
    """A program reads arguments, and some programs take capitals for small letters: that is neither yes nor no."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted if isinstance(value, bool) is isinstance(wanted, bool) else None
    if isinstance(value, int | float) and isinstance(wanted, int | float):
        return value == wanted
    if not isinstance(value, str) or not isinstance(wanted, str):
        return None
    value, wanted = (unicodedata.normalize("NFC", text) for text in (value, wanted))
    if fits(wanted.split("*"), value):
        return True
    return None if fits(_word(wanted).split("*"), _word(value)) else False


def _members(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)


def _word(value: Any) -> str:
    return unicodedata.normalize("NFC", str(value)).strip().casefold()


def _either(values: Sequence[Scalar]) -> str:
    return " or ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
