"""`octavo explain`: why somebody may or may not do something."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from octavo.cli._shared import FAILED, config_option, json_option, known_agent, loaded, print_json
from octavo.core.model import VERBS, Verb

if TYPE_CHECKING:
    from octavo.config.load import Loaded


@click.command(short_help="Say who may do what, and by which rule.")
@click.argument("who", metavar="WHO")
@click.argument("may", metavar="MAY", type=click.Choice(VERBS))
@click.argument("what", metavar="WHAT")
@config_option
@json_option
@click.pass_context
def explain(ctx: click.Context, who: str, may: Verb, what: str, config_file: Path | None, as_json: bool) -> None:
    """Say whether WHO (an agent, or local) MAY (a verb) do that to WHAT (an address), and which rule decides.

    For example: octavo explain agent-brand read file://sops/hr/salary.md

    Exits with 1 if it is refused.
    """
    from octavo.cli import _run

    found = loaded(config_file)
    known_agent(found, who)
    decision = _run.decide(found, who, may, what)
    index = _index(decision.rule)
    line = found.line("policy", index) if index is not None else None
    facts = {
        "who": who,
        "may": may,
        "what": what,
        "allowed": decision.allowed,
        "rule": decision.rule,
        "index": index,
        "line": line,
        "pattern": decision.pattern or None,
        "why": decision.why or None,
    }
    if as_json:
        print_json(facts)
    else:
        click.echo(_sentence(facts, found))
    if not decision.allowed:
        ctx.exit(FAILED)


def _index(rule: str) -> int | None:
    """The number in `policy[2]`; other names stand for what is decided without a rule."""
    number = rule.removeprefix("policy[").removesuffix("]")
    return int(number) if number != rule and number.isdigit() else None


def _sentence(facts: dict[str, Any], found: Loaded) -> str:
    verb = "may" if facts["allowed"] else "may not"
    lines = [f"{facts['who']} {verb} {facts['may']} {facts['what']}"]
    if facts["index"] is not None:
        place = f" ({found.file}:{facts['line']})" if facts["line"] else ""
        lines.append(
            f"  by {facts['rule']}{place}: {'allow' if facts['allowed'] else 'deny'} {facts['pattern'] or ''}".rstrip()
        )
    if facts["why"]:
        lines.append(f"  why: {facts['why']}")
    return "\n".join(lines)
