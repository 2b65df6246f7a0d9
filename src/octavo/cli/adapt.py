"""`octavo adapt`: configurations of other shapes become octavo.yaml."""

from __future__ import annotations

from pathlib import Path

import click

from octavo.cli._screen import give
from octavo.cli._shared import say


@click.command(short_help="Turn another configuration into octavo.yaml.")
@click.argument("file", type=click.Path(path_type=Path))
def adapt(file: Path) -> None:
    """Print an octavo.yaml for FILE, a configuration of another shape in JSON or YAML.

    Known are allowedDirectories with its neighbours (also as a server/config message), caching, invalidation and
    subscriptions, and the mcpServers of a client. What could not be carried over is listed at the beginning, and on
    stderr. For example: octavo adapt mcp.json > octavo.yaml
    """
    from octavo.config.adapt import adapt as adapted
    from octavo.sources.kinds import FOLDERS

    try:
        made = adapted(file.read_text(encoding="utf-8-sig"), file, FOLDERS)
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not UTF-8") from None
    for one in made.left:
        say("warning", f"not carried over: {one}")
    give(str(made))
