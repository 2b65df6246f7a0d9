"""`octavo serve`: over stdio, or over HTTP."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from octavo.cli._help import Spoken
from octavo.cli._logs import configure
from octavo.cli._shared import LOCAL, as_option, config_option, known_agent, loaded, say, tell
from octavo.cli._visible import nothing_for, sees_nothing
from octavo.cli._words import said

if TYPE_CHECKING:
    from octavo.config.load import Loaded
    from octavo.config.units import Bind

CONFIGURED = "configured"  # `--http` without an address


@click.command(cls=Spoken)
@click.argument("directories", metavar="[DIR]...", nargs=-1, type=click.Path(path_type=Path))
@config_option
@click.option(
    "--http",
    metavar="[HOST:PORT|unix:PATH]",
    is_flag=False,
    flag_value=CONFIGURED,
    help="Serve over HTTP instead of stdio, there or where serve.http.bind says.",
)
@click.option("--port", type=click.IntRange(0, 65535), help="Serve over HTTP at this port; 0 takes a free one.")
@as_option
@click.option("--no-auth", is_flag=True, help="HTTP without keys, for programs of this machine only.")
@click.option("--write", is_flag=True, help="Let clients create, change, move and delete files of every DIR.")
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
    directories: tuple[Path, ...],
    config_file: Path | None,
    http: str | None,
    port: int | None,
    as_who: str | None,
    no_auth: bool,
    write: bool,
    toolsets: str | None,
    only: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Serve folders (DIR) or a configuration to MCP clients.

    Without --http it talks MCP on stdin and stdout, as clients expect of a command that they start.
    """
    from octavo.app import serve as server

    configure(log_level, log_format)
    if http not in (None, CONFIGURED) and config_file is None and Path(http).is_dir():
        # `octavo serve --http DIR` reads as if DIR were the address.
        http, directories = CONFIGURED, (Path(http), *directories)
    if port is not None:
        if http not in (None, CONFIGURED):
            raise click.UsageError("--http names a port already; give it or --port")
        http = CONFIGURED
    found = loaded(config_file, *directories, write=write, here=http is None)
    found = _with_tools(_with_toolsets(found, toolsets), only)
    known_agent(found, as_who)
    from octavo.cli._out_of_reach import nothing_in

    for folder in filter(nothing_in, directories):
        say("warning", said("serve.empty", folder=folder))
    if (http is None or no_auth) and sees_nothing(found, as_who or LOCAL):
        say("warning", nothing_for(found, as_who or LOCAL))
    if http is None:
        if no_auth:
            raise click.UsageError("--no-auth is about HTTP; on stdio whoever starts the process is in already")
        command = _again(found, as_who, write=write, toolsets=toolsets, only=only)
        # For somebody who typed the command, and would see nothing happen. A client that starts it hears nothing.
        words = [*_words_of_waiting(found, command)] if sys.stdin.isatty() else []
        server.serve_stdio(found, as_who=as_who, ready=lambda: _tell_all(words))
        return
    bind = _bind(http, port, found)
    guard(found, bind, as_who=as_who, no_auth=no_auth)

    def ready(address: str) -> None:
        announce(address)
        if sys.stderr.isatty():
            _tell_all(_words_of_writing(found))

    server.serve_http(found, bind=bind, as_who=as_who, no_auth=no_auth, ready=ready)


def announce(address: str) -> None:
    """Where an HTTP server listens: to people in their language, to programs that wait for the line always in one."""
    if sys.stderr.isatty():
        tell(said("serve.at", address=address))
        tell(said("serve.end"))
    else:
        tell(f"serving MCP at {address}")


def _tell_all(words: Iterable[str]) -> None:
    for line in words:
        tell(line)


def _words_of_waiting(found: Loaded, command: Sequence[str]) -> Iterator[str]:
    yield said("serve.waiting")
    choose = ("--as", "AGENT") if found.config.policy and found.config.agents and "--as" not in command else ()
    yield said("serve.connect", line=shlex.join(("claude", "mcp", "add", "octavo", "--", *command, *choose)))
    http = ("--http",) if _has_keys(found) else ("--http", "--no-auth")
    yield said("serve.or_http", command=shlex.join((*command, *http)))
    yield from _words_of_writing(found)
    yield said("serve.end")


def _words_of_writing(found: Loaded) -> Iterator[str]:
    """Which changes ask a human and which do not, where there can be any."""
    config = found.config
    if any(getattr(source, "write", False) for source in config.sources.values()):
        asks = config.plugins or any(rule.approve for rule in config.policy) or config.approval.after_untrusted
        yield said("serve.write_asks") if asks else said("serve.write")


def _again(
    found: Loaded, as_who: str | None, *, write: bool, toolsets: str | None, only: str | None
) -> tuple[str, ...]:
    """This command, with paths that mean the same wherever a client starts it."""
    from octavo.config.load import served_folders

    what = ("--config", str(found.file.absolute())) if found.file else tuple(map(str, served_folders(found)))
    options = {"--as": as_who, "--toolsets": toolsets, "--tools": only}
    chosen = (word for name, value in options.items() if value is not None for word in (name, value))
    return ("octavo", "serve", *what, *(("--write",) if write else ()), *chosen)


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


def _bind(http: str, port: int | None, found: Loaded) -> Bind:
    from octavo.config.units import UNIX, parse_bind

    if http == CONFIGURED:
        bind = found.config.serve.http.bind
        if port is None:
            return bind
        if bind.socket is not None:
            raise click.UsageError(f"--port: serve.http.bind is {bind}; name host and port with --http")
        return bind._replace(port=port)
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
    http = found.config.serve.http
    if not bind.loopback and bind != http.bind and http.tls is None and not http.trusted_proxies:
        say("warning", said("serve.plain", bind=bind))  # of what the configuration says, it has warned already


def _has_keys(found: Loaded) -> bool:
    from octavo.app.identities import proves_callers

    return proves_callers(found)
