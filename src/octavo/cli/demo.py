"""`octavo demo`: an example organisation, served at once."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from pathlib import Path

import click

from octavo.cli._screen import out
from octavo.cli._shared import loaded
from octavo.cli.clients import ConnectionDetails, ready_lines
from octavo.cli.serve import announce

NAME = "maison-haru"
# As in its octavo.yaml.
AGENTS = ("agent-brand", "agent-finance", "agent-hr", "agent-ops", "agent-orchestrator")
KEYS = ".keys"
NOT_COPIED = shutil.ignore_patterns(KEYS, ".octavo")


@click.command(short_help="Make an example organisation with a policy, and serve it here.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("octavo-demo"),
    show_default=True,
    help="Where the folder is made.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), help="On 127.0.0.1, instead of what serve.http.bind of the folder says."
)
@click.option("--no-serve", is_flag=True, help="Only make the folder.")
def demo(directory: Path, port: int | None, no_serve: bool) -> None:
    """Make an example organisation with a policy, and serve it on this machine.

    The folder is yours: edit it, and run the command again to serve it again.
    """
    from octavo.app import serve as server
    from octavo.config.units import Bind

    directory = directory.absolute()
    fresh = make(directory)
    found = loaded(directory / "octavo.yaml")
    http = found.config.serve.http
    bind = http.bind if port is None else Bind("127.0.0.1", port)
    if bind.socket is not None:
        raise click.UsageError(
            f"The demo shows itself at a port, not at {bind}: give --port, or use octavo serve --http"
        )

    def show() -> None:
        out(
            f"{'Made' if fresh else 'Found'} {directory}: change whatever you like.",
            "",
            "  The key of each agent stands in a file that only you can read:",
            *(f"  {name:<20} {directory / KEYS / name}" for name in AGENTS),
            *_what_to_try(directory, f"{'http' if http.tls is None else 'https'}://{bind}").split("\n"),
        )

    def ready(address: str) -> None:
        show()
        announce(address)

    if no_serve:
        show()
    else:
        server.serve_http(found, bind=bind, as_who=None, no_auth=False, ready=ready)  # shown once it listens


def make(directory: Path) -> bool:
    """Copies the example and gives every agent a key of its own. False if it was there already.

    Raises UsageError for a folder that holds something else.
    """
    config = directory / "octavo.yaml"
    fresh = not config.is_file()
    if directory.is_dir() and any(directory.iterdir()) and (fresh or not _is_example(config)):
        raise click.UsageError(f"{directory} holds something else; choose another folder with --dir")
    if fresh:
        shutil.copytree(_example(), directory, dirs_exist_ok=True, copy_function=shutil.copyfile, ignore=NOT_COPIED)
        (directory / ".gitignore").write_text(f"{KEYS}/\n.octavo/\n", encoding="utf-8")
    keys = directory / KEYS
    keys.mkdir(mode=0o700, exist_ok=True)
    for name in AGENTS:
        _make_key(keys / name)
    return fresh


def _example() -> Path:
    """In an installed package it stands beside the rooms, in a checkout beside `src`."""
    package = Path(__file__).parents[1]
    places = [above / "examples" / NAME for above in (package, package.parents[1])]
    return next(place for place in places if place.is_dir())


def _is_example(config: Path) -> bool:
    """Whether it asks for the keys that are made here, whatever else was changed in it."""
    text = config.read_text(encoding="utf-8", errors="replace")
    return all(f"file:{KEYS}/{name}" in text for name in AGENTS)


def _make_key(file: Path) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(f"octavo_{secrets.token_urlsafe(32)}\n")


def _what_to_try(directory: Path, server: str) -> str:
    config = directory / "octavo.yaml"
    agent = AGENTS[0]
    installed = shutil.which("octavo")
    program = (installed,) if installed else (sys.executable, "-m", "octavo")
    octavo = "octavo" if installed else shlex.join(program)
    connection = ConnectionDetails(
        url=f"{server}/mcp",
        command=(*program, "serve", "--config", str(config), "--as", agent),
        agent=agent,
        key_file=str(directory / KEYS / agent),
    )
    connect = "\n".join(f"  {name}\n    {line}" for name, line in ready_lines(connection))
    return f"""
  MCP     {connection.url}
  health  {server}/healthz

In another terminal, in {directory}:
  {octavo} ls
  {octavo} cat sop://brand/campaign-brief --as {agent}
  {octavo} cat sop://hr/salary-policy --as {agent}     # refused, with the reason
  {octavo} explain {agent} read sop://hr/salary-policy
  {octavo} cat "skill://?match=예산이 남았나요" --as {agent}
  {octavo} watch "sop://brand/*" --as {agent}     # and edit handbook/sops/brand/campaign-brief.md
  {octavo} check     # every fault of the handbook, with file and line
  {octavo} audit verify     # every request is on record

Connect a client:
{connect}
"""
