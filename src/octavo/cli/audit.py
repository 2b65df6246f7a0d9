"""`octavo audit`: whether the log is what was written, what it says, and for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import to_builtins

from octavo.cli._screen import give, out
from octavo.cli._shared import FAILED, config_option, json_option, kept_state, print_json, say

if TYPE_CHECKING:
    from octavo.config.load import StateAndAudit
    from octavo.stores.audit.query import Record, RecordFilter
    from octavo.stores.audit.verify import Break, ChainReport, Report

Command = TypeVar("Command", bound=Callable[..., Any])

MOST_SHOWN = 20  # changes without an outcome, of one chain


@click.group()
def audit() -> None:
    """The record of every request."""


def directory_argument(command: Command) -> Command:
    return click.argument("directories", metavar="[DIR]...", nargs=-1, type=click.Path(path_type=Path))(command)


@audit.command()
@directory_argument
@config_option
@click.option(
    "--checkpoints",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Signed checkpoints from a second place. Default: audit.checkpoints of the configuration.",
)
@json_option
@click.pass_context
def verify(
    ctx: click.Context, directories: tuple[Path, ...], config_file: Path | None, checkpoints: Path | None, as_json: bool
) -> None:
    """Walk all chains of the audit log, of a configuration or of folders (DIR) that are served without one.

    Exits with 1 if a chain is broken, or does not reach a checkpoint.
    """
    place, report = _verified(kept_state(config_file, *directories), checkpoints)
    if as_json:
        print_json({"ok": report.ok, "records": report.records, **to_builtins(report)})
    else:
        for chain in report.chains:
            if chain.broken is None:
                witnessed = f", {chain.witnessed} before a checkpoint" if chain.witnessed else ""
                kept = f", files before part {chain.first} deleted by retention" if chain.first else ""
                out(f"ok      {chain.chain}: records {chain.records}{witnessed}{kept}, {chain.end}")
            else:
                out(f"BROKEN  {chain.chain}: {_told(chain.broken)}")
            for line in _gaps(chain):
                out(line)
            for warning in chain.warnings:
                say("warning", warning)
        if gone := report.forgotten:
            out(f"gone    {len(gone)} chain(s) deleted by retention, from {gone[0]} to {gone[-1]}")
        for broken in report.broken:
            out(f"BROKEN  checkpoints: {_told(broken)}")
        for warning in report.warnings:
            say("warning", warning)
        out(f"{place}: chains {len(report.chains)}, records {report.records}")
    if not report.ok:
        ctx.exit(FAILED)


def _verified(found: StateAndAudit, checkpoints: Path | None) -> tuple[Path, Report]:
    """With the checkpoints that are named, or those of the configuration. Raises NotFound for either."""
    from octavo.core.errors import NotFound
    from octavo.stores.audit.checkpoints import read_checkpoints
    from octavo.stores.audit.verify import verify
    from octavo.stores.state import StateDirectory

    directory, state = _directory(found), StateDirectory.known(found.state)
    configured, min_age = found.audit.checkpoints, found.audit.least_age
    file = checkpoints or (None if configured is None else configured.path)
    if file is None:
        return directory, verify(directory, state.key("audit"), min_age=min_age)

    def look() -> Report:
        points = read_checkpoints(file, state.key("checkpoint"))
        return verify(directory, state.key("audit"), points, min_age=min_age)

    try:
        report = look()
        # Beside a running server: what retention deleted meanwhile is announced by now.
        return directory, report if report.ok else look()
    except OSError as error:
        raise NotFound(f"The audit log and its checkpoints cannot be read: {error.strerror}") from None


def _directory(found: StateAndAudit) -> Path:
    """Raises NotFound where nothing was ever recorded."""
    from octavo.core.errors import NotFound

    if not (found.state / "audit").is_dir():
        raise NotFound(f"There is no audit log in {found.state} yet")
    return found.state / "audit"


def _gaps(chain: ChainReport) -> Iterator[str]:
    """What the log itself says is not in it."""
    if chain.counted:
        yield f"counted {chain.chain}: {chain.counted} request(s) of floods, in summaries"
    for gone in chain.early[:MOST_SHOWN]:
        yield f"early   deleted by retention: {gone}"
    if chain.lost:
        yield f"lost    {chain.chain}: {chain.lost} record(s) could not be stored, and are in no file"
    for one in chain.unfinished[:MOST_SHOWN]:
        what = _printable(f"{one.who} {one.op} {one.uri}".strip())
        yield f"begun   {one.file}:{one.line}: {one.time} {what}: no outcome is on record; it may have been done"
    if len(chain.unfinished) > MOST_SHOWN:
        yield f"begun   {chain.chain}: and {len(chain.unfinished) - MOST_SHOWN} more without an outcome"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _told(broken: Break) -> str:
    return f"{broken.file}:{broken.line}: {broken.reason}"


def _moment(ctx: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """A time of day or date, in UTC where it does not say, or how long ago."""
    from octavo.config.units import parse_age, parse_time
    from octavo.core.clock import SystemClock

    if text is None:
        return None
    for parse in (parse_age, parse_time):
        try:
            return SystemClock().wall() - parse(text)
        except ValueError:
            continue
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter("must be a time such as 2026-11-15T09:30Z, a date, or how long ago: 2h") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def question_options(command: Command) -> Command:
    for option in reversed(
        (
            click.option("--who", multiple=True, metavar="AGENT", help="Requests of this agent; may be repeated."),
            click.option("--op", multiple=True, metavar="OP", help="This operation or method, such as read or ping."),
            click.option("--uri", metavar="PATTERN", help="Addresses that the pattern matches, such as file://hr/*."),
            click.option("--outcome", multiple=True, metavar="OUTCOME", help="This outcome, such as ok or forbidden."),
            click.option("--rule", multiple=True, metavar="RULE", help="Decided by this rule, such as policy[2]."),
            click.option("--since", callback=_moment, metavar="TIME", help="From this time on: 2026-11-15, or 2h ago."),
            click.option("--until", callback=_moment, metavar="TIME", help="Before this time."),
        )
    ):
        command = option(command)
    return command


def _question(
    who: tuple[str, ...], op: tuple[str, ...], outcome: tuple[str, ...], rule: tuple[str, ...],
    uri: str | None, since: float | None, until: float | None,
) -> RecordFilter:  # fmt: skip
    from octavo.core.glob import Glob
    from octavo.stores.audit.query import RecordFilter

    return RecordFilter(who, op, outcome, rule, None if uri is None else Glob(uri), since, until)


@audit.command()
@directory_argument
@config_option
@question_options
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many, the latest.")
@click.option("--tree", is_flag=True, help="With every call above and below, as the trees that they form.")
@json_option
def query(
    directories: tuple[Path, ...], config_file: Path | None, limit: int, tree: bool, as_json: bool, **asked: Any
) -> None:
    """Print the records that fit all options, oldest first.

    For example: octavo audit query --who agent-brand --outcome forbidden --since 1d
    """
    from octavo.stores.audit import query

    place = _directory(kept_state(config_file, *directories))
    matches = query.latest(place, _question(**asked), limit)
    shown = query.trees(place, matches) if tree else [(0, record) for record in matches]
    if as_json:
        print_json({"records": [{"depth": depth, **record} if tree else record for depth, record in shown]})
        return
    for depth, record in shown:
        out(_line(depth, record))


def _line(depth: int, record: Record) -> str:
    facts = [str(record.get(key, "")) for key in ("time", "who", "outcome", "op", "uri", "rule")]
    time, who, outcome, *what = map(_printable, facts)
    took = f"{record['us']}us" if "us" in record else f"{record['count']} times" if "count" in record else ""
    return f"{time}  {who:<16}  {outcome:<12}  {'  ' * depth}{'  '.join(filter(None, (*what, took)))}"


@audit.command()
@directory_argument
@config_option
@question_options
@click.option(
    "--format",
    "form",
    type=click.Choice(("jsonl", "csv", "otel")),
    default="jsonl",
    show_default=True,
    help="JSON lines, CSV, or OpenTelemetry log records as JSON lines.",
)
def export(directories: tuple[Path, ...], config_file: Path | None, form: str, **asked: Any) -> None:
    """Print all records that fit the options, for another program."""
    from octavo.stores.audit.export import FORMATS
    from octavo.stores.audit.query import found

    place = _directory(kept_state(config_file, *directories))
    for line in FORMATS[form](found(place, _question(**asked))):
        give(line, nl=True)
