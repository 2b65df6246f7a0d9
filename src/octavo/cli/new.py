"""`octavo new`: a file to begin with, of a handbook, a prompt or code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from octavo.cli._screen import out
from octavo.cli._shared import config_option, loaded, tell
from octavo.sources.kinds import BEGUN

if TYPE_CHECKING:
    from octavo.config.load import Loaded

KINDS = (*BEGUN, "prompt", "tool", "source")


@click.command(short_help="Begin an SOP, a document, a skill, an agent, a prompt, a tool or a source.")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("--title", help="What people call it, in any language. A prompt, a tool and a source can be without.")
@config_option
def new(kind: str, name: str, title: str | None, config_file: Path | None) -> None:
    """Write a valid file to begin with, where the configuration keeps files of that KIND.

    NAME is the address, or its path: octavo new sop brand/press-release --title "Press release". Nothing that is
    there is overwritten. The file is a draft: write on, and see whether it holds with octavo check.

    A tool is a Python function: octavo new tool count_words, then octavo tools test count_words. A source is a Python
    module with a test beside it that passes: octavo new source tickets.
    """
    if kind == "tool":
        _tool(name, title, config_file)
    elif kind == "source":
        _source(name, title, config_file)
    elif kind == "prompt":
        from octavo.cli import _run

        out(f"prompt://{name}  {_run.created_prompt(loaded(config_file), name, title or name)}")
    else:
        from octavo.cli import _run

        if title is None:
            raise click.UsageError(f"a new {kind} needs a --title: what people call it, in any language")
        created = _run.created(loaded(config_file), kind, name, title)
        out(f"{created.ref}  {created.path}")


def _tool(name: str, title: str | None, config_file: Path | None) -> None:
    from octavo.cli._starters import write_tool

    found = _found(config_file)
    configured = found is not None and found.config.tools.dirs
    folder = configured[0] if configured else _beside(found) / "tools"
    for path in write_tool(name, title, folder):
        out(f"tool://{name}  {path}")
    if not configured:
        tell("to serve it, write into octavo.yaml: tools: {dirs: [./tools]}")
    tell(f"to try it: octavo tools test {name} uri=ADDRESS")


def _source(name: str, title: str | None, config_file: Path | None) -> None:
    from octavo.cli._starters import write_source

    folder = _beside(_found(config_file)) / "plugins"
    module, test = write_source(name, title, folder)
    out(f"{name}://  {module}")
    out(f"{name}://  {test}")
    served = f"plugins: [{{path: ./plugins/{module.name}}}], and below sources: {name}: {{kind: {name}}}"
    tell(f"to serve it, write into octavo.yaml: {served}")
    tell(f"to test it: pytest {test}")


def _found(config_file: Path | None) -> Loaded | None:
    """The configuration, where there is one: code can be begun without."""
    from octavo.config.load import find

    return loaded(config_file) if config_file is not None or find(Path.cwd()) is not None else None


def _beside(found: Loaded | None) -> Path:
    return Path.cwd() if found is None else found.base
