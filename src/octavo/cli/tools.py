"""`octavo tools`: what a model is told that it can do."""

from __future__ import annotations

from pathlib import Path

import click

from octavo.cli._shared import as_option, config_option, json_option, known_agent, loaded, print_json


@click.command(short_help="Say which tools a model sees, and what they cost it.")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@config_option
@as_option
@click.option("--write", is_flag=True, help="As octavo serve DIR --write would offer them.")
@json_option
def tools(directory: Path | None, config_file: Path | None, as_who: str | None, write: bool, as_json: bool) -> None:
    """Say which tools of a folder (DIR) or a configuration an agent sees: name, description, and tokens.

    Tokens are estimated: a quarter of the bytes that a client is sent. They are spent in every conversation.
    """
    from octavo.cli import _run

    found = loaded(config_file, directory, write=write)
    offered = _run.offered(found, known_agent(found, as_who))
    total = sum(one["tokens"] for one in offered)
    if as_json:
        print_json({"tools": offered, "tokens": total})
        return
    for one in offered:
        click.echo(f"{one['name']}  ({one['tokens']} tokens{'' if one['readOnly'] else ', may change something'})")
        click.echo(click.wrap_text(one["description"], 100, "    ", "    "))
    click.echo(f"{len(offered)} tools, {total} tokens")
