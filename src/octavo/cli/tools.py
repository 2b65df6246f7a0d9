"""`octavo tools`: tools as an agent has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from octavo.cli._screen import give, out
from octavo.cli._shared import FAILED, as_option, config_option, json_option, known_agent, loaded, print_json, tell

if TYPE_CHECKING:
    from octavo.core.tools import Block, ToolInfo, ToolResult


class ListingGroup(click.Group):
    """Without the name of a command it lists."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["list", *args])


@click.group(cls=ListingGroup, short_help="Say which tools a model sees, or call one as an agent would.")
def tools() -> None:
    """Say which tools a model sees, or call one as an agent would. Without a command: octavo tools list."""


@tools.command("list", short_help="Say which tools a model sees, and what they cost it.")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@config_option
@as_option
@click.option("--write", is_flag=True, help="As octavo serve DIR --write would offer them.")
@json_option
def offered(directory: Path | None, config_file: Path | None, as_who: str | None, write: bool, as_json: bool) -> None:
    """Say which tools of a folder (DIR) or a configuration an agent sees: name, description, and tokens.

    Tokens are estimated: a quarter of the bytes that a client is sent. They are spent in every conversation.
    """
    from octavo.app import queries

    found = loaded(config_file, directory, write=write)
    listed = queries.offered(found, known_agent(found, as_who))
    total = sum(one["tokens"] for one in listed)
    if as_json:
        print_json({"tools": listed, "tokens": total})
        return
    for one in listed:
        out(f"{one['name']}  ({one['tokens']} tokens{'' if one['readOnly'] else ', may change something'})")
        out(*click.wrap_text(one["description"], 100, "    ", "    ").split("\n"))
    out(f"{len(listed)} tools, {total} tokens")


@tools.command(short_help="Call a tool as an agent would.")
@click.argument("name")
@click.argument("given", metavar="[KEY=VALUE]...", nargs=-1)
@config_option
@as_option
@json_option
@click.pass_context
def test(
    ctx: click.Context, name: str, given: tuple[str, ...], config_file: Path | None, as_who: str | None, as_json: bool
) -> None:
    """Call the tool NAME as an agent would: with its rights, its limits and its audit record.

    An argument is KEY=VALUE; what is no text is written as JSON: octavo tools test count uri=file://a.md least=3
    tags='["a", "b"]'. The cause of a failure, which an agent is not told, is said on stderr. Exits with 1 if the tool
    gave an error.
    """
    from octavo.app import queries

    found = loaded(config_file)
    who = known_agent(found, as_who)
    result = queries.invoked(found, who, name, lambda info: arguments(info, given), progress)
    if as_json:
        print_json(shape(result))
    else:
        for block in result.content:
            give(_shown(block), nl=True)
    if result.is_error:
        ctx.exit(FAILED)


def arguments(info: ToolInfo | None, given: tuple[str, ...]) -> dict[str, Any]:
    """By the types that the schema says. Raises UsageError for what is not KEY=VALUE."""
    properties = {} if info is None else info.input_schema.get("properties", {})
    found: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{one} is no KEY=VALUE")
        found[key] = value if properties.get(key, {}).get("type") == "string" else _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def progress(value: float, total: float | None, message: str | None) -> None:
    tell(f"progress: {value:g}{'' if total is None else f' of {total:g}'}{f' {message}' if message else ''}")


def shape(result: ToolResult) -> dict[str, Any]:
    blocks = [{"type": type(block).__name__.lower(), "text": _shown(block)} for block in result.content]
    structured = {} if result.structured is None else {"structuredContent": dict(result.structured)}
    return {"content": blocks, **structured, "isError": result.is_error}


def _shown(block: Block) -> str:
    text = getattr(block, "text", None)
    if text is not None:
        return str(text)
    data = getattr(block, "data", None)
    if data is not None:
        return f"[{getattr(block, 'mime_type', '')}, {len(data):,} bytes]"
    return f"[{getattr(block, 'uri', '')}]"
