"""The `octavo` command and everything below it."""

from __future__ import annotations

import click

from octavo import __version__
from octavo.cli._shared import Group
from octavo.cli.audit import audit
from octavo.cli.check import check
from octavo.cli.demo import demo
from octavo.cli.explain import explain
from octavo.cli.resources import cat, ls, watch
from octavo.cli.schema import schema
from octavo.cli.serve import serve


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="octavo", message="%(prog)s %(version)s")
def octavo() -> None:
    """One MCP server for everything an organisation's agents need to know.

    Begin with: octavo demo. Or serve a folder: octavo serve DIR.
    """


for command in (serve, demo, check, explain, ls, cat, watch, audit, schema):
    octavo.add_command(command)
