"""Programs that may be run, and the toolset `process`, as the configuration asks for them."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack

from octavo.config.commands import Commands, ProgramOptions
from octavo.config.model import Config, FileOptions
from octavo.config.reference import interpreters
from octavo.core.clock import Clock
from octavo.core.foundation import Foundation
from octavo.core.outside import Program, RunLimits
from octavo.tools.builtin.process.commands import Argument, Command
from octavo.tools.builtin.process.places import Places, Root
from octavo.tools.builtin.process.processes import Processes, process_tools
from octavo.tools.builtin.process.run_command import Shop, run_command_tool
from octavo.tools.builtin.process.runner import ProgramRunner
from octavo.tools.builtin.room import Budget
from octavo.tools.registry import Tool


def runner_of(options: Commands, clock: Clock) -> ProgramRunner:
    return ProgramRunner(
        map(program_of, options.programs.values()),
        at_once=options.at_once,
        strict=options.confine == "require",
        clock=clock,
    )


def program_tools(config: Config, foundation: Foundation, runner: ProgramRunner, stack: AsyncExitStack) -> list[Tool]:
    """What they start ends with `stack`."""
    options = config.commands
    commands = [_command(name, one) for name, one in options.programs.items()]
    roots = [
        Root(source.scheme, str(root.path), source.write)
        for source in config.sources.values()
        if isinstance(source, FileOptions) and source.expose
        for root in source.roots
    ]
    budget = Budget(config.limits.answer, config.limits.answer_tokens)
    shop = Shop(commands, Places(roots, foundation), limits_of(options), input=options.input, budget=budget)
    processes = Processes(shop, runner, most=options.started, idle=options.idle, lifetime=options.lifetime)
    stack.push_async_callback(processes.aclose)
    return [run_command_tool(shop, runner), *process_tools(processes, shop)]


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
        args=tuple(Argument(**dict(one)) for one in options.args),
        input=options.input,
        write=options.write,
    )
