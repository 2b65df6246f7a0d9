"""`octavo serve`: over stdio, or over HTTP."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from octavo.cli._logs import configure
from octavo.cli._shared import as_option, config_option, known_agent, loaded, tell
from octavo.cli._words import said

if TYPE_CHECKING:
    from octavo.config.load import Loaded
    from octavo.config.units import Bind

CONFIGURED = "configured"  # `--http` without an address


@click.command()
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@config_option
@click.option(
    "--http",
    metavar="[HOST:PORT|unix:PATH]",
    is_flag=False,
    flag_value=CONFIGURED,
    help="Serve over HTTP instead of stdio, there or where serve.http.bind says.",
)
@as_option
@click.option("--no-auth", is_flag=True, help="HTTP without keys, for programs of this machine only.")
@click.option("--write", is_flag=True, help="Let clients create, change, move and delete files of DIR.")
@click.option(
    "--toolsets",
    metavar="NAMES",
    help="Groups of built-in tools, with commas: data, files, filesystem, people, process, prompts, seed, web. "
    "Default: as configured.",
)
@click.option("--tools", "only", metavar="NAMES", help="Offer these tools alone, with commas, of whatever toolset.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="How much is logged on stderr.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines for people, or one JSON object each.",
)
def serve(
    directory: Path | None,
    config_file: Path | None,
    http: str | None,
    as_who: str | None,
    no_auth: bool,
    write: bool,
    toolsets: str | None,
    only: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Serve a folder (DIR) or a configuration to MCP clients.

    Without --http it talks MCP on stdin and stdout, as clients expect of a command that they start.
    """
    from octavo.cli import _run

    configure(log_level, log_format)
    if http not in (None, CONFIGURED) and directory is None and config_file is None and Path(http).is_dir():
        http, directory = CONFIGURED, Path(http)  # `octavo serve --http DIR` reads as if DIR were the address
    found = loaded(config_file, directory, write=write, here=http is None)
    found = _with_tools(_with_toolsets(found, toolsets), only)
    known_agent(found, as_who)
    if http is None:
        if no_auth:
            raise click.UsageError("--no-auth is about HTTP; on stdio whoever starts the process is in already")
        _run.serve_stdio(found, as_who=as_who, ready=lambda: _wait_with_words(found))
        return
    bind = _bind(http, found)
    guard(found, bind, as_who=as_who, no_auth=no_auth)
    _run.serve_http(found, bind=bind, as_who=as_who, no_auth=no_auth, ready=announce)


def announce(address: str) -> None:
    """Where an HTTP server listens: to people in their language, to programs that wait for the line always in one."""
    if sys.stderr.isatty():
        tell(said("serve.at", address=address))
        tell(said("serve.end"))
    else:
        tell(f"serving MCP at {address}")


def _wait_with_words(found: Loaded) -> None:
    """For somebody who typed the command, and would see nothing happen. A client that starts it hears nothing."""
    if not sys.stdin.isatty():
        return
    command = _typed()
    tell(said("serve.waiting"))
    tell(said("serve.connect", line=shlex.join(("claude", "mcp", "add", "octavo", "--", *command))))
    http = ("--http",) if _has_keys(found) else ("--http", "--no-auth")
    tell(said("serve.or_http", command=shlex.join((*command, *http))))
    tell(said("serve.end"))


def _typed() -> list[str]:
    """This command, with paths that mean the same wherever a client starts it."""
    return ["octavo", *(os.path.abspath(one) if os.path.exists(one) else one for one in sys.argv[1:])]


def _with_toolsets(found: Loaded, names: str | None) -> Loaded:
    from octavo.config.load import with_toolsets

    if names is None:
        return found
    try:
        return with_toolsets(found, tuple(name.strip() for name in names.split(",") if name.strip()))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _with_tools(found: Loaded, names: str | None) -> Loaded:
    from octavo.config.load import with_tools

    return (
        found if names is None else with_tools(found, tuple(name.strip() for name in names.split(",") if name.strip()))
    )


def _bind(http: str, found: Loaded) -> Bind:
    from octavo.config.units import UNIX, parse_bind

    if http == CONFIGURED:
        return found.config.serve.http.bind
    if http.startswith(UNIX):
        http = UNIX + os.path.abspath(http.removeprefix(UNIX))
    try:
        return parse_bind(f"127.0.0.1:{http}" if http.isdigit() else http)
    except ValueError as error:
        raise click.UsageError(f"--http {http}: {error}") from None


def guard(found: Loaded, bind: Bind, *, as_who: str | None, no_auth: bool) -> None:
    """Refuses an HTTP server that strangers could use. Raises UsageError that says what to do."""
    if no_auth:
        if not bind.loopback:
            raise click.UsageError(
                f"--no-auth on {bind} would let other machines in; "
                "bind 127.0.0.1, or give agents keys and drop --no-auth"
            )
        return
    if as_who is not None:
        raise click.UsageError("over HTTP the key says who asks; --as needs --no-auth")
    if bind.socket is not None and found.config.serve.http.peers:
        return
    if not _has_keys(found):
        raise click.UsageError(
            "HTTP needs agents with keys, and there are none; give an agent a key under agents: in octavo.yaml "
            "or with octavo keys new, or add --no-auth to let in every program of this machine"
        )


def _has_keys(found: Loaded) -> bool:
    from octavo.config.checks import proves_callers
    from octavo.config.load import state_directory

    return proves_callers(found.config, state_directory(found))
