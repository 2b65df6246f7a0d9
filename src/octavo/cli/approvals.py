"""`octavo approvals`: what waits for a human, and the answers to it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from octavo.cli._screen import out
from octavo.cli._shared import LOCAL, config_option, json_option, loaded, print_json, tell

if TYPE_CHECKING:
    from octavo.app import Octavo
    from octavo.config.load import Loaded
    from octavo.core.approval import Approval
    from octavo.stores.approvals import StoredApprovals

T = TypeVar("T")

_PERSON = re.compile(r"[\w.@+-]{1,64}\Z")


def _person(ctx: click.Context, parameter: click.Parameter, by: str | None) -> str:
    if by is None:
        return _user()
    if not _PERSON.match(by):
        raise click.BadParameter("a name has letters, digits and . @ + - _, and no more than 64 of them")
    return by


def _user() -> str:
    """Of the operating system, by whom this process really is: the environment can say anything."""
    if sys.platform == "win32":
        return os.getlogin()
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


by_option = click.option(
    "--by",
    callback=_person,
    metavar="NAME",
    help="Who answers. Default: the user of the operating system. Two people are told apart by it.",
)


@click.group()
def approvals() -> None:
    """What agents may do only when a human has allowed it.

    An answer counts once, for one agent and exactly the arguments that are shown.
    """


@approvals.command("list")
@config_option
@json_option
def list_(config_file: Path | None, as_json: bool) -> None:
    """List what waits for an answer, or was answered and is not used yet."""
    from octavo.core.approval import plain
    from octavo.core.clock import iso

    standing = _known(loaded(config_file), lambda kept: kept.standing())
    if as_json:
        print_json({"approvals": [_facts(one) for one in standing]})
        return
    for one in standing:
        wanted = one.wanted
        out(f"{one.id}  {one.state:8}  until {iso(one.expires)}  {plain(wanted.who)}: {plain(wanted.act)}")


@approvals.command()
@click.argument("approval_id", metavar="ID")
@config_option
@json_option
def show(approval_id: str, config_file: Path | None, as_json: bool) -> None:
    """Show all that is known of one: who asks, for what, with which arguments, and by which rule."""
    one = _known(loaded(config_file), lambda kept: kept.named(approval_id))
    if as_json:
        print_json(_facts(one))
    else:
        out(*one.shown().split("\n"))
        out(f"state: {one.state}")


@approvals.command()
@click.argument("approval_id", metavar="ID")
@by_option
@click.option("--yes", is_flag=True, help="Do not ask whether it is really meant.")
@config_option
def allow(approval_id: str, by: str, yes: bool, config_file: Path | None) -> None:
    """Allow it, once. It is shown first."""
    found = loaded(config_file)
    if not yes:
        out(*_known(found, lambda kept: kept.named(approval_id)).shown().split("\n"), err=True)
        click.confirm("Allow it?", abort=True, err=True)
    one = _answered(found, approval_id, by=by, allow=True)
    missing = one.wanted.people - len(one.allowed)
    tell(f"{one.id} is allowed by {by}" + (f"; {missing} more must allow it" if missing > 0 else ""))


@approvals.command()
@click.argument("approval_id", metavar="ID")
@by_option
@config_option
def deny(approval_id: str, by: str, config_file: Path | None) -> None:
    """Deny it. Until that expires, the same call is refused without a question."""
    one = _answered(loaded(config_file), approval_id, by=by, allow=False)
    tell(f"{one.id} is denied by {by}")


def _known(found: Loaded, ask: Callable[[StoredApprovals], Awaitable[T]]) -> T:
    from octavo.app.stores import looked_at
    from octavo.stores.approvals import StoredApprovals

    return looked_at(found, lambda opens: ask(StoredApprovals(opens, lambda step, approval, person: None)))


def _answered(found: Loaded, name: str, *, by: str, allow: bool) -> Approval:
    """Raises NotFound or Conflict for one that cannot be answered any more; that is recorded as well."""
    from octavo.app.once import changing, inside

    async def ask(server: Octavo) -> Approval:
        kept = server.approvals
        with changing(server, LOCAL, f"approvals {'allow' if allow else 'deny'}", approval=name, by=by, user=_user()):
            return await kept.answer(name, by, allow=allow)

    return inside(found, ask)


def _facts(one: Approval) -> dict[str, Any]:
    from octavo.core.clock import iso

    wanted = one.wanted
    return {
        "id": one.id,
        "state": one.state,
        "who": wanted.who,
        "act": wanted.act,
        "tool": wanted.tool or None,
        "arguments": list(wanted.arguments),
        "rule": wanted.rule,
        "why": wanted.why or None,
        "people": wanted.people,
        "allowed": list(one.allowed),
        "denied": one.denied or None,
        "asked": iso(one.asked),
        "expires": iso(one.expires),
    }
