"""`octavo state`: what a server keeps, moved to another store, backed up and brought back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from octavo.cli._shared import LOCAL, config_option, json_option, loaded, print_json, say, tell

if TYPE_CHECKING:
    from octavo.stores.totals import Totals

FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def state() -> None:
    """What servers keep: the store, the audit log, the secret."""


@state.command()
@config_option
@click.option(
    "--to",
    "target",
    type=FILE,
    required=True,
    metavar="FILE",
    help="A configuration whose `store` is the target: a copy of yours, with another `store`.",
)
@json_option
def move(config_file: Path | None, target: Path, as_json: bool) -> None:
    """Copy everything from the store of the configuration to that of another one. No server may run.

    The target has to be empty. What was written is read back and compared; the source stays as it is.
    """
    from octavo.ops.state import move as moved

    found = moved(loaded(config_file, keyless=True), loaded(target, keyless=True), LOCAL)
    if as_json:
        print_json({"pairs": found.pairs, "records": found.records, "digest": found.digest})
        return
    tell(f"moved and read back: {_counted(found)}")
    tell(f"now let your configuration have the `store` of {target}, and start; the old store is as it was")


@state.command()
@click.argument("file", type=FILE)
@config_option
@click.option("--force", is_flag=True, help="Replace FILE.")
@json_option
def backup(file: Path, config_file: Path | None, force: bool, as_json: bool) -> None:
    """Copy store, audit log and secret into FILE, also while servers run.

    Whoever has FILE has the secret and all that is kept: only you can read it, keep it so.
    """
    from octavo.ops.state import back_up

    made = back_up(loaded(config_file, keyless=True), file, LOCAL, replace=force)
    if as_json:
        print_json({"file": str(file), "pairs": made.store.pairs, "records": made.store.records, "time": made.time})
    else:
        tell(f"{file} has {_counted(made.store)}, {_files(len(made.parts) - 2)} of the audit log and the secret")


@state.command()
@click.argument("file", type=FILE)
@config_option
@json_option
def restore(file: Path, config_file: Path | None, as_json: bool) -> None:
    """Bring back what FILE holds, into a state folder and a store in which nothing is.

    All of FILE is looked at first; of one that is damaged nothing is brought back.
    """
    from octavo.ops.state import restore as restored

    done = restored(loaded(config_file, keyless=True), file, LOCAL)
    kept = done.manifest.store
    if as_json:
        told = {"pairs": kept.pairs, "records": kept.records, "time": done.manifest.time}
        print_json({**told, "chains": done.chains, "broken": done.broken})
        return
    tell(f"brought back, as it was at {done.manifest.time}: {_counted(kept)}, {done.chains} audit chain(s)")
    if done.broken:
        say("warning", f"{done.broken} audit chain(s) do not hold, and did not in the backup: octavo audit verify")


def _counted(kept: Totals) -> str:
    return f"{kept.records:,} changes and {kept.pairs:,} values"


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"
