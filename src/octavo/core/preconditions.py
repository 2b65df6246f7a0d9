"""Checks of a change that a fold sets up and the source makes, once it knows the text before and after.

A source that keeps a part of what was there (it adds to it, gives it another name) asks `check` right before the
change, while nobody else can make one. Whoever replaces all of a text need not ask: nothing of it is left. A part of a
text is changed `below` what is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from octavo.core.edit import Revised


class Shown(NamedTuple):
    """What reading a resource gives, or would give."""

    body: str | bytes
    mime_type: str


class Guard(Protocol):
    def check(self, before: Shown, after: Shown) -> None:
        """Raises InvalidParams where the second must not come after the first."""
        ...

    def below(self, text: str, change: Callable[[str], Revised]) -> Revised:
        """What the change makes of the text, where the change finds nothing that is hidden from its caller."""
        ...


_current: ContextVar[Guard | None] = ContextVar("guard", default=None)


def current() -> Guard | None:
    """That of the call which is being made; for whoever goes on in another thread."""
    return _current.get()


@contextmanager
def guarded(guard: Guard | None) -> Iterator[None]:
    """What is changed within it, in this task or thread, is held against this guard."""
    token = _current.set(guard)
    try:
        yield
    finally:
        _current.reset(token)


def check(before: Callable[[], Shown], after: Callable[[], Shown]) -> None:
    """Raises InvalidParams where the change must not be made. Nothing is read where nobody minds."""
    guard = _current.get()
    if guard is not None:
        guard.check(before(), after())


def below(text: str, change: Callable[[str], Revised]) -> Revised:
    """What a change makes of a text, below what is hidden from whoever asked for it."""
    guard = _current.get()
    return change(text) if guard is None else guard.below(text, change)
