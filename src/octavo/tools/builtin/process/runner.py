"""Runs programs that are listed, to their end or to their limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from octavo.core.clock import Clock
from octavo.core.errors import Forbidden, InvalidParams
from octavo.core.external import Finished, Program, RunLimits, WorkFolder
from octavo.core.fair import FairQueue
from octavo.tools.builtin.process.running import Printed, RunningProgram

DEFAULTS: Final = RunLimits()


class ProgramRunner:
    """The `Runner` of the server. What is not listed is not started, whoever asks."""

    def __init__(self, programs: Iterable[Program], *, at_once: int, strict: bool, clock: Clock) -> None:
        """`strict`: rather nothing than a program that cannot be confined."""
        self._programs = list(programs)
        self._strict, self._clock = strict, clock
        self._room = FairQueue(at_once, "commands", spare=min(1, at_once - 1))

    async def run(
        self,
        program: Program,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        limits: RunLimits = DEFAULTS,
        place: WorkFolder | None = None,
    ) -> Finished:
        async with self._room.turn():
            began = self._clock.monotonic()
            kept = _First(limits.output)
            running = await self.start(program, arguments, limits=limits, place=place, printed=kept.take)
            kept.full = lambda: running.kill("output")
            try:
                running.type(stdin, end=True)
                kept.look()
                async with asyncio.timeout(limits.seconds):
                    await running.ended()
            except TimeoutError:
                running.kill("time")
                await running.ended()
            except BaseException:
                running.kill("stopped")
                await running.surely_ended()
                raise
            code, number, walls = running.outcome()
            return Finished(
                exit=code if not running.because else None,
                signal=number,
                output=bytes(kept.pieces[1]),
                errors=bytes(kept.pieces[2]),
                because=running.because,
                seconds=self._clock.monotonic() - began,
                walls=walls,
            )

    async def start(
        self,
        program: Program,
        arguments: Sequence[str],
        *,
        limits: RunLimits,
        place: WorkFolder | None,
        printed: Printed,
    ) -> RunningProgram:
        """One that runs on; whoever starts it ends it. Raises as `run`."""
        if program not in self._programs:  # as a whole: two may differ in nothing but what they may reach
            raise Forbidden("The configuration does not list that program")
        for word in arguments:
            try:
                if b"\0" in word.encode():
                    raise InvalidParams("An argument of a program cannot hold a NUL character")
            except UnicodeEncodeError:
                raise InvalidParams("An argument of a program must be text that UTF-8 can write") from None
        return await RunningProgram.start(program, arguments, limits, place, printed, strict=self._strict)


class _First:
    """The first bytes of both outputs together; then it is full."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._over = False
        self.pieces = {1: bytearray(), 2: bytearray()}
        self.full = _nothing

    def take(self, fd: int, data: bytes) -> None:
        self.pieces[fd] += data[: self._left]
        self._left -= len(data)
        if self._left < 0:
            self._left = 0
            self._over = True
            self.full()

    def look(self) -> None:
        """It may have been full before anybody could be told."""
        if self._over:
            self.full()


def _nothing() -> None: ...
