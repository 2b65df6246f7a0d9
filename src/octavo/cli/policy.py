"""`octavo policy`: whether rules decide as expected, and what others would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from octavo.cli._screen import out
from octavo.cli._shared import FAILED, config_option, json_option, loaded, print_json, say, tell

if TYPE_CHECKING:
    from octavo.ops.explain import ChangedDecision, Otherwise

SHOWN = 5  # addresses that one line names
NOTHING_SAID = "nothing said"
_FILE = click.Path(path_type=Path)


@click.group()
def policy() -> None:
    """Test a policy, and compare two.

    Both leave no record and change nothing.
    """


@policy.command()
@click.argument("file", metavar="FILE", type=_FILE)
@config_option
@json_option
@click.pass_context
def test(ctx: click.Context, file: Path, config_file: Path | None, as_json: bool) -> None:
    """Hold the policy against a table of expected decisions.

    FILE is YAML: under decisions a list of {who, may, what, expect}, where expect is allow, approve, deny or hidden;
    metadata, arguments and at (a time) of a row stand in for those of a real request.

    Exits with 1 if a decision is not as expected.
    """
    from octavo.app.once import when_read
    from octavo.config.table import load_table
    from octavo.ops import explain

    table = load_table(file)
    found = loaded(config_file)
    count, wrong = when_read(found, lambda server: explain.tested(server.works, table))
    if as_json:
        rows = [
            {"line": one.line, "who": one.question.who, "may": one.question.may, "what": one.question.what}
            | {"expected": one.expected, "got": one.got, "rule": one.rule}
            for one in wrong
        ]
        print_json({"ok": not wrong, "decisions": count, "wrong": rows})
    else:
        for one in wrong:
            asked = f"{one.question.who} {one.question.may} {one.question.what}"
            say("error", f"{file}:{one.line}: {asked}: expected {one.expected}, is {one.got} by {one.rule}")
        tell(f"{count} decisions, {len(wrong) or 'none'} of them wrong")
    if wrong:
        ctx.exit(FAILED)


@policy.command()
@click.argument("old", metavar="OLD", type=_FILE)
@click.argument("new", metavar="NEW", type=_FILE)
@json_option
@click.pass_context
def diff(ctx: click.Context, old: Path, new: Path, as_json: bool) -> None:
    """Say what the rules and agents of the configuration NEW change against those of OLD, and for whom.

    Compared are all agents, roles and anybody else, on every resource, tool and prompt that NEW serves and on
    the addresses that rules name; and the labels of the operator, and what is said of approval.

    Exits with 1 if there is a difference.
    """
    from octavo.app.once import when_read
    from octavo.ops.explain import differences

    before, after = loaded(old), loaded(new)
    found, otherwise = when_read(after, lambda server: differences(server.works, before, after))
    if as_json:
        others = [one._asdict() for one in otherwise]
        print_json({"differences": [one._asdict() for one in found], "otherwise": others})
    else:
        for line in (*_lines(found), *_further_lines(otherwise)):
            out(line)
        if not (found or otherwise):
            tell("both decide the same")
    if found or otherwise:
        ctx.exit(FAILED)


def _lines(found: Iterable[ChangedDecision]) -> Iterator[str]:
    """One for each change of somebody, with all verbs and addresses that it is about."""
    verbs: dict[tuple[str, str, str, str], list[str]] = {}
    for one in found:
        verbs.setdefault((one.who, one.what, one.old, one.new), []).append(one.may)
    addresses: dict[tuple[str, str, str, str], list[str]] = {}
    for (who, what, old, new), may in verbs.items():
        addresses.setdefault((who, ", ".join(may), old, new), []).append(what)
    for (who, mays, old, new), whats in addresses.items():
        yield f"{who}: {mays}: {old} -> {new}"
        yield from _shown(whats)


def _further_lines(otherwise: Iterable[Otherwise]) -> Iterator[str]:
    addresses: dict[tuple[str, str, str], list[str]] = {}
    for one in otherwise:
        addresses.setdefault((one.key, one.old, one.new), []).append(one.what)
    for (key, old, new), whats in addresses.items():
        yield f"{key}: {old or NOTHING_SAID} -> {new or NOTHING_SAID}"
        yield from _shown([what for what in whats if what])


def _shown(whats: Sequence[str]) -> Iterator[str]:
    more = f" and {len(whats) - SHOWN} more" if len(whats) > SHOWN else ""
    if whats:
        yield f"  {', '.join(whats[:SHOWN])}{more}"
