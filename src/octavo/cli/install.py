"""`octavo install` and `octavo uninstall`: an entry in the file of an MCP client."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from octavo.cli._logs import hidden
from octavo.cli._screen import out
from octavo.cli._shared import LOCAL, agreed, as_option, config_option, known_agent, loaded, say, tell
from octavo.cli._visible import nothing_for, sees_nothing
from octavo.cli._words import english, said
from octavo.cli.client_files import Left, change
from octavo.cli.client_files.address import holds_secret, is_address
from octavo.cli.client_files.place import ClientFile
from octavo.cli.client_files.receipts import Receipts
from octavo.cli.client_files.records import CLIENTS, Client, ServerEntry, place_of

if TYPE_CHECKING:
    from octavo.cli.client_files.change import FileChange

Command = TypeVar("Command", bound=Callable[..., Any])
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Clients put values in their place, or programs' output: `${env:HOME}`, `$HOME`, `{env:HOME}`, `{file:x}`.
FILLED = re.compile(r"[{}]|\$\w")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
WIDEST = 200  # columns of the difference: some clients keep everything in one line
# Below which a value is nobody else's business, whatever it looks like; OpenCode says environment.
HELD: Final = frozenset(("env", "environment", "headers", "http_headers"))


def _client_options(command: Command) -> Command:
    for option in (
        click.option("--dry-run", is_flag=True, help="Show the difference and write nothing."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--name", default="octavo", show_default=True, help="The name of the entry."),
        click.option("--project", is_flag=True, help="The file of the project in this folder, not your own."),
        click.argument("client", type=click.Choice(list(CLIENTS))),
    ):
        command = option(command)
    return command


@click.command(short_help="Put Octavo into the file of an MCP client.")
@_client_options
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@config_option
@as_option
@click.option("--write", is_flag=True, help="Let the client create, change, move and delete files of DIR.")
@click.option("--url", help="A server that runs already, such as http://127.0.0.1:8321/mcp.")
@click.option("--key-env", metavar="VARIABLE", help="With --url: the environment variable that holds the key.")
def install(
    client: str,
    directory: Path | None,
    config_file: Path | None,
    as_who: str | None,
    write: bool,
    url: str | None,
    key_env: str | None,
    project: bool,
    name: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Put Octavo into the file of CLIENT: it will start octavo serve DIR, or connect to --url.

    The difference is shown first. Comments, order and indentation of the file stay, a copy of it is kept, and octavo
    uninstall CLIENT takes it back. A key is never written: entries name the variable that holds it.
    """
    server = _remote(url, key_env) if url else _local(directory, config_file, as_who, write=write)
    if url and (directory or config_file or as_who or write):
        raise click.UsageError(
            "--url is a server that runs already; DIR, --config, --as and --write are for octavo serve"
        )
    if key_env and not url:
        raise click.UsageError("--key-env is the key for --url; a command needs none")
    with _sentences():
        known, place, receipts = _found(client, name, project=project)
        with receipts.alone() if not dry_run else nullcontext():
            wanted = change.installation(known, place, name, server, receipts)
            if wanted.nothing:
                tell(said("install.there", file=place.file))
                return
            _show(known, wanted, own=(*known.key, name))
            if dry_run or not _agreed(yes=yes):
                return
            backup = change.install(wanted, name, receipts)
        tell(said("install.written", file=place.file, client=known.title))
        if backup is not None:
            tell(said("install.backup", backup=backup))
        if key_env:
            tell(said("install.key", variable=key_env, client=known.title))
        if project and not url:
            tell(said("install.paths", file=place.file))
        if not url and _passing():
            say("warning", said("install.cache", command=server.command[0]))
        tell(said("install.back", command=_back(client, name, project=project)))


@click.command(short_help="Take Octavo out of the file of an MCP client.")
@_client_options
def uninstall(client: str, project: bool, name: str, yes: bool, dry_run: bool) -> None:
    """Take Octavo out of the file of CLIENT.

    The file becomes to the byte what it was, if nobody else has changed it since; otherwise only the entry goes.
    """
    with _sentences():
        known, place, receipts = _found(client, name, project=project)
        with receipts.alone() if not dry_run else nullcontext():
            wanted = change.removal(known, place, name, receipts)
            if wanted.nothing:
                tell(said("install.not_there", file=place.file, name=name))
            else:
                _show(known, wanted)
                if dry_run or not _agreed(yes=yes):
                    return
            if not dry_run:
                change.uninstall(wanted, name, receipts)
        if not wanted.nothing:
            tell(said("install.gone" if wanted.after is None else "install.taken", file=place.file, name=name))


class _sentences:
    """Says why a file was left, instead of a traceback."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Left):
            refused = click.ClickException(english(f"install.{error.sentence}", **error.values))
            raise refused from None


def _remote(url: str, key_env: str | None) -> ServerEntry:
    if not is_address(url):  # which is not shown: what is no address can hide a secret from the rules
        raise click.UsageError("--url is not a plain address such as http://127.0.0.1:8321/mcp")
    if FILLED.search(url):
        raise click.UsageError("--url: clients would fill in braces and $ themselves; write the address out")
    if holds_secret(url):
        raise click.UsageError(
            "--url holds a secret, or what looks like one, which would stand in the file; "
            "give --key-env VARIABLE instead, or write the entry by hand"
        )
    if key_env and not VARIABLE.fullmatch(key_env):
        raise click.UsageError("--key-env is the name of an environment variable, such as OCTAVO_KEY, not the key")
    return ServerEntry(url=url, key_env=key_env or "")


def _local(directory: Path | None, config_file: Path | None, as_who: str | None, *, write: bool) -> ServerEntry:
    found = loaded(config_file, directory, write=write)
    known_agent(found, as_who)
    if sees_nothing(found, as_who or LOCAL):
        say("warning", nothing_for(found, as_who or LOCAL))
    served = [str(found.base)] if found.file is None else ["--config", str(found.file.absolute())]
    if FILLED.search(served[-1]):
        raise click.UsageError(f"{served[-1]}: clients would fill in braces and $ themselves; rename the folder")
    who = ["--as", as_who] if as_who else []
    return ServerEntry((*_program(), "serve", *served, *who, *(["--write"] if write else [])))


def _program() -> list[str]:
    """This Octavo, by a path that means the same wherever a client starts it."""
    script = Path(sysconfig.get_path("scripts"), "octavo.exe" if sys.platform == "win32" else "octavo")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "octavo"]


def _passing() -> bool:
    """Whether this Octavo stands in a cache, as `uvx` makes it, that somebody may empty."""
    return any((folder / "CACHEDIR.TAG").is_file() for folder in Path(sys.prefix).parents)


def _found(name: str, entry: str, *, project: bool) -> tuple[Client, ClientFile, Receipts]:
    if not NAME.fullmatch(entry):
        raise click.UsageError("--name: letters, digits, - and _, at most 64")
    client, home = CLIENTS[name], Path.home()
    if project and not client.project:
        raise Left("no_project", client=client.title)
    here = Path.cwd()
    places = [here / one for one in client.project] if project else place_of(client, os.environ, home)
    file = next((one for one in places if os.path.lexists(one)), places[0])
    base = here if project else home if file.is_relative_to(home) else _standing(file.parent)
    if not base.is_dir():
        raise Left("no_base", folder=base)
    return client, ClientFile(base, file, project), Receipts(_state(home))


def _state(home: Path) -> Path:
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if given.startswith("/") else home / ".local" / "state") / "octavo" / "clients"


def _standing(folder: Path) -> Path:
    return next((one for one in (folder, *folder.parents) if one.is_dir()), folder)


def _show(client: Client, wanted: FileChange, own: tuple[str, ...] = ()) -> None:
    """The difference, without secrets of neighbours. `own` is what is written now."""
    for line in _difference(client, wanted, own):
        whole = hidden(line)  # first: half a secret looks like none
        out(whole if len(whole) <= WIDEST else f"{whole[:WIDEST]}…")


def _difference(client: Client, wanted: FileChange, own: tuple[str, ...]) -> Iterator[str]:
    old, new = shown(client, wanted.before), shown(client, wanted.after, own)
    file, nowhere = str(wanted.place.file), "/dev/null"
    names = (nowhere if wanted.before is None else file, nowhere if wanted.after is None else file)
    yield from difflib.unified_diff(old, new, names[0], names[1], lineterm="")


def _agreed(*, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        raise Left("no_answer")
    if agreed(said("install.sure"), default=False):
        return True
    tell(said("install.nothing"))
    return False


def _back(client: str, name: str, *, project: bool) -> str:
    named = ("--name", name) if name != "octavo" else ()
    return shlex.join(("octavo", "uninstall", client, *(("--project",) if project else ()), *named))


def shown(client: Client, data: bytes | None, own: tuple[str, ...] = ()) -> list[str]:
    """Its lines. `own` is the path of the entry that this command writes, which is shown as it is."""
    text = "" if data is None else data.decode("utf-8-sig")
    return client.format.veiled(text, HELD, own).splitlines()
