"""`octavo explain`: why somebody may or may not do something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from octavo.cli._help import Spoken
from octavo.cli._screen import out
from octavo.cli._shared import FAILED, config_option, json_option, known_agent, loaded, print_json
from octavo.cli._words import CONDITION, said, translated
from octavo.core.values import VERBS, Verb

if TYPE_CHECKING:
    from octavo.config.load import Loaded

_PEOPLE = {0: "explain.nobody", 1: "explain.human"}
_TRUTHS = {True: "explain.holds", False: "explain.holds_not", None: "explain.unknown"}


@click.command(cls=Spoken, short_help="Say who may do what, and by which rule.")
@click.argument("who", metavar="WHO")
@click.argument("may", metavar="MAY", type=click.Choice(VERBS))
@click.argument("what", metavar="WHAT")
@click.option("--at", metavar="TIME", help="Instead of now: a time such as 2026-11-16T10:00+09:00.")
@click.option("--argument", "given", metavar="NAME=VALUE", multiple=True, help="An argument of the tool or prompt.")
@config_option
@json_option
@click.pass_context
def explain(
    ctx: click.Context,
    who: str,
    may: Verb,
    what: str,
    at: str | None,
    given: tuple[str, ...],
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Say whether WHO (an agent, or local) MAY (a verb) do that to WHAT (an address), and which rule decides.

    For example: octavo explain agent-brand read file://sops/hr/salary.md

    Where rules have conditions it says whether each holds, for the metadata that WHAT has.

    Exits with 1 if it is refused.
    """
    from octavo.app.once import when_read
    from octavo.cli.check import unlogged
    from octavo.ops import explain

    found = loaded(config_file)
    known_agent(found, who)
    question = explain.AccessQuestion(who, may, what, arguments=_arguments(given), at=_moment(at))
    with unlogged():
        explained = when_read(found, lambda server: explain.explain(server.works, question))
    decision = explained.decision
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
        "hidden": decision.hidden,
        "people": explained.people,
        "conditions": [
            {
                "rule": one.rule,
                "effect": "allow" if one.allow else "deny",
                "condition": str(one.condition),
                "holds": one.held,
            }
            for one in dict.fromkeys(explained.conditions)  # one that holds for two spellings is told once
        ],
    }
    if as_json:
        print_json(facts)
    else:
        out(*_sentence(facts, found).split("\n"))
    if not decision.allowed:
        ctx.exit(FAILED)


def _moment(text: str | None) -> float | None:
    from octavo.config.table import parse_moment

    try:
        return None if text is None else parse_moment(text)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--at") from None


def _arguments(given: tuple[str, ...]) -> dict[str, Any] | None:
    """Values as JSON where they are, as text else."""
    arguments: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise click.BadParameter("must be NAME=VALUE", param_hint="--argument")
        try:
            arguments[name] = json.loads(value)
        except ValueError:
            arguments[name] = value
    return arguments or None


def _index(rule: str) -> int | None:
    """The number in `policy[2]`; other names stand for what is decided without a rule."""
    number = rule.removeprefix("policy[").removesuffix("]")
    return int(number) if number != rule and number.isdigit() else None


def _sentence(facts: dict[str, Any], found: Loaded) -> str:
    verdict = "explain.may" if facts["allowed"] else "explain.may_not"
    lines = [said(verdict, who=facts["who"], verb=facts["may"], what=facts["what"])]
    if facts["index"] is not None:
        place = f" ({found.file}:{facts['line']})" if facts["line"] else ""
        effect = said("explain.allow") if facts["allowed"] else said("explain.deny")
        by = said("explain.by", rule=facts["rule"], place=place, effect=effect, pattern=facts["pattern"] or "")
        lines.append(by.rstrip())
    people = facts["people"]
    if people is not None:
        asked = said(_PEOPLE.get(people, "explain.people"), count=people)
        lines.append(said("explain.asked", people=asked))
    for one in facts["conditions"]:
        effect = said("explain.allow") if one["effect"] == "allow" else said("explain.deny")
        truth = said(_TRUTHS[one["holds"]])
        told = translated(one["condition"], CONDITION)
        lines.append(said("explain.condition", rule=one["rule"], effect=effect, condition=told, truth=truth))
    if facts["why"]:
        lines.append(said("explain.why", why=translated(facts["why"])))
    return "\n".join(lines)
