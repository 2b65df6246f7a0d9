"""`octavo schema`: the JSON Schema of octavo.yaml."""

from __future__ import annotations

import click


@click.command()
def schema() -> None:
    """Print the JSON Schema of octavo.yaml, for editors.

    In VS Code and others, begin octavo.yaml with the line
    "# yaml-language-server: $schema=FILE" after: octavo schema > FILE.
    """
    from octavo.config.schema import schema_text

    click.echo(schema_text(), nl=False)
