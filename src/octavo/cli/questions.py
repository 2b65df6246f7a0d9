"""`octavo questions`: what agents ask people whose client shows no forms, and the answers to it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from octavo.cli._screen import out
from octavo.cli._shared import LOCAL, config_option, json_option, loaded, print_json, tell

if TYPE_CHECKING:
    from octavo.app import Octavo
    from octavo.config.load import Loaded
    from octavo.core.forms import Action, Asked
    from octavo.core.ports.stores import Opens
    from octavo.stores.questions import StoredQuestions

T = TypeVar("T")


@click.group()
def questions() -> None:
    """Questions of agents that wait for somebody.

    An answer counts once, for the agent that asked and exactly the question that is shown.
    """


@questions.command("list")
@config_option
@json_option
def list_(config_file: Path | None, as_json: bool) -> None:
    """List what waits for an answer, and messages that nobody has seen."""
    from octavo.core.clock import iso

    standing = _known(loaded(config_file), lambda kept: kept.standing())
    if as_json:
        print_json({"questions": [_facts(one) for one in standing]})
        return
    for one in standing:
        state = "waits" if one.answer is None else "answered"
        out(f"{one.id}  {state:8}  until {iso(one.expires)}  {one.form.text[:200]}")


@questions.command()
@click.argument("question_id", metavar="ID")
@config_option
@json_option
def show(question_id: str, config_file: Path | None, as_json: bool) -> None:
    """Show one: who asks, what, and which fields the answer has."""
    one = _known(loaded(config_file), lambda kept: kept.named(question_id))
    if as_json:
        print_json(_facts(one))
        return
    out(f"who asks: {one.who}", f"tool: {one.tool}", f"question: {one.form.text}")
    for name, field in one.form.schema.get("properties", {}).items():
        out(f"field {name}: {json.dumps(field, ensure_ascii=False)}")


@questions.command()
@click.argument("question_id", metavar="ID")
@click.argument("fields", metavar="[FIELD=VALUE]...", nargs=-1)
@config_option
def answer(question_id: str, fields: tuple[str, ...], config_file: Path | None) -> None:
    """Answer it. A VALUE is a text, or JSON where the field is no text: octavo questions answer ID agreed=true."""
    found = loaded(config_file)
    schema = _known(found, lambda kept: kept.named(question_id)).form.schema.get("properties", {})
    content = dict(_field(one, schema) for one in fields)
    one = _answered(found, question_id, "accept", content)
    tell(f"{one.id} is answered")


@questions.command()
@click.argument("question_id", metavar="ID")
@config_option
def decline(question_id: str, config_file: Path | None) -> None:
    """Refuse to answer it; the agent is told so."""
    tell(f"{_answered(loaded(config_file), question_id, 'decline', {}).id} is declined")


def _known(found: Loaded, ask: Callable[[StoredQuestions], Awaitable[T]]) -> T:
    from octavo.app.stores import looked_at

    return looked_at(found, lambda opens: ask(_kept(opens)))


def _kept(opens: Opens) -> StoredQuestions:
    from octavo.stores.questions import StoredQuestions

    return StoredQuestions(opens, lambda step, asked: None)


def _answered(found: Loaded, name: str, action: Action, content: Mapping[str, Any]) -> Asked:
    """Raises NotFound or Conflict for one that cannot be answered any more, InvalidParams for what does not fit."""
    from octavo.app.once import changing, inside
    from octavo.core.forms import Answer

    async def ask(server: Octavo) -> Asked:
        with changing(server, LOCAL, f"questions {action}", question=name):
            return await _kept(server.home.store).answer(name, LOCAL, Answer(action, content))

    return inside(found, ask)


def _field(text: str, schema: dict[str, Any]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{text} is no FIELD=VALUE")
    if schema.get(name, {}).get("type") == "string":
        return name, value
    try:
        return name, json.loads(value)
    except ValueError:
        raise click.UsageError(f'{name} takes JSON, such as 3, true or ["a"], and not {value}') from None


def _facts(one: Asked) -> dict[str, Any]:
    from octavo.core.clock import iso

    return {
        "id": one.id,
        "who": one.who,
        "tool": one.tool,
        "question": one.form.text,
        "schema": dict(one.form.schema),
        "asked": iso(one.asked),
        "expires": iso(one.expires),
        "answered": one.answer is not None,
    }
