"""`octavo doctor`: what this machine gives to a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from octavo.cli._screen import out
from octavo.cli._shared import FAILED, config_option, json_option, loaded, print_json

if TYPE_CHECKING:
    from octavo.config.load import Loaded
    from octavo.ops.lint import Diagnosis

MARKS = {"ok": "ok     ", "less": "less   ", "problem": "PROBLEM"}


@click.command(short_help="Say what this machine gives, and what it lacks.")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@config_option
@click.option("--write", is_flag=True, help="As octavo serve DIR --write would need it.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, directory: Path | None, config_file: Path | None, write: bool, as_json: bool) -> None:
    """Say what this machine gives to a folder (DIR) or a configuration, and what to do where it lacks something.

    "less" is slower or weaker than it could be. Exits with 1 if something that is needed does not work.
    """
    findings = _examined(loaded(config_file, directory, write=write))
    sound = all(finding.state != "problem" for finding in findings)
    if as_json:
        print_json({"ok": sound, "findings": [to_builtins(finding) for finding in findings]})
    else:
        for finding in findings:
            out(f"{MARKS[finding.state]}  {finding.about}: {finding.found}")
            if finding.advice:
                out(f"{' ' * 9}{finding.advice}")
    if not sound:
        ctx.exit(FAILED)


def _examined(found: Loaded) -> list[Diagnosis]:
    from octavo.ops.doctor import examine

    findings = [*examine(found)]
    if any(one.state == "problem" for one in findings):
        return findings  # sources would only fail for the same reasons
    from octavo.app.once import inside
    from octavo.ops.lint import unreachable

    return [*findings, *inside(found, lambda server: unreachable(server.works, found.config), leaves_traces=False)]
