"""The decorator `@tool`, for what hints and docstrings do not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from octavo.core.tools import Hints

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "__octavo_tool__"


class Marks(Struct, frozen=True, kw_only=True):
    hints: Hints
    name: str | None = None
    title: str | None = None
    permissions: tuple[str, ...] = ()
    timeout: float = 60.0
    cache: float = 0.0


# Of a function that says nothing, the worst is assumed: a human is asked before it is called.
UNMARKED = Marks(hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=True))


def tool(
    *,
    read_only: bool = False,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    name: str | None = None,
    title: str | None = None,
    permissions: tuple[str, ...] = (),
    timeout: float = 60.0,
    cache: float = 0.0,
) -> Callable[[Function], Function]:
    """Decorates a function of a tool folder.

    What is not said follows from `read_only`: then nothing is destroyed, asking twice changes nothing, and the world
    outside is not touched; otherwise all of that may happen. `cache` is how many seconds an answer may be given again,
    as long as everything that the tool read through its context is unchanged; only for what is read-only.
    """
    hints = Hints(
        read_only=read_only,
        destructive=not read_only if destructive is None else destructive,
        idempotent=read_only if idempotent is None else idempotent,
        open_world=not read_only if open_world is None else open_world,
    )
    marks = Marks(hints=hints, name=name, title=title, permissions=permissions, timeout=timeout, cache=cache)

    def mark(function: Function) -> Function:
        setattr(function, _MARK, marks)
        return function

    return mark


def marks_of(function: Callable[..., Any]) -> Marks:
    found: Marks = getattr(function, _MARK, UNMARKED)
    return found
