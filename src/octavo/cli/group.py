"""The `octavo` command and everything below it."""

from __future__ import annotations

import click

from octavo.cli._logs import configure
from octavo.cli._shared import Group, Lazily
from octavo.core.version import VERSION

COMMANDS = Lazily(
    {
        "serve": "octavo.cli.serve:serve",
        "demo": "octavo.cli.demo:demo",
        "init": "octavo.cli.init:init",
        "install": "octavo.cli.install:install",
        "uninstall": "octavo.cli.install:uninstall",
        "check": "octavo.cli.check:check",
        "new": "octavo.cli.new:new",
        "doctor": "octavo.cli.doctor:doctor",
        "adapt": "octavo.cli.adapt:adapt",
        "explain": "octavo.cli.explain:explain",
        "policy": "octavo.cli.policy:policy",
        "ls": "octavo.cli.resources:ls",
        "cat": "octavo.cli.resources:cat",
        "tools": "octavo.cli.tools:tools",
        "watch": "octavo.cli.resources:watch",
        "scan": "octavo.cli.scan:scan",
        "prompts": "octavo.cli.prompts:prompts",
        "search": "octavo.cli.search:search",
        "index": "octavo.cli.search:index",
        "audit": "octavo.cli.audit:audit",
        "approvals": "octavo.cli.approvals:approvals",
        "keys": "octavo.cli.keys:keys",
        "questions": "octavo.cli.questions:questions",
        "state": "octavo.cli.state:state",
        "schema": "octavo.cli.schema:schema",
    }
)


@click.group(cls=Group, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "-V", "--version", prog_name="octavo", message="%(prog)s %(version)s")
def octavo() -> None:
    """One MCP server for everything an organisation's agents need to know.

    Begin with: octavo demo. With a folder of your own: octavo init DIR, or octavo serve DIR.
    """
    configure()
