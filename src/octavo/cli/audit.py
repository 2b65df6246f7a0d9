"""`octavo audit verify`: whether the audit log is what was written."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from octavo.cli._shared import FAILED, config_option, json_option, loaded, print_json, say


@click.group()
def audit() -> None:
    """The record of every request."""


@audit.command()
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@config_option
@json_option
@click.pass_context
def verify(ctx: click.Context, directory: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Walk all chains of the audit log, of a configuration or of a folder (DIR) that is served without one.

    Exits with 1 if a chain is broken.
    """
    from octavo.cli import _run

    state, report = _run.verified(loaded(config_file, directory))
    if as_json:
        print_json({"ok": report.ok, "records": report.records, "chains": [asdict(chain) for chain in report.chains]})
    else:
        for chain in report.chains:
            if chain.broken is None:
                click.echo(f"ok      {chain.chain}: records {chain.records}, {chain.end}")
            else:
                broken = chain.broken
                click.echo(f"BROKEN  {chain.chain}: {broken.file}:{broken.line}: {broken.reason}")
            for warning in chain.warnings:
                say("warning", warning)
        click.echo(f"{state / 'audit'}: chains {len(report.chains)}, records {report.records}")
    if not report.ok:
        ctx.exit(FAILED)
