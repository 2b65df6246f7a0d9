"""The tools `start_process`, `read_output`, `write_input`, `stop_process` and `list_processes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from octavo.core.errors import Conflict, InvalidParams, OctavoError
from octavo.core.external import Finished
from octavo.core.tools import Hints, Text, ToolResult
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.handles import Handles
from octavo.tools.builtin.process.run_command import ACTS, ASKS, Shop, note, said, unlisted
from octavo.tools.builtin.process.runner import ProgramRunner
from octavo.tools.builtin.process.started import Started
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

LOOKS: Final = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
ENDS: Final = Hints(read_only=False, destructive=True, idempotent=True, open_world=False)
_LONGEST_WAIT: Final = 30.0
_STATE: Final = d.an_object(
    {"process": d.TEXT, "state": d.TEXT, "text": d.TEXT, "next": d.WHOLE, "dropped": d.WHOLE}, ["process", "state"]
)
_SECONDS: Final = {"type": "number", "minimum": 0, "maximum": _LONGEST_WAIT}


class Processes:
    def __init__(self, shop: Shop, runner: ProgramRunner, *, most: int, idle: float, lifetime: float) -> None:
        self._shop, self._runner, self._lifetime, self._most = shop, runner, lifetime, most
        self._held = Handles[Started]("process", _close, most=most, idle=idle)

    async def aclose(self) -> None:
        await self._held.aclose()

    async def start(self, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        command, words, work = await self._shop.order(ctx, asked)
        owner = ctx.principal.id
        ctx.begins()
        await self._make_room(owner)
        name, started = await self._held.open(
            owner,
            lambda: Started.start(self._runner, command, words, work, self._shop.limits, self._lifetime),
        )
        if not command.input:
            started.running.type(b"", end=True)
        told = "\n".join(filter(None, (f"Started {command.name}: process {name}", note(unlisted(work)))))
        return d.result(told, {"process": name, "state": "running", "unlisted": unlisted(work)})

    async def read(self, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        name, after = asked["process"], asked.get("after", 0)
        started = self._held.get(ctx.principal.id, name)
        if after > started.tail.end:
            raise InvalidParams(f"after is {after}, and only {started.tail.end} bytes were printed so far")
        await started.news(after, asked.get("seconds", 0))
        try:
            await self._shop.places.refuse_changed(ctx, started.work)
        except OctavoError:  # nor is anything told that it prints later
            await self._held.close(ctx.principal.id, name)
            raise
        most = self._shop.budget.told_twice.any_text
        part = started.tail.part(after, most, whole=not started.running.alive)
        lost = f"[{part.dropped:,} bytes are no longer kept]\n" if part.dropped else ""
        state = self._state(started)
        told = {"process": name, "state": state, "text": part.text, "next": part.next, "dropped": part.dropped}
        how = Text(f"[{state}; read on with after: {part.next}]")
        return ToolResult(content=(Text(f"{lost}{part.text}" or "[nothing new]"), how), structured=told)

    async def write(self, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        name = asked["process"]
        started = self._held.get(ctx.principal.id, name)
        data = self._shop.typed(started.command, asked.get("text", ""))
        if not started.running.alive:
            raise Conflict(f"The process {name} has ended: {self._state(started)}")
        if started.running.untaken + len(data) > self._shop.input:
            raise Conflict("The process has not read what was written before; try again later")
        ctx.begins()
        started.running.type(data, end=asked.get("end", False))
        return d.result(f"Written to process {name}", {"process": name, "state": self._state(started)})

    async def stop(self, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        name = asked["process"]
        started = self._held.get(ctx.principal.id, name)
        ctx.begins()
        await started.stop(asked.get("seconds", 5))
        state = self._state(started)
        return d.result(f"{name}: {state}", {"process": name, "state": state})

    async def list(self, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        rows = [
            {"process": name, "program": one.command.name, "state": self._state(one), "printed": one.tail.end}
            for name, one in self._held.of(ctx.principal.id)
        ]
        lines = [f"{row['process']} {row['program']}: {row['state']}" for row in rows]
        return d.result("\n".join(lines) or "No processes", {"processes": rows})

    async def _make_room(self, owner: str) -> None:
        """One that has ended makes room for the next, the oldest first."""
        mine = [*self._held.of(owner)]
        over = [name for name, one in mine if not one.running.alive]
        for name in over[: max(len(mine) - self._most + 1, 0)]:
            await self._held.close(owner, name)

    def _state(self, started: Started) -> str:
        if started.running.alive:
            return "running"
        code, number, _ = started.running.outcome()
        because = started.running.because
        return said(Finished(exit=None if because else code, signal=number, because=because), self._shop.limits)


def process_tools(processes: Processes, shop: Shop) -> list[Tool]:
    one = {"process": d.TEXT}
    return [
        d.tool(
            "start_process", "Start a process", f"Starts a listed program that runs on.\n{shop.listed()}",
            processes.start, ACTS, shop.takes(), required=["program"], gives=_STATE, asks=ASKS, rehearses=True,
        ),
        d.tool(
            "read_output", "Read what a process printed",
            "Gives what a process printed after an offset; next is the offset to go on with.",
            processes.read, LOOKS,
            {**one, "after": d.at_least(0), "seconds": d.said(_SECONDS, "to wait for more")},
            required=["process"], gives=_STATE,
        ),
        d.tool(
            "write_input", "Write to a process", "Writes to the standard input of a process; end closes it.",
            processes.write, ACTS, {**one, "text": d.TEXT, "end": d.FLAG}, required=["process"], gives=_STATE,
            asks="it tells a program what to do", rehearses=True,
        ),
        d.tool(
            "stop_process", "Stop a process", "Asks a process to end, and kills it when it has not after some seconds.",
            processes.stop, ENDS, {**one, "seconds": _SECONDS}, required=["process"], gives=_STATE, rehearses=True,
        ),
        d.tool(
            "list_processes", "List processes", "Your processes, and how they stand.",
            processes.list, LOOKS, {}, gives=d.an_object({"processes": d.a_list()}, ["processes"]),
        ),
    ]  # fmt: skip


async def _close(started: Started) -> None:
    await started.aclose()
