"""What the commands share: options, how a configuration is found, and how errors are said.

Nothing heavy is imported at the top of a module of this room: `octavo --help` must be quick, and most
commands never need the protocol.
"""

from __future__ import annotations

import json
import os
import sys
from collections import UserDict
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from octavo.cli._logs import hidden
from octavo.config.problems import ConfigError
from octavo.core.errors import OctavoError

if TYPE_CHECKING:
    from octavo.config.load import Loaded

Command = TypeVar("Command", bound=Callable[..., Any])

USAGE, FAILED, INTERRUPTED = 2, 1, 130
LOCAL = "local"  # whoever started the process, where no agent was selected


class Lazily(UserDict[str, Any]):
    """Commands by `module:attribute`, each imported when it is asked for."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places
        super().__init__(dict.fromkeys(places))

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = self._places[name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


class Group(click.Group):
    """Says every error as `octavo: error: what (what to do)`, on stderr, without a traceback; and redacted, for a
    plugin may have had a word in it.

    Exit codes: 2 for wrong usage or configuration, 1 for a refusal or a failure, 130 for Ctrl-C.
    """

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            code: Any = super().main(*args, **{**extra, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as usage:
            usage.show()
            code = USAGE
        except click.ClickException as error:
            say("error", error.format_message())
            if isinstance(error, click.UsageError) and error.ctx is not None:
                click.echo(f"try: {error.ctx.command_path} --help", err=True)
            code = error.exit_code
        except ConfigError as error:
            for problem in error.problems:
                say("error", hidden(str(problem)))
            code = USAGE
        except OctavoError as error:
            say("error", hidden(_with_reason(error)))
            code = FAILED
        except (click.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except BrokenPipeError:  # the reader, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = FAILED
        except OSError as error:  # no room, no right, gone: what the machine says is what there is to say
            place = f"{error.filename}: " if error.filename else ""
            say("error", f"{place}{error.strerror or error}")
            code = FAILED
        sys.exit(code if isinstance(code, int) else 0)


def say(kind: str, message: str) -> None:
    click.echo(f"octavo: {kind}: {message}", err=True)


def tell(message: str) -> None:
    """News for the operator, apart from what the command gives on stdout."""
    click.echo(f"octavo: {message}", err=True)


def _with_reason(error: OctavoError) -> str:
    further = [str(error.data[key]) for key in ("why", "hint") if error.data.get(key)]
    return f"{error.message} ({'; '.join(further)})" if further else error.message


def config_option(command: Command) -> Command:
    return click.option(
        "--config",
        "-c",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The configuration. Default: octavo.yaml or octavo.toml in this folder.",
    )(command)


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


def as_option(command: Command) -> Command:
    return click.option(
        "--as", "as_who", metavar="AGENT", help="Act as this agent of the configuration. Default: local, without roles."
    )(command)


def loaded(
    config_file: Path | None, directory: Path | None = None, *, write: bool = False, here: bool = True
) -> Loaded:
    """The configuration that was asked for, or found here. Its warnings are said. Raises ConfigError.

    `here`: a folder is served to a program of this machine, which knows it by its path."""
    from octavo.config.load import find, load, zero

    if directory is not None and config_file is not None:
        raise click.UsageError("give a folder or --config, not both")
    if directory is not None:
        beside = find(directory)
        if beside is not None:
            say("warning", f"{beside} is not used; to use it: octavo serve --config {beside}")
        return zero(directory, write=write, here=here)
    if write:
        raise click.UsageError("--write is for a folder; in a configuration say write: true on the source")
    path = config_file or find(Path.cwd())
    if path is None:
        raise click.UsageError(
            "there is no octavo.yaml or octavo.toml here; name one with --config FILE, "
            "or serve a folder without one: octavo serve DIR"
        )
    found = load(path)
    for warning in found.warnings:
        say("warning", str(warning))
    return found


def known_agent(found: Loaded, who: str | None) -> str | None:
    """`who`, if the configuration has such an agent. Raises UsageError with the agents that it has."""
    if who is None or who == LOCAL or who in found.config.agents:
        return who
    agents = ", ".join(found.config.agents) or "none is configured"
    raise click.UsageError(f"there is no agent {who}; known agents: {agents}")


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
