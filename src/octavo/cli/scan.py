"""`octavo scan`: what redaction would hide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from octavo.cli._progress import progress
from octavo.cli._screen import out
from octavo.cli._shared import FAILED, config_option, json_option, loaded, print_json, say, tell

if TYPE_CHECKING:
    from octavo.app import Octavo
    from octavo.ops.scan import Sighting


@click.command(short_help="Say what redaction would hide, and where.")
@click.argument("target", required=False)
@config_option
@json_option
@click.pass_context
def scan(ctx: click.Context, target: str | None, config_file: Path | None, as_json: bool) -> None:
    """Say what redaction would hide, and where: never the secret itself.

    TARGET is a folder, or an address of the configuration. Without it, everything that the configuration exposes is
    looked at. Exits with 1 if something would be hidden.
    """
    from octavo.app.once import when_read
    from octavo.core.ref import Ref
    from octavo.ops.scan import scan as scanned

    is_address = target is not None and "://" in target
    found = loaded(config_file, None if target is None or is_address else Path(target))
    scope = Ref.parse(target) if target is not None and is_address else None
    with progress("scan") as shows:

        async def ask(server: Octavo) -> list[Sighting]:
            return [one async for one in scanned(server.works, scope, lambda number: shows(done=number))]

        sightings = when_read(found, ask)
    hidden = [one for one in sightings if one.line is not None]
    if as_json:
        print_json(
            {
                "hidden": [{"uri": str(one.ref), "line": one.line, "rule": one.what} for one in hidden],
                "unread": [{"uri": str(one.ref), "why": one.what} for one in sightings if one.line is None],
            }
        )
    else:
        for one in hidden:
            out(f"{one.ref}:{one.line}: {one.what}")
        for one in sightings:
            if one.line is None:
                say("warning", f"{one.ref} was not looked at: {one.what}")
        tell(f"{len(hidden)} to hide, in {len({one.ref for one in hidden})} resources")
    if hidden:
        ctx.exit(FAILED)
