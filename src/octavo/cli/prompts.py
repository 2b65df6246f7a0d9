"""`octavo prompts`: what a client would get, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from octavo.cli._screen import give, out
from octavo.cli._shared import as_option, config_option, json_option, known_agent, loaded, print_json

if TYPE_CHECKING:
    from octavo.core.tools import PromptInfo, PromptMessage


@click.group(short_help="List and render prompts, as clients get them.")
def prompts() -> None:
    """Prompts, as clients get them: through the same pipeline, with the same policy and audit."""


@prompts.command("list")
@config_option
@as_option
@json_option
def list_(config_file: Path | None, as_who: str | None, as_json: bool) -> None:
    """List the prompts that an agent may use, with their arguments; those in brackets may be left out."""
    from octavo.app import queries

    found = loaded(config_file)
    infos = queries.prompts(found, known_agent(found, as_who))
    if as_json:
        print_json({"prompts": [_told(info) for info in infos]})
        return
    for info in infos:
        arguments = " ".join(one.name if one.required else f"[{one.name}]" for one in info.arguments)
        out(f"{info.name}  {arguments}", f"    {info.title or info.description}")


@prompts.command()
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@config_option
@as_option
@click.option("--locale", metavar="TAG", help="The language, such as ko or en-GB.")
@json_option
def render(
    name: str,
    arguments: tuple[str, ...],
    config_file: Path | None,
    as_who: str | None,
    locale: str | None,
    as_json: bool,
) -> None:
    """Fill the prompt NAME with arguments, and print its messages.

    Lists are JSON, as on the wire: octavo prompts render summarise 'uris=["doc://policies/leave"]' --locale ko
    """
    from octavo.app import queries
    from octavo.core.languages import is_tag
    from octavo.tools.builtin.prompts import shape

    given: dict[str, str] = {}
    for one in arguments:
        key, separator, value = one.partition("=")
        if not separator or key in given:
            raise click.UsageError(f"{one[:80]}: arguments are written KEY=VALUE, each once")
        given[key] = value
    if locale is not None and not is_tag(locale):
        raise click.UsageError(f"{locale[:40]} is no language tag, such as ko or en-GB")
    found = loaded(config_file)
    result = queries.rendered(found, known_agent(found, as_who), name, given, locale)
    if as_json:
        print_json(shape(result))
        return
    for message in result.messages:
        give(f"[{message.role}]\n{_shown(message)}\n\n")


def _told(info: PromptInfo) -> dict[str, object]:
    return {
        "name": info.name,
        "title": info.title,
        "description": info.description,
        "arguments": [
            {"name": one.name, "description": one.description, "required": one.required} for one in info.arguments
        ],
    }


def _shown(message: PromptMessage) -> str:
    from octavo.core.tools import Audio, Embedded, Image, Text

    block = message.content
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Image | Audio):
        return f"({block.mime_type}, {len(block.data)} bytes)"
    if isinstance(block, Embedded):
        body = block.content.body
        return f"--- {block.uri}\n{body if isinstance(body, str) else f'({len(body)} bytes)'}"
    return f"--- {block.uri} (linked, {block.entry.size} bytes)"
