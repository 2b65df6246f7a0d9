"""The tool `run_command`, which tells its client how long it has been running."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec.structs import replace

from octavo.core.errors import InvalidParams, TooLarge
from octavo.core.external import Finished, RunLimits, Runner
from octavo.core.tools import Hints, Text, ToolInfo, ToolResult
from octavo.text.tokens import fit
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.answer_budget import Budget
from octavo.tools.builtin.process.commands import Command
from octavo.tools.builtin.process.places import ServedFolders, Workplace
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

ACTS: Final = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
ASKS: Final = "it runs a program"
_TOLD: Final = 5  # folders that are named
_QUEUE: Final = 300.0  # seconds that a command may wait for its turn, beside its own time
_BEAT: Final = 1.0  # seconds between two words of progress


@asynccontextmanager
async def telling(ctx: ToolContext, what: str, seconds: float) -> AsyncIterator[None]:
    if ctx.call.channel is None:
        yield
        return
    task = asyncio.get_running_loop().create_task(_tell(ctx, what, seconds))
    task.add_done_callback(_seen)
    try:
        yield
    finally:
        task.cancel()


async def _tell(ctx: ToolContext, what: str, seconds: float) -> None:
    passed = 0.0
    while True:
        await asyncio.sleep(_BEAT)
        passed += _BEAT
        await ctx.progress(passed, max(seconds, passed), f"{what} has run for {passed:g} s")


def _seen(task: asyncio.Task[None]) -> None:
    """Who can no longer be told of progress has no other loss."""
    if not task.cancelled():
        task.exception()


class Shop:
    """What all tools of this set work with."""

    def __init__(
        self, commands: Sequence[Command], places: ServedFolders, limits: RunLimits, *, input: int, budget: Budget
    ) -> None:
        self.commands = {command.name: command for command in commands}
        self.places, self.limits, self.budget = places, limits, budget
        self.input = input

    async def order(self, ctx: ToolContext, asked: Mapping[str, Any]) -> tuple[Command, list[str], Workplace]:
        """The words of the command and where it works, checked. Raises what is wrong with them."""
        command = self.commands[asked["program"]]
        given = asked.get("args", {})
        words = command.arguments(given)
        work = await self.places.place(ctx, command.program, asked.get("folder"), write=command.write)
        await self.places.refuse_unseen(ctx, work.place, [*command.paths(given)], asked.get("folder"))
        return command, words, work

    def typed(self, command: Command, text: str | None) -> bytes:
        if text is None:
            return b""
        if not command.input:
            raise InvalidParams(f"{command.name} takes no input; leave it out", program=command.name)
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise InvalidParams("The input must be text that UTF-8 can write") from None
        if len(data) > self.input:
            raise TooLarge(f"The input has {len(data)} bytes, and {self.input} is the limit", limit=self.input)
        return data

    def takes(self) -> dict[str, d.Schema]:
        return {
            "program": d.one_of(*self.commands),
            "args": d.said({"type": "object"}, "by name, as the description lists them"),
            "folder": d.said(d.FILLED, "where it works; the top if not given"),
        }

    def listed(self) -> str:
        return "\n".join(command.told() for command in self.commands.values())


def run_command_tool(shop: Shop, runner: Runner) -> Tool:
    async def run_command(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        command, words, work = await shop.order(ctx, asked)
        stdin = shop.typed(command, asked.get("input"))
        seconds = min(asked.get("seconds", shop.limits.seconds), shop.limits.seconds)
        limits = replace(shop.limits, seconds=float(seconds))
        ctx.begins()
        async with telling(ctx, command.name, limits.seconds):
            finished = await runner.run(command.program, words, stdin=stdin, limits=limits, place=work.place)
        await shop.places.refuse_changed(ctx, work)
        return _answer(finished, limits, shop.budget, unlisted(work))

    info = ToolInfo(
        name="run_command",
        title="Run a command",
        description=f"Runs a listed program, without a shell, and gives what it prints.\n{shop.listed()}",
        input_schema={
            **d.an_object(
                {
                    **shop.takes(),
                    "input": d.TEXT,
                    "seconds": {"type": "number", "exclusiveMinimum": 0},
                },
                ["program"],
            ),
            "additionalProperties": False,
        },
        output_schema=d.an_object(
            {
                "exit": {"type": ["integer", "null"]},
                "signal": {"type": ["string", "null"]},
                "ended": d.TEXT,
                "seconds": {"type": "number"},
                "output": d.TEXT,
                "errors": d.TEXT,
                "confined": d.a_list(d.TEXT),
                "unlisted": d.a_list(d.TEXT),
            },
            ["exit", "ended", "confined"],
        ),
        hints=ACTS,
        asks=ASKS,
        timeout=shop.limits.seconds + _QUEUE,
    )
    return Tool(info, run_command, rehearses=True)


def said(finished: Finished, limits: RunLimits) -> str:
    """How it ended, and what to do where it did not end by itself."""
    if finished.because == "time":
        return f"killed: it did not end within {limits.seconds:g} s"
    if finished.because == "output":
        return f"killed: it printed more than {limits.output:,} bytes; ask it for less"
    if finished.because == "processes":
        return f"killed: it started more than {limits.processes} processes"
    if finished.because:
        return "killed: it was stopped"
    if finished.signal == signal.SIGXCPU:
        return f"killed: it used more than {limits.cpu} s of processor time"
    if finished.signal == signal.SIGXFSZ:
        return f"killed: it wrote a file of more than {limits.file:,} bytes"
    if finished.signal:
        return f"ended by {signal_name(finished.signal)}"
    return f"exit {finished.exit}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def unlisted(work: Workplace) -> list[str]:
    """Folders that the program could not list, as far as they are told."""
    return [str(ref) for ref in work.unlisted[:_TOLD]]


def note(folders: Sequence[str]) -> str:
    if not folders:
        return ""
    return f"[the program could not list {', '.join(folders)}: not every name there is for you]"


def _answer(finished: Finished, limits: RunLimits, budget: Budget, folders: list[str]) -> ToolResult:
    ended, beside = said(finished, limits), note(folders)
    blocks = [Text(ended)]
    left = budget.told_twice.beside(ended, beside)
    told: dict[str, str] = {}
    for name, title, data in (("output", "", finished.output), ("errors", "errors:\n", finished.errors)):
        if data:
            fitted = fit(data.decode("utf-8", "replace"), left.max_bytes // 2, left.max_tokens // 2)
            cut = "" if fitted.cut_at_line is None else f"\n[cut: {len(fitted.rest):,} more characters]"
            told[name] = f"{fitted.text}{cut}"
            blocks.append(Text(f"{title}{told[name]}"))
    if beside:
        blocks.append(Text(beside))
    return ToolResult(
        content=tuple(blocks),
        structured={
            "exit": finished.exit,
            "signal": signal_name(finished.signal) if finished.signal else None,
            "ended": ended,
            "seconds": round(finished.seconds, 3),
            "confined": list(finished.walls),
            "unlisted": folders,
            **told,
        },
        is_error=bool(finished.because),
    )
