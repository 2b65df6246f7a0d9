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
        out(f"prompt://{name}  {_prompt(loaded(config_file), name, title or name)}")
    else:
        from octavo.app.once import inside
        from octavo.ops.author import create

        if title is None:
            raise click.UsageError(f"a new {kind} needs a --title: what people call it, in any language")
        found = loaded(config_file)
        created = inside(found, lambda server: create(server, found, kind, name, title), leaves_traces=False)
        out(f"{created.ref}  {created.path}")


def _prompt(found: Loaded, name: str, title: str) -> Path:
    """A new prompt file, in the first folder of prompts. Raises InvalidParams and Conflict."""
    from octavo.core.errors import Conflict, InvalidParams
    from octavo.prompts.new_file import begun

    text = begun(name, title)
    folders = found.config.prompts.dirs
    if folders == ():
        raise InvalidParams("prompts.dirs names no folder: name one, or leave it out for prompts beside octavo.yaml")
    folder = folders[0] if folders else found.base / "prompts"
    if any(folder.glob(f"{name}.*")):
        raise Conflict(f"A prompt file of the name {name} is there already")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    return path


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
