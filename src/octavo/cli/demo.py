"""`octavo demo`: a folder to play with, served at once."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from importlib import resources
from pathlib import Path

import click

from octavo.cli._shared import loaded
from octavo.cli.clients import Connection, ready_lines

AGENTS = ("agent-brand", "agent-orchestrator")  # as in examples/starter/octavo.yaml
KEYS = ".keys"


@click.command(short_help="Make a small handbook with a policy, and serve it here.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("octavo-demo"),
    show_default=True,
    help="Where the folder is made.",
)
@click.option("--port", type=click.IntRange(1, 65535), default=8321, show_default=True, help="On 127.0.0.1.")
@click.option("--no-serve", is_flag=True, help="Only make the folder.")
def demo(directory: Path, port: int, no_serve: bool) -> None:
    """Make a small handbook with a policy, and serve it on this machine.

    The folder is yours: edit it, and run the command again to serve it again.
    """
    from octavo.cli import _run
    from octavo.config.units import Bind

    directory = directory.absolute()
    fresh = make(directory)
    found = loaded(directory / "octavo.yaml")
    click.echo(f"{'Made' if fresh else 'Found'} {directory}: change whatever you like.\n")
    for name in AGENTS:
        key = (directory / KEYS / name).read_text(encoding="utf-8").strip()
        click.echo(f"  {name:<20} {key}")
    click.echo(_what_to_try(directory, port))
    if not no_serve:
        _run.serve_http(found, bind=Bind("127.0.0.1", port), as_who=None, no_auth=False)


def make(directory: Path) -> bool:
    """Copies the example and gives every agent a key of its own. False if it was there already.

    Raises UsageError for a folder that holds something else.
    """
    fresh = not (directory / "octavo.yaml").is_file()
    keys = directory / KEYS
    if directory.is_dir() and any(directory.iterdir()) and (fresh or not keys.is_dir()):
        raise click.UsageError(f"{directory} holds something else; choose another folder with --dir")
    if fresh:
        with resources.as_file(resources.files("octavo") / "examples" / "starter") as starter:
            shutil.copytree(starter, directory, dirs_exist_ok=True, copy_function=shutil.copyfile)
        (directory / ".gitignore").write_text(f"{KEYS}/\n.octavo/\n", encoding="utf-8")
    keys.mkdir(mode=0o700, exist_ok=True)
    for name in AGENTS:
        _make_key(keys / name)
    return fresh


def _make_key(file: Path) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(f"octavo_{secrets.token_urlsafe(32)}\n")


def _what_to_try(directory: Path, port: int) -> str:
    config = directory / "octavo.yaml"
    agent = AGENTS[0]
    installed = shutil.which("octavo")
    program = (installed,) if installed else (sys.executable, "-m", "octavo")
    octavo = "octavo" if installed else shlex.join(program)
    connection = Connection(
        url=f"http://127.0.0.1:{port}/mcp",
        command=(*program, "serve", "--config", str(config), "--as", agent),
        agent=agent,
        key_file=str(directory / KEYS / agent),
    )
    connect = "\n".join(f"  {name}\n    {line}" for name, line in ready_lines(connection))
    return f"""
In another terminal, in {directory}:
  {octavo} ls
  {octavo} cat file://sops/brand/voice.md --as {agent}
  {octavo} explain {agent} read file://sops/hr/salary-review.md
  {octavo} watch            # and edit a file
  {octavo} audit verify     # every request is on record

Connect a client:
{connect}
"""
