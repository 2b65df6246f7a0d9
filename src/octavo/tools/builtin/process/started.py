"""Programs that run on between calls: their last output, and how they stand."""

from __future__ import annotations

import asyncio
from bisect import bisect_right, insort
from typing import Final, NamedTuple

from octavo.core.external import RunLimits
from octavo.tools.builtin.process.commands import Command
from octavo.tools.builtin.process.places import Workplace
from octavo.tools.builtin.process.runner import ProgramRunner
from octavo.tools.builtin.process.running import RunningProgram

_CUTS: Final = 1000  # places that are remembered


class OutputPart(NamedTuple):
    text: str
    next: int  # the offset to go on with
    dropped: int  # bytes between the offset that was asked for and the first that is still there


class OutputTail:
    """The last bytes that were printed, by their place in all that was.

    A part begins where an earlier one ended, and ends with a line: who could choose where would choose the middle of a
    secret, which nobody recognises by its half."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._data = bytearray()
        self._cuts = [0]  # where parts may begin
        self.begin = 0

    @property
    def end(self) -> int:
        return self.begin + len(self._data)

    def take(self, data: bytes) -> None:
        self._data += data
        over = len(self._data) - self._most
        if over > 0:
            del self._data[:over]
            self.begin += over

    def part(self, after: int, most: int, *, whole: bool) -> OutputPart:
        """From the last place before an offset where one may begin. A character whose end has not come yet is left for
        later, unless no more will come."""
        begin = self._cuts[bisect_right(self._cuts, max(after, 0)) - 1]
        if begin < self.begin:  # the line that was cut through is not told
            begin = self.begin + self._data.find(b"\n") + 1
        data = bytes(self._data[begin - self.begin :][:most])
        if not (whole and begin + len(data) == self.end):
            data = data[: data.rfind(b"\n") + 1] or data[: len(data) - _unfinished(data)]
        end = begin + len(data)
        if end not in self._cuts:
            insort(self._cuts, end)
            del self._cuts[1:-_CUTS]
        return OutputPart(data.decode("utf-8", "replace"), end, max(begin - after, 0))


def _unfinished(data: bytes) -> int:
    """How many bytes at the end begin a character and do not end it."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needs = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return back if needs > back else 0
    return 0


class Started:
    """One of them. Whoever opens one closes it, and then nothing of it is left."""

    def __init__(self, command: Command, work: Workplace, tail: OutputTail) -> None:
        self.command, self.work, self.tail = command, work, tail
        self._news = asyncio.Event()
        self._end: asyncio.TimerHandle | None = None
        self.running: RunningProgram

    @classmethod
    async def start(
        cls,
        runner: ProgramRunner,
        command: Command,
        words: list[str],
        work: Workplace,
        limits: RunLimits,
        lifetime: float,
    ) -> Started:
        started = cls(command, work, OutputTail(limits.output))
        started.running = await runner.start(
            command.program, words, limits=limits, place=work.place, printed=started._printed
        )
        loop = asyncio.get_running_loop()
        started._end = loop.call_later(lifetime, started.running.kill, "time")
        return started

    async def news(self, after: int, seconds: float) -> None:
        """Until there is more than that, or it has ended, or the time is over."""
        ended = asyncio.ensure_future(self.running.ended())
        try:
            async with asyncio.timeout(seconds):
                while self.tail.end <= after and not ended.done():
                    self._news.clear()
                    waiting = asyncio.ensure_future(self._news.wait())
                    try:
                        await asyncio.wait((waiting, ended), return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        waiting.cancel()
        except TimeoutError:
            pass
        finally:
            ended.cancel()

    async def stop(self, grace: float) -> None:
        """Asks it to end, and kills it with all that it started when it does not."""
        self.running.ask_to_end()
        try:
            async with asyncio.timeout(grace):
                await self.running.ended()
        except TimeoutError:
            await self.aclose()

    async def aclose(self) -> None:
        if self._end is not None:
            self._end.cancel()
        self.running.kill("stopped")
        await self.running.surely_ended()

    def _printed(self, fd: int, data: bytes) -> None:
        self.tail.take(data)
        self._news.set()
