"""What `octavo check` finds in files: of prompts, tools and catalogs, and what rules and agents make of them.

`octavo init` holds what it proposes against the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.cli._progress import Shows
from octavo.config.load import Loaded, prompt_directories
from octavo.config.problems import Problem
from octavo.core.clock import SystemClock

if TYPE_CHECKING:
    from octavo.app import Octavo
    from octavo.ops.sights import AgentSight
    from octavo.ops.unmatched import Idle, Unmatched
    from octavo.sources.catalog.crossrefs import Pages


def prompt_problems(loaded: Loaded) -> tuple[list[Problem], list[Problem]]:
    """Prompt files that would not load, and what else is in their folders."""
    from octavo.app.essentials import changeable
    from octavo.prompts.loader import load
    from octavo.tools.schema import compile_schema

    _, problems = load(prompt_directories(loaded), compile_schema, changeable=changeable(loaded))
    wrong = [Problem(one.path, "", one.reason, line=one.line) for one in problems if not one.remark]
    return wrong, [Problem(one.path, "", one.reason) for one in problems if one.remark]


def tool_problems(loaded: Loaded) -> list[Problem]:
    """Tools of the operator's folders that would be left out. Runs their files, as the server would."""
    if not loaded.config.tools.dirs:
        return []
    from octavo.app.builtin_tools import built_in_tools
    from octavo.app.essentials import changeable
    from octavo.app.external import Reaching
    from octavo.tools.folder import load_tools
    from octavo.tools.registry import ToolRegistry

    # Nothing is run or asked, so that nothing is opened that would have to be closed.
    reaching, registry = Reaching(loaded, SystemClock(), AsyncExitStack()), ToolRegistry()
    exposed = [one.scheme for one in loaded.config.sources.values() if one.expose]
    for tool in (*built_in_tools(loaded.config, exposed=exposed), *reaching.tools()):
        registry.register(tool)
    by_clients = changeable(loaded)
    problems = load_tools(loaded.config.tools.dirs, registry.register, reaching.outside(), changeable=by_clients)
    return [Problem(problem.path, "", problem.reason, line=problem.line) for problem in problems]


def catalog_problems(loaded: Loaded, shows: Shows) -> tuple[list[Problem], list[Problem], dict[str, tuple[str, ...]]]:
    """What is wrong with the files of catalogs, and what is only odd, by file and line. What prompts refer to, too.
    And the folders of each catalog in its store."""

    async def ask(server: Octavo) -> tuple[list[Problem], list[Problem], dict[str, tuple[str, ...]]]:
        wrong, odd, folders = list[Problem](), list[Problem](), dict[str, tuple[str, ...]]()
        catalogs = server.works.catalogs
        by_name = {} if catalogs is None else catalogs.by_name
        for number, (name, catalog) in enumerate(by_name.items(), 1):
            shows(what=name, done=f"{number}/{len(by_name)}")
            folders[name] = catalog.declaration.folders
            if why := await catalog.serves_nothing():
                wrong.append(Problem(str(loaded.file), f"sources.{name}", why))
            for one in await catalog.problems():
                file = _path(loaded, name, one.file)
                group = one.kind if one.kind != one.message else ""
                (wrong if one.serious else odd).append(Problem(file, "", one.message, line=one.line, group=group))
        odd.extend(out_of_reach(loaded))
        if catalogs is not None:
            odd.extend(_prompts_that_lead_nowhere(loaded, await catalogs.pages()))
        odd.extend([_unmatched(loaded, one) async for one in unmatched(server.works)])
        odd.extend(_idle(loaded, one) for one in idle_tools(server.works))
        return wrong, odd, folders

    from octavo.app.once import inside
    from octavo.cli._out_of_reach import out_of_reach
    from octavo.ops.unmatched import idle_tools, unmatched

    if not loaded.config.policy and not any(one.over is not None for one in loaded.config.sources.values()):
        return [], [*out_of_reach(loaded)], {}
    return inside(loaded, ask, leaves_traces=False)


def trial(loaded: Loaded, agents: Sequence[str], shows: Shows) -> tuple[list[Problem], Mapping[str, AgentSight]]:
    """What `octavo check` would find wrong, and what the agents would see. Leaves nothing behind."""
    from octavo.app.once import when_read
    from octavo.ops.sights import sights

    wrong = [*catalog_problems(loaded, shows)[0], *prompt_problems(loaded)[0]]
    return wrong, when_read(loaded, lambda server: sights(server.works, agents))


def _unmatched(loaded: Loaded, one: Unmatched) -> Problem:
    near = f"did you mean {one.nearest}?" if one.nearest else "a deny of what is not there yet is fine"
    return Problem(str(loaded.file), f"policy[{one.rule}].what", f"{one.pattern} matches nothing today", near)


def _idle(loaded: Loaded, one: Idle) -> Problem:
    verbs, tools = ", ".join(one.verbs), ", ".join(one.tools)
    hint = f"allow {verbs} in a rule, or deny invoke on {', '.join(f'tool://{name}' for name in one.tools)}"
    message = f"is shown {tools}, which it can never use: no rule allows it {verbs}"
    line = loaded.line("agents", one.agent)
    group = "an agent is shown tools that it can never use"
    return Problem(str(loaded.file), f"agents.{one.agent}", message, hint, line, group=group)


def _prompts_that_lead_nowhere(loaded: Loaded, pages: Pages) -> Iterator[Problem]:
    from octavo.prompts.loader import load
    from octavo.sources.catalog.links import nowhere
    from octavo.tools.schema import compile_schema

    for template in load(prompt_directories(loaded), compile_schema)[0]:
        for line, uri in nowhere(Path(template.origin).read_text(encoding="utf-8-sig"), pages):
            said = "an address leads nowhere"
            yield Problem(template.origin, "", f"{uri} leads nowhere", line=line, group=said)


def _path(loaded: Loaded, catalog: str, file: str) -> str:
    """A file of a catalog, as whoever mends it finds it."""
    options = loaded.config.sources[catalog]
    store = options if options.over is None else loaded.config.sources[options.over.store]
    places = [folder.path / file for folder in store.folders if folder.files]
    if not places:
        return file
    return str(next((place for place in places if place.exists()), places[0]))
