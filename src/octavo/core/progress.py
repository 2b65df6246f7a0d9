"""How far a long change has got, and whether it should stop: shared by the thread that works and the one that
waits."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Effort:
    """`steps` only grows. `told` says what the newest of them were."""

    def __init__(self) -> None:
        self.steps = 0
        self._doing = ""
        self._count = 0
        self._stopping = False

    @property
    def told(self) -> str:
        return f"{self._count} files {self._doing}"

    def stop(self) -> None:
        self._stopping = True

    def step(self, doing: str) -> None:
        """ECANCELED, once, when it should stop: what is done to take the work back is not stopped again."""
        if self._stopping:
            self._stopping = False
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
        self._count = self._count + 1 if doing == self._doing else 1
        self._doing = doing
        self.steps += 1

    @contextmanager
    def made(self) -> Iterator[None]:
        """What runs within it, in this task or thread, belongs to this effort."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[Effort | None] = ContextVar("effort", default=None)


def current() -> Effort:
    """That of the caller, or one that nobody looks at."""
    return _current.get() or Effort()


def step(doing: str) -> None:
    """Between two files. OSError when the work should stop here."""
    effort = _current.get()
    if effort is not None:
        effort.step(doing)
