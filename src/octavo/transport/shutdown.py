"""How an operator ends a server: in good order by the first SIGTERM or Ctrl-C, at once by another Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable


class Ending:
    """`stop` is called once, on the loop of whoever makes this. `by` is the signal that came, if one did."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.by: signal.Signals | None = None
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            if sys.platform == "win32":  # its loops cannot be told of signals
                signal.signal(number, lambda number, _: self._loop.call_soon_threadsafe(self._heard, number))
            else:
                self._loop.add_signal_handler(number, self._heard, number)

    @property
    def interrupted(self) -> bool:
        """By somebody at a terminal, who waits."""
        return self.by == signal.SIGINT

    def _heard(self, number: int) -> None:
        if self.by is not None:
            return
        self.by = signal.Signals(number)
        # Now the kernel's own way, which needs no turn of a loop that may hang; records of answers are stored.
        if sys.platform != "win32":
            self._loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self._stop()
