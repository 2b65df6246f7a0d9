"""A thread that says where the event loop is held up, and ends a process that does not end.

Everybody waits while code on the loop does not: a source of a plugin that computes for three seconds costs every caller
as much, and nothing else would tell who it was.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from types import FrameType
from typing import Final

from octavo.core.clock import SystemClock
from octavo.core.memo import Bounded
from octavo.pipeline.guard import door
from octavo.pipeline.guard.faults import Faults
from octavo.tools.registry import tool_in

logger = logging.getLogger(__name__)

LATE: Final = 1.0  # seconds that the loop may be held up without a word
LOOK: Final = 0.25  # seconds between two looks; a loop that has nothing to do is woken as often
AGAIN: Final = 60.0  # seconds until the same place is said again
FRAMES: Final = 8  # the innermost ones
STARTING: Final = 5.0  # seconds in which the house itself is busy, and only sources are said
PLACES: Final = 256
ENDING: Final = 10.0  # seconds for everything to close once nobody is served any more


class Watchdog:
    def __init__(self) -> None:
        # Called on the loop, with the scheme of the source or with the tool whose code held it up, and where.
        self.told: Callable[[str, str], None] | None = None
        self._over = threading.Event()
        self._said: Bounded[str, float] = Bounded(PLACES)
        self._until = float("inf")
        self._now = SystemClock.monotonic

    def begin(self) -> None:
        """For the loop of this thread."""
        self._loop, self._of = asyncio.get_running_loop(), threading.get_ident()
        self._served = self._now() + STARTING
        self._beat()
        threading.Thread(target=self._watch, name="octavo-watchdog", daemon=True).start()

    def ending(self) -> None:
        """Nobody is served any more: from here on the process has so long to end."""
        self._until = self._now() + ENDING

    def end(self) -> None:
        self._over.set()

    def _beat(self) -> None:
        self._last = self._now()
        self._timer = self._loop.call_later(LOOK, self._beat)

    def _watch(self) -> None:
        held, said, looked, worked = 0.0, "", self._now(), time.process_time()
        while not self._over.wait(LOOK):
            now, work = self._now(), time.process_time()
            if now > self._until:
                give_up("the event loop did not end")
            # Where this thread did not run either, somebody kept the interpreter to himself; or the whole process was
            # stopped, which is nobody's fault here: it has done no work meanwhile.
            asleep = now - looked > LATE and work - worked < (now - looked) / 4
            looked, worked, last = now, work, self._last
            if held and last > held:
                if said:
                    logger.warning("The event loop went on after %.1f s%s", last - held, said)
                held = 0.0
            elif not held and now - last > LATE and not asleep and now < self._until:
                held = last
                said = self._say(now)

    def _say(self, now: float) -> str:
        """What was said of whose code it is, if anything was."""
        frames = [*_stack(sys._current_frames().get(self._of))]
        where = ", ".join(f"{_file(frame)}:{frame.f_lineno} {frame.f_code.co_name}" for frame in frames[:FRAMES])
        place = where.partition(",")[0]
        owner = next((one for one in map(_owner, frames) if one is not None), "")
        if not owner and now < self._served:
            return ""
        if now - self._said.get(place, -AGAIN) < AGAIN:
            return ""
        self._said.keep(place, now)
        whose = f" by {Faults.named(owner)}" if owner else ""
        logger.warning("The event loop is held up for more than %g s%s, at %s", LATE, whose, where)
        if owner and self.told is not None:
            self._loop.call_soon_threadsafe(self.told, owner, f"it held up the event loop, at {place}")
        return f"{whose}, at {place}"


def give_up(why: str) -> None:
    """Ends the process at once. What must be kept is kept: records are stored before their answers leave."""
    others = [one.name for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
    threads = f"; these threads run: {', '.join(sorted(others)[:20])}" if others else ""
    logger.error("The server is ended: %s within %g s%s", why, ENDING, threads)
    logging.shutdown()
    os._exit(0)


def leave_no_threads(before: set[threading.Thread]) -> None:
    """Waits for the threads that have come since, and then for none of them: Python itself would wait for ever."""
    until = SystemClock.monotonic() + ENDING
    for thread in {*threading.enumerate()} - before:
        if not thread.daemon:
            thread.join(max(0.0, until - SystemClock.monotonic()))
            if thread.is_alive():
                give_up("a thread did not end")


def _owner(frame: FrameType) -> str | None:
    """The scheme of a source, or `tool NAME`; "" for the house where a tool asks it for something."""
    return door.source_in(frame) or tool_in(frame)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _file(frame: FrameType) -> str:
    return "/".join(islice(frame.f_code.co_filename.rsplit("/", 2), 1, None)) or frame.f_code.co_filename
