"""Programs that may be run, and the toolset `process`, as the configuration asks for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AsyncExitStack

from octavo.config.model import Config
from octavo.config.reference import interpreters
from octavo.config.sections.commands import Commands, ProgramOptions
from octavo.core.clock import Clock
from octavo.core.errors import InvalidParams
from octavo.core.external import Program, RunLimits, Surveys
from octavo.core.foundation import Foundation
from octavo.core.ports.source import Source
from octavo.tools.builtin.answer_budget import Budget
from octavo.tools.builtin.process.commands import Command, CommandArgument, path_word
from octavo.tools.builtin.process.named import Named, named
from octavo.tools.builtin.process.places import CommandFolder, ServedFolders
from octavo.tools.builtin.process.processes import Processes, process_tools
from octavo.tools.builtin.process.run_command import Shop, run_command_tool
from octavo.tools.builtin.process.runner import ProgramRunner
from octavo.tools.context import ToolContext
from octavo.tools.declarations import ProgramOrder
from octavo.tools.registry import Tool


def runner_of(options: Commands, clock: Clock) -> ProgramRunner:
    return ProgramRunner(
        map(program_of, options.programs.values()),
        at_once=options.at_once,
        strict=options.confine == "require",
        clock=clock,
    )


def program_tools(config: Config, runner: ProgramRunner, places: ServedFolders, stack: AsyncExitStack) -> list[Tool]:
    """What they start ends with `stack`."""
    options = config.commands
    commands = [_command(name, one) for name, one in options.programs.items()]
    budget = Budget(config.limits.answer, config.limits.answer_tokens)
    shop = Shop(commands, places, limits_of(options), input=options.input, budget=budget)
    processes = Processes(shop, runner, most=options.started, idle=options.idle, lifetime=options.lifetime)
    stack.push_async_callback(processes.aclose)
    return [run_command_tool(shop, runner), *process_tools(processes, shop)]


def places_of(config: Config, sources: Mapping[str, Source], foundation: Foundation) -> ServedFolders:
    """Folders of file sources with addresses of their own; those of others are only kept from programs."""
    roots, stores = list[CommandFolder](), list[str]()
    for options in config.sources.values():
        source = sources.get(options.scheme) if options.expose else None
        if isinstance(source, Surveys):
            folders = enumerate(options.folders)
            roots += [CommandFolder(options.scheme, str(one.path), one.write, source, k) for k, one in folders]
        else:
            stores += [str(folder.path) for folder in options.folders]
    return ServedFolders(roots, foundation, stores)


async def ordered(
    places: ServedFolders, ctx: ToolContext, program: Program, order: ProgramOrder, *, write: bool
) -> Named:
    """What a declared tool points its program at. Raises what the caller may not reach, and what cannot be."""
    if order.folder is None:
        if order.paths:
            return await named(places, ctx, program, order.paths)
        await places.refuse_beside(ctx, program)
        return Named(None, ())
    try:
        words = tuple(map(path_word, order.paths))
    except ValueError as error:
        raise InvalidParams(f"A path {error}") from None
    work = await places.place(ctx, program, order.folder, write=write)
    await places.refuse_unseen(ctx, work.place, order.paths, order.folder)
    return Named(work.place, words, (work,))


def program_of(options: ProgramOptions) -> Program:
    path = options.run[0]
    return Program(
        path=path,
        runs=(*interpreters(path), *map(str, options.runs)),
        reads=tuple(map(str, options.reads)),
        env=options.env,
        network=options.network,
    )


def limits_of(options: Commands) -> RunLimits:
    return RunLimits(
        seconds=options.time,
        cpu=math.ceil(options.cpu),
        memory=options.memory,
        output=options.output,
        file=options.file,
        processes=options.processes,
    )


def _command(name: str, options: ProgramOptions) -> Command:
    return Command(
        name=name,
        program=program_of(options),
        words=options.run[1:],
        description=options.description,
        args=tuple(CommandArgument(**dict(one)) for one in options.args),
        input=options.input,
        write=options.write,
    )
