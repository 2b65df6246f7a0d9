"""`octavo schema`: the JSON Schema of octavo.yaml."""

from __future__ import annotations

from pathlib import Path

import click

from octavo.cli._screen import give
from octavo.cli._shared import loaded


@click.command()
@click.option(
    "--config",
    "-c",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also the kinds of sources that the plugins of this configuration bring.",
)
def schema(config_file: Path | None) -> None:
    """Print the JSON Schema of octavo.yaml, for editors.

    In VS Code and others, begin octavo.yaml with the line
    "# yaml-language-server: $schema=FILE" after: octavo schema > FILE.
    """
    from octavo.app.configuration import KINDS
    from octavo.config.schema import schema_text

    kinds = KINDS if config_file is None else loaded(config_file).kinds
    give(schema_text(kinds))
