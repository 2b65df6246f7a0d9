"""What the commands share: options, how a configuration is found, and how errors are said.

Nothing heavy is imported at the top of a module of this room: `octavo --help` must be quick, and most
commands never need the protocol.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import replace

from octavo.cli._logs import hidden
from octavo.cli._screen import notice, out
from octavo.cli._words import said, translated
from octavo.config.problems import ConfigError, Problem
from octavo.core.errors import OctavoError

if TYPE_CHECKING:
    from octavo.config.load import Loaded, StateAndAudit

Command = TypeVar("Command", bound=Callable[..., Any])

USAGE, FAILED, INTERRUPTED = 2, 1, 130
YES, NO = ("y", "yes", "예", "네"), ("n", "no", "아니오", "아니요")
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
    """Says every error as `octavo: error: what (what to do)`, on stderr, without a traceback; with --json as an object
    on stdout, where a program looks. Redacted, for a plugin may have had a word in it.

    Exit codes: 2 for wrong usage or configuration, 1 for a refusal or a failure, 130 for Ctrl-C.
    """

    def main(self, *args: Any, **extra: Any) -> Any:
        given = extra.get("args") or (args[0] if args else None) or sys.argv[1:]
        as_json = "--json" in itertools.takewhile(lambda one: one != "--", given)
        try:
            sys.exit(self._done(as_json, *args, **extra))
        except BrokenPipeError:  # the reader, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(FAILED)

    def _done(self, as_json: bool, *args: Any, **extra: Any) -> int:
        """The exit code; what went wrong is said."""
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
            return code if isinstance(code, int) else 0
        except click.exceptions.NoArgsIsHelpError as usage:
            usage.show()
            return USAGE
        except click.ClickException as error:
            _say_usage(error, as_json)
            return error.exit_code
        except ConfigError as error:
            _say_problems(error, as_json)
            return USAGE
        except OctavoError as error:
            if as_json:
                _say_json(error.reason, error.message, error.data)
            else:
                say("error", hidden(_with_reason(error)))
            return FAILED
        except (click.Abort, KeyboardInterrupt):
            return INTERRUPTED
        except UnicodeEncodeError:  # of a name of a file: what is printed is escaped
            if sys.getfilesystemencoding() == "utf-8":
                raise
            message = "Python was told that names of files are ASCII here, and one is not: set PYTHONUTF8=1"
            _say_json("system", message) if as_json else say("error", translated(message))
            return FAILED
        except BrokenPipeError:
            raise
        except OSError as error:  # no room, no right, gone: what the machine says is what there is to say
            _say_system(error, as_json)
            return FAILED


def _say_usage(error: click.ClickException, as_json: bool) -> None:
    if as_json:
        _say_json("usage", _meant(error))
        return
    say("error", translated(_meant(error)))
    if isinstance(error, click.UsageError) and error.ctx is not None:
        out(translated(f"try: {error.ctx.command_path} --help"), err=True)


def _say_problems(error: ConfigError, as_json: bool) -> None:
    if as_json:
        _say_json("configuration", "the configuration does not hold together", {"problems": error.problems})
        return
    for problem in error.problems:
        say("error", hidden(in_words(problem)))


def _say_system(error: OSError, as_json: bool) -> None:
    place = f"{error.filename}: " if error.filename else ""
    if as_json:
        _say_json("system", f"{place}{error.strerror or error}")
    else:
        say("error", f"{place}{translated(str(error.strerror or error))}")


# Names that options have elsewhere: click looks for letters alone.
_ELSEWHERE = {
    "--host": "--http", "--bind": "--http", "--address": "--http", "--listen": "--http", "--transport": "--http",
    "--agent": "--as", "--user": "--as", "--read-write": "--write",
}  # fmt: skip


def _meant(error: click.ClickException) -> str:
    """Of an option that is not there, with the one of this command that does what others call so."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        near = _ELSEWHERE.get(error.option_name, "")
        if any(near in one.opts for one in error.ctx.command.params):
            return f"{error.message} Did you mean {near!r}?"
    return error.format_message()


def _say_json(reason: str, message: str, facts: Mapping[str, Any] = MappingProxyType({})) -> None:
    """A reason among the facts is the closer one, as on the wire."""
    from msgspec import to_builtins

    told = to_builtins({"error": {"reason": reason, **facts, "message": message}}, enc_hook=str)
    out(*hidden(json.dumps(told, ensure_ascii=False, indent=2)).split("\n"))


def say(kind: str, message: str) -> None:
    """`kind` is error, warning or note; coloured where it is a terminal that wants colours."""
    notice(message, begin=f"octavo: {_coloured(kind)}: ")


def _coloured(kind: str) -> str:
    word = said(f"say.{kind}")
    colour = {"error": "red", "warning": "yellow"}.get(kind)
    if colour is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty():
        return word
    return click.style(word, fg=colour, bold=True)


def agreed(question: str, *, default: bool) -> bool:
    """Asks until it is answered, in one of the languages that are spoken here. Ctrl-C and the end of input abort."""
    offer = "Y/n" if default else "y/N"
    while True:
        answer: str = click.prompt(f"{question} [{offer}]", default="", show_default=False, err=True)
        word = answer.strip().casefold()
        if word in ("", *YES, *NO):
            return default if not word else word in YES
        say("error", said("say.yes_or_no"))


def tell(message: str) -> None:
    """News for the operator, apart from what the command gives on stdout."""
    notice(message, begin="octavo: ")


def in_words(problem: Problem) -> str:
    """A problem of the configuration or of the handbook, in the language of whoever reads it."""
    return str(replace(problem, message=translated(problem.message), hint=translated(problem.hint)))


def _with_reason(error: OctavoError) -> str:
    further = [translated(str(error.data[key])) for key in ("why", "hint") if error.data.get(key)]
    message = translated(error.message)
    return f"{message} ({'; '.join(further)})" if further else message


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
    config_file: Path | None, *directories: Path | None, write: bool = False, here: bool = True, keyless: bool = False
) -> Loaded:
    """The configuration that was asked for, or found here. Its warnings are said. Raises ConfigError.

    `here`: folders are served to a program of this machine, which knows them by their paths.
    `keyless`: that no agent has a key yet is said and stops nobody."""
    from octavo.app.configuration import load, zero

    folders = _folders(config_file, directories)
    if folders:
        return zero(*folders, write=write, here=here)
    if write:
        raise click.UsageError("--write is for a folder; in a configuration say write: true on the source")
    found = load(_file(config_file), keyless=keyless)
    for warning in found.warnings:
        say("warning", in_words(warning))
    return found


def kept_state(config_file: Path | None, *directories: Path) -> StateAndAudit:
    """What is kept by servers of the configuration that was asked for, or found here, or of these folders: also where
    its variables are not set and what it serves is not there. Raises ConfigError."""
    from octavo.app.configuration import kept_by, zero
    from octavo.config.load import kept_of

    folders = _folders(config_file, directories)
    if not folders:
        return kept_by(_file(config_file))
    found = kept_of(folders)
    if not found.state.is_dir():
        zero(*folders)  # a slip of the hand is told as it is elsewhere
    return found


def _folders(config_file: Path | None, directories: Iterable[Path | None]) -> list[Path]:
    """Those that are served without a configuration."""
    from octavo.config.load import find

    folders = [one for one in directories if one is not None]
    if folders and config_file is not None:
        raise click.UsageError("give a folder or --config, not both")
    for beside in filter(None, map(find, folders)):
        say("warning", translated(f"{beside} is not used; to use it: octavo serve --config {beside}"))
    return folders


def _file(config_file: Path | None) -> Path:
    from octavo.config.load import find

    path = config_file or find(Path.cwd())
    if path is None:
        raise click.UsageError(
            "there is no octavo.yaml or octavo.toml here; name one with --config FILE, "
            "or serve a folder without one: octavo serve DIR"
        )
    return path


def known_agent(found: Loaded, who: str | None) -> str | None:
    """`who`, if the configuration has such an agent. Raises UsageError with the agents that it has."""
    if who is None or who == LOCAL or who in found.config.agents:
        return who
    agents = ", ".join(found.config.agents) or "none is configured"
    raise click.UsageError(f"there is no agent {who}; known agents: {agents}")


def print_json(value: Any) -> None:
    out(*json.dumps(value, ensure_ascii=False, indent=2).split("\n"))
