"""`octavo new`: a file of a handbook to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from octavo.cli._shared import config_option, loaded

KINDS = ("sop", "doc", "skill", "agent")


@click.command(short_help="Begin an SOP, a document, a skill or an agent.")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("--title", required=True, help="What people call it, in any language.")
@config_option
def new(kind: str, name: str, title: str, config_file: Path | None) -> None:
    """Write a valid file to begin with, where the catalog of that KIND keeps its files.

    NAME is the address, or its path: octavo new sop brand/press-release --title "Press release". Nothing that is
    there is overwritten. The file is a draft: write on, and see whether it holds with octavo check.
    """
    from octavo.cli import _run

    created = _run.created(loaded(config_file), kind, name, title)
    click.echo(f"{created.ref}  {created.path}")
