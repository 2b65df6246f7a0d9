"""`octavo init`: a first configuration for a folder as it lies there."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from octavo.cli._help import Spoken
from octavo.cli._progress import progress
from octavo.cli._screen import give
from octavo.cli._shared import NO, YES, agreed, in_words, json_option, print_json, say, tell
from octavo.cli._words import english, said, translated

if TYPE_CHECKING:
    from octavo.cli.proposal.parts import Parts
    from octavo.cli.proposal.tries import Tried
    from octavo.ops.sights import AgentSight

SHOWN = 8  # of what was left out
ANSWERS = frozenset((*YES, *NO))  # of whoever expects another question


@click.command(cls=Spoken, short_help="Write a first octavo.yaml for a folder as it lies there.")
@click.argument("directory", metavar="[DIR]", default=Path(), type=click.Path(path_type=Path))
@click.option("--agents", "names", metavar="NAMES", help="Ids of the agents, with commas: the first sees everything.")
@click.option("--write", is_flag=True, help="Add an agent that may write, in the folder drafts.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show the proposal and write nothing.")
@click.option("--force", is_flag=True, help="Replace an octavo.yaml that is there; a copy of it is kept.")
@json_option
def init(
    directory: Path,
    names: str | None,
    write: bool,
    yes: bool,
    dry_run: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Look at DIR (or this folder), propose what to serve to whom, and write a first octavo.yaml.

    Documents, procedures, skills, agents and prompts are found by where they stand; each agent is shown with what the
    policy would let it see. Nothing but octavo.yaml is written, and with --write the folder drafts. The look passes
    by hidden folders, links and folders of programs. What is written passes octavo check.
    """
    base = _folder(directory)
    agents = _ids(names)
    old = _old(base, force=force or dry_run)
    found = _tried(base, agents)
    if found.proposal is None:
        raise click.ClickException(_why_nothing(found, directory))
    asks = not (yes or dry_run or as_json) and sys.stdin.isatty()
    if not as_json:
        give("\n".join(_proposal(found, directory, write=write)), nl=True)
    if asks:
        write, wanted = _asked(found, write=write)
        if wanted != [agent.name for agent in found.proposal.agents]:
            found = _tried(base, wanted)
        give("\n".join(_sights(found, write=write)), nl=True)
        if not agreed(said("init.sure", file=directory / "octavo.yaml"), default=True):
            tell(said("install.nothing"))
            return
    elif not (yes or dry_run):
        raise click.ClickException(english("init.refused_no_answer"))
    text = _text(found, write=write)
    written = not dry_run and _write(base, text, old, write=write)
    if written:
        tell(said("init.written", file=directory / "octavo.yaml"))
    if as_json:
        print_json({**_facts(found), "file": str(base / "octavo.yaml"), "written": written, "text": text})
    elif dry_run:
        give(f"\n{text}")
    else:
        give("\n".join(_next(found, directory, write=write)), nl=True)


def _folder(directory: Path) -> Path:
    """Raises UsageError for what is no folder that can be looked at."""
    base = directory.absolute()
    if not base.exists():
        raise click.UsageError(english("init.refused_no_folder", folder=directory))
    if not base.is_dir():
        raise click.UsageError(english("init.refused_is_file", file=directory, folder=directory.parent))
    if not os.access(base, os.R_OK | os.X_OK):
        raise click.ClickException(english("init.refused_unreadable", folder=directory))
    return Path(os.path.normpath(base))


def _ids(names: str | None) -> list[str]:
    from octavo.config.words import check_agent

    found = [name for one in (names or "").split(",") if (name := one.strip())]
    for name in found:
        if name.casefold() in ANSWERS:
            raise click.BadParameter(english("init.refused_answer", name=name), param_hint="--agents")
        try:
            check_agent(name)
        except ValueError as wrong:
            raise click.BadParameter(f"{name}: {wrong}", param_hint="--agents") from None
    if len(set(found)) < len(found):
        raise click.BadParameter(english("init.refused_twice"), param_hint="--agents")
    return found


def _old(base: Path, *, force: bool) -> Path | None:
    """The configuration that stands there already. Raises ClickException for one that must not be replaced."""
    from octavo.config.load import NAMES, find

    there = next((base / name for name in NAMES if os.path.lexists(base / name)), None)
    if there is not None and not force:
        raise click.ClickException(english("init.refused_there", file=there))
    for above in base.parents:
        if (other := find(above)) is not None:
            say("note", said("init.above", file=other))
            break
    return there


def _tried(base: Path, names: Sequence[str]) -> Tried:
    from octavo.cli.check import unlogged
    from octavo.cli.proposal.folder import look
    from octavo.cli.proposal.tries import tried

    with progress("look") as shows:
        looked = look(base, shows)
    with unlogged(), progress("check") as shows:
        return tried(looked, names, shows)


def _why_nothing(found: Tried, directory: Path) -> str:
    if not found.left_out:
        return english("init.refused_empty", folder=directory)
    return english("init.refused_nothing_holds", folder=directory, problem=found.left_out[0])


def _asked(found: Tried, *, write: bool) -> tuple[bool, list[str]]:
    """Ctrl-C at a question ends it, and nothing is written."""
    assert found.proposal is not None
    usual = ",".join(agent.name for agent in found.proposal.agents)
    while True:
        answer = click.prompt(said("init.ask_agents"), default=usual, err=True)
        try:
            names = _ids(answer)
            break
        except click.BadParameter as wrong:
            say("error", translated(wrong.message))
    return write or agreed(said("init.ask_write"), default=False), names


def _text(found: Tried, *, write: bool) -> str:
    from octavo.cli.proposal.tries import with_author

    assert found.proposal is not None
    return (with_author(found.proposal) if write else found.proposal).text


def _write(base: Path, text: str, old: Path | None, *, write: bool) -> bool:
    """All of it or nothing. Raises ClickException with why."""
    from octavo.app.configuration import load_text
    from octavo.cli.client_files import Left
    from octavo.cli.client_files.place import ClientFile, content, replace
    from octavo.cli.proposal.parts import DRAFTS

    place = ClientFile(base, base / "octavo.yaml", True)
    drafts = base / DRAFTS
    made = write and not drafts.exists()
    try:
        if made:
            drafts.mkdir()
        load_text(text, file=place.file)
        if old is not None:
            tell(said("init.kept", file=_copy(old).name))
        replace(place, content(place), text.encode())
    except BaseException as error:
        if made and drafts.is_dir():
            drafts.rmdir()
        if isinstance(error, Left):
            raise click.ClickException(english(f"install.{error.sentence}", **error.values)) from None
        raise
    return True


def _copy(old: Path) -> Path:
    """Beside it, under the first name that is free."""
    number = 1
    while True:
        copy = old.with_name(f"{old.name}.{number}.old")
        try:
            with copy.open("xb") as opened:
                opened.write(old.read_bytes())
            return copy
        except FileExistsError:
            number += 1


def _proposal(found: Tried, directory: Path, *, write: bool) -> Iterator[str]:
    assert found.proposal is not None
    look, parts = found.proposal.look, found.proposal.parts
    yield said("init.looked", folder=directory, count=len(look.files))
    if not look.whole:
        yield f"  {said('init.not_whole')}"
    if look.linked:
        yield f"  {said('init.linked', count=look.linked)}"
    if look.unread:
        yield f"  {said('init.unread', count=look.unread)}"
    yield said("init.sources")
    for part in parts.catalogs:
        folder = "/".join(part.path) or "."
        yield f"  {f'{part.scheme}://':<10} {said('init.from', count=len(part.names), folder=folder)}"
    if parts.files:
        folders = ", ".join("/".join(one) or "." for one in parts.files)
        yield f"  {'file://':<10} {said('init.files', folder=folders)}"
    if parts.attached:
        endings = ", ".join(f"{count} {ending}" for ending, count in parts.endings.items())
        yield f"  {f'{parts.beside}://':<10} {said('init.attached', endings=endings)}"
    if parts.prompts:
        yield f"  {'prompt://':<10} {said('init.files', folder=', '.join('/'.join(one) for one in parts.prompts))}"
    if parts.others:
        folders = ", ".join("/".join(one) for one in parts.others[:SHOWN])
        yield f"  {said('init.others', folders=folders)}"
    yield from _unserved(parts)
    if found.left_out:
        yield said("init.left_out")
        yield from (f"  {in_words(one)}" for one in found.left_out[:SHOWN])
        if len(found.left_out) > SHOWN:
            yield f"  {said('init.more', count=len(found.left_out) - SHOWN)}"
    yield from _sights(found, write=write)


def _unserved(parts: Parts) -> Iterator[str]:
    """What would be missing, and the lines of octavo.yaml that serve it."""
    from octavo.sources.catalog.declaration import FORMS

    if not parts.unserved:
        return
    counts = _endings(parts)
    shown = ", ".join(f"{count} {ending}" for ending, count in [*counts.items()][:SHOWN])
    more = f", {said('init.more', count=rest)}" if (rest := sum([*counts.values()][SHOWN:])) else ""
    yield said("init.unserved", count=len(parts.unserved), endings=f"{shown}{more}")
    plain = [ending for ending in counts if ending not in FORMS]
    if plain:
        endings = json.dumps(plain[:SHOWN], ensure_ascii=False)
        name = "attachments" if parts.files else "files"
        key = "init.serve_more" if parts.attached else "init.serve_beside"
        scheme = ", scheme: attachment" if parts.files else ""
        hide = json.dumps([".*", *parts.apart], ensure_ascii=False)
        yield f"  {said(key, name=name, endings=endings, scheme=scheme, hide=hide)}"
        return
    folders = [one for one in parts.unserved if len(one) > 1 and not one[0].startswith(".")]
    folder = Counter(one[0] for one in folders).most_common(1)[0][0] if folders else said("init.folder_apart")
    endings = json.dumps([*counts][:SHOWN], ensure_ascii=False)
    yield f"  {said('init.serve_apart', folder=json.dumps(folder, ensure_ascii=False), endings=endings)}"


def _endings(parts: Parts) -> dict[str, int]:
    """Of what would not be served, the most frequent first."""
    from octavo.cli.proposal.parts import suffix

    return dict(Counter(map(suffix, parts.unserved)).most_common())


def _sights(found: Tried, *, write: bool) -> Iterator[str]:
    from octavo.cli.proposal.agents import AUTHOR

    assert found.proposal is not None
    yield said("init.agents")
    for name, sight in found.sees.items():
        yield f"  {name}: {_sight(sight)}"
    if write:
        yield f"  {AUTHOR}: {said('init.author_sees')}"


def _sight(sight: AgentSight) -> str:
    total = sum(sight.seen.values())
    counts = ", ".join(f"{count} {scheme}://" for scheme, count in sight.seen.items())
    told = said("init.sees", count=total, readable=sight.readable, findable=sight.findable, counts=counts)
    return f"{told}\n    {' '.join(sight.examples)}"


def _next(found: Tried, directory: Path, *, write: bool) -> Iterator[str]:
    from octavo.cli.proposal.agents import AUTHOR

    first = AUTHOR if write else next(iter(found.sees))
    yield said("init.next")
    if os.path.normpath(directory) != os.curdir:
        yield f"  cd {shlex.quote(str(directory))}"
    lines = (
        (f"octavo ls --as {shlex.quote(first)}", "init.next_ls"),
        (f"octavo install CLIENT --as {shlex.quote(first)}", "init.next_install"),
        (f"octavo keys new {shlex.quote(first)}", "init.next_key"),
        ("octavo serve --http", "init.next_http"),
    )
    width = max(len(command) for command, _ in lines)
    for command, key in lines:
        yield f"  {command:<{width}}  # {said(key)}"
    yield f"  {said('init.ignore')}"


def _facts(found: Tried) -> dict[str, Any]:
    from msgspec import to_builtins

    assert found.proposal is not None
    look, parts = found.proposal.look, found.proposal.parts
    return {
        "folder": str(look.base),
        "looked": {"files": len(look.files), "whole": look.whole, "linked": look.linked, "unread": look.unread},
        "sources": [
            {
                "name": part.source,
                "kind": part.kind,
                "scheme": part.scheme,
                "path": "/".join(part.path),
                "without": ["/".join(one) for one in part.without],
                "entries": len(part.names),
            }
            for part in parts.catalogs
        ],
        "files": ["/".join(one) or "." for one in parts.files],
        "attached": parts.endings,
        "unserved": _endings(parts),
        "prompts": ["/".join(one) for one in parts.prompts],
        "agents": [
            {
                "id": agent.name,
                "what": [*agent.what],
                "sees": found.sees[agent.name].seen,
                "readable": found.sees[agent.name].readable,
                "findable": found.sees[agent.name].findable,
                "examples": found.sees[agent.name].examples,
            }
            for agent in found.proposal.agents
        ],
        "leftOut": [to_builtins(one) for one in found.left_out],
    }
