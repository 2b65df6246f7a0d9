"""`octavo check`: whether a configuration holds, and what it serves to whom."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from octavo.cli._help import Spoken
from octavo.cli._progress import progress
from octavo.cli._screen import out
from octavo.cli._shared import FAILED, config_option, json_option, print_json, say, tell
from octavo.cli._words import english, said
from octavo.config.problems import ConfigError, Problem

if TYPE_CHECKING:
    from octavo.config.load import Loaded
    from octavo.config.sections.source import Options


@click.command(cls=Spoken, short_help="Find every problem of configuration and handbook.")
@config_option
@click.option("--all", "everything", is_flag=True, help="Tell each problem by itself, however many there are.")
@json_option
@click.pass_context
def check(ctx: click.Context, config_file: Path | None, everything: bool, as_json: bool) -> None:
    """Find every problem of the configuration and of the handbook behind it, and say what it serves.

    Files of catalogs and prompts are checked one by one and beside each other, each problem with its file and line.
    Many remarks with the same message are told together. Exits with 1 if there is a problem; a warning is only worth
    a look.
    """
    from octavo.app.configuration import load
    from octavo.cli import _checks, _grouped
    from octavo.config.load import find

    path = config_file or find(Path.cwd())
    if path is None:
        raise click.UsageError(english("check.refused_no_file"))
    found, problems, warnings, folders = None, list[Problem](), list[Problem](), dict[str, tuple[str, ...]]()
    try:
        found = load(path)
        with unlogged(), progress("check") as shows:
            wrong, odd, folders = _checks.catalog_problems(found, shows)
        broken, others = _checks.prompt_problems(found)
        closed = found.config.audit.fail_closed
        state = [*_state(found, closed=closed)]
        problems = [*broken, *_checks.tool_problems(found), *wrong, *(state if closed else ())]
        warnings = [*found.warnings, *odd, *others, *(() if closed else state)]
    except ConfigError as error:
        problems = list(error.problems)
    if as_json:
        print_json(
            {
                "ok": not problems,
                "problems": [to_builtins(problem) for problem in problems],
                "warnings": [to_builtins(warning) for warning in warnings],
                **(_facts(found, folders) if found else {}),
            }
        )
    else:
        for level, line in _grouped.lines(problems, warnings if found else (), everything=everything):
            say(level, line)
        if begin := _grouped.first(problems, warnings, everything=everything):
            tell(begin)
        if found is not None:
            out(*_lines(found, folders))
    if problems:
        ctx.exit(FAILED)


def _state(found: Loaded, *, closed: bool) -> Iterator[Problem]:
    """Without it nothing is served, or nothing is kept."""
    from octavo.config.load import state_directory
    from octavo.stores.state import StateDirectory

    if fault := StateDirectory.fault(state_directory(found), fail_closed=closed):
        yield Problem(str(found.file), "state", fault.found, fault.advice)


@contextmanager
def unlogged() -> Iterator[None]:
    """What the house warns of while it opens is told here as a problem."""
    logger = logging.getLogger("octavo.app")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _facts(found: Loaded, folders: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    from octavo.app.essentials import among_writable
    from octavo.config.load import prompt_directories, state_directory

    config = found.config
    return {
        "file": str(found.file),
        "sources": [
            {
                "name": name,
                "kind": source.kind,
                "scheme": source.scheme,
                "exposed": source.expose,
                "serves": _serves(source, folders.get(name, ())),
                **({"reaches": [*hosts]} if (hosts := source.record.needs(source).hosts) else {}),
            }
            for name, source in config.sources.items()
        ],
        "agents": [
            {"id": name, "roles": list(agent.roles), "key": agent.digest is not None}
            for name, agent in config.agents.items()
        ],
        "rules": len(config.policy),
        "policy": english("check.rules", count=len(config.policy)) if config.policy else english("check.no_policy"),
        "prompts": [
            *(str(folder) for folder in prompt_directories(found)),
            *([english("check.starter")] if found.config.prompts.starter else []),
        ],
        "tools": [str(folder) for folder in config.tools.dirs],
        "plugins": [str(plugin.path or plugin.module or plugin.entry_point) for plugin in config.plugins],
        "state": str(state_directory(found)),
        "kept": [
            {"path": str(essential.path), "what": essential.what, "source": source, "there": essential.path.exists()}
            for essential, source in among_writable(found)
        ],
    }


def _serves(source: Options, folders: Sequence[str]) -> list[str]:
    """In the words of its kind; of a catalog, the `folders` that were found."""
    if source.over is not None and folders:
        return [f"{source.over.store}/{folder}".rstrip("/") for folder in folders]
    return [*source.record.serves(source)]


def _lines(found: Loaded, folders: Mapping[str, Sequence[str]]) -> Iterator[str]:
    facts = _facts(found, folders)
    yield facts["file"]
    yield said("check.sources")
    for source in facts["sources"]:
        exposed = f"{source['scheme']}://" if source["exposed"] else said("check.not_exposed")
        yield f"  {source['name']}: {source['kind']}, {exposed}, {', '.join(source['serves']) or said('check.empty')}"
    yield said("check.agents")
    for agent in facts["agents"]:
        roles = said("check.roles", roles=", ".join(agent["roles"])) if agent["roles"] else ""
        yield f"  {agent['id']}: {said('check.key') if agent['key'] else said('check.no_key')}{roles}"
    if not facts["agents"]:
        yield f"  {said('check.no_agents')}"
    rules = said("check.rules", count=facts["rules"]) if facts["rules"] else said("check.no_policy")
    yield from (said("check.policy"), f"  {rules}")
    prompts = [said("check.starter") if one == english("check.starter") else one for one in facts["prompts"]]
    parts = (("check.prompts", prompts), ("check.tools", facts["tools"]), ("check.plugins", facts["plugins"]))
    for key, names in parts:
        if names:
            yield from (said(key), f"  {', '.join(names)}")
    yield from (said("check.state"), f"  {facts['state']}")
    if facts["kept"]:
        yield said("check.kept")
    for kept in facts["kept"]:
        absent = "" if kept["there"] else said("check.absent")
        yield said("check.kept_one", path=kept["path"], what=kept["what"], source=kept["source"], absent=absent)
