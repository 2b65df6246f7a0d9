"""A table of decisions that a policy is expected to make, for `octavo policy test`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from msgspec import Struct
from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationError

from octavo.config.load import MESSAGES, read_text
from octavo.config.problems import ConfigError, KeyPath, Position, Problem, dotted
from octavo.config.strict import Strict
from octavo.config.words import Whos, check_uri, one_or_many
from octavo.config.yaml import read_yaml
from octavo.core.values import Verb

Outcome: TypeAlias = Literal["allow", "approve", "deny", "hidden"]  # approve: once a human has allowed it, by a rule


def parse_moment(value: object) -> float:
    """Seconds since 1970. Without an offset it is UTC."""
    try:
        moment = datetime.fromisoformat(value if isinstance(value, str) else "")
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError("must be a time such as 2026-11-16T10:00+09:00") from None


class PolicyRow(Strict):
    """Each of `who` may or may not do each of `may` to each of `what`."""

    who: Whos
    may: Annotated[tuple[Verb, ...], Field(min_length=1), BeforeValidator(one_or_many)]
    what: Annotated[
        tuple[Annotated[str, AfterValidator(check_uri)], ...], Field(min_length=1), BeforeValidator(one_or_many)
    ]
    expect: Outcome
    metadata: dict[str, Any] | None = None  # instead of those that the resource has
    arguments: dict[str, Any] | None = None
    at: Annotated[float, PlainValidator(parse_moment)] | None = None


class _Rows(Strict):
    decisions: tuple[PolicyRow, ...] = Field(min_length=1)


class PolicyTable(Struct, frozen=True):
    file: Path
    rows: Sequence[PolicyRow]
    places: Mapping[KeyPath, Position]

    def line(self, row: int) -> int:
        return self.places[("decisions", row)].line


def load_table(path: Path) -> PolicyTable:
    """Raises ConfigError with everything that is wrong with it."""
    document = read_yaml(read_text(path))

    def problem(at: KeyPath, message: str, place: Position | None = None) -> Problem:
        place = place or document.place(at)
        return Problem(str(path), dotted(at), message, "", place.line, place.column)

    if document.faults:
        raise ConfigError(problem(fault.path, fault.message, fault.place) for fault in document.faults)
    try:
        rows = _Rows.model_validate(document.data).decisions
    except ValidationError as error:
        wrong = cast("list[dict[str, Any]]", error.errors(include_url=False))
        raise ConfigError(problem(detail["loc"], _said(detail)) for detail in wrong) from None
    return PolicyTable(path, rows, document.places)


def _said(detail: Mapping[str, Any]) -> str:
    match detail["type"]:
        case "extra_forbidden":
            return f"unknown key; a row has {', '.join(PolicyRow.model_fields)}, under decisions"
        case "missing":
            return "is required"
        case "literal_error":
            return f"must be {detail['ctx']['expected']}"
        case "value_error":
            return str(detail["ctx"]["error"])
        case other:
            return MESSAGES.get(other) or str(detail["msg"]).replace("Input should", "must")
