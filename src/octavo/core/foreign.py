"""Code of plugins runs in this process: which exceptions are theirs, and which must be passed on.

Any exception can come out of it, also those by which Python ends a program, a task or a generator. Let through, they
would end the server, or leave one that answers nobody. Only what foreign code passes on from outside goes further.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextvars import ContextVar
from opcode import opname
from types import TracebackType
from typing import Final

MAX_TEXT: Final = 300  # characters of a foreign text in a log line

# Whose code runs: the name of the source or tool, "" for the house itself. Threads that it asks for are counted by it.
owner: ContextVar[str] = ContextVar("owner", default="")


# What is looked at of an error, also by `isinstance` and by a log line. Whoever defines one of these runs then.
_LOOKED_AT: Final = frozenset(
    ("__getattribute__", "__getattr__", "__class__", "__traceback__", "__cause__", "__context__",
     "__suppress_context__", "__notes__")
)  # fmt: skip
_PYTHONS: Final = (BaseException, object)
_bases: Final = type.__dict__["__mro__"].__get__  # past whatever its own type defines
_members: Final = type.__dict__["__dict__"].__get__


def sound(error: BaseException) -> BaseException:
    """The error, or one in its place if looking at it would run foreign code once more, which can raise anything."""
    for base in _bases(type(error)):
        if base not in _PYTHONS and not _LOOKED_AT.isdisjoint(_members(base)):
            return RuntimeError("an error was raised that cannot be looked at")
    return error


def passed_on(error: BaseException) -> bool:
    """Whether foreign code only let through what was meant for the house: its task is cancelled, or closed, or the
    operator ends the process."""
    error = sound(error)
    if isinstance(error, asyncio.CancelledError):
        task = _task()
        return task is None or task.cancelling() > 0
    if isinstance(error, GeneratorExit):
        return _task() is None  # a coroutine is closed from outside only while no task runs it
    return isinstance(error, KeyboardInterrupt) and _by_signal(error)


def own_fault(error: BaseException, what: str) -> BaseException:
    """What to raise instead of what foreign code raised: an Exception, unless it was only passed on."""
    error = sound(error)
    if isinstance(error, Exception) or passed_on(error):
        return error
    wrapped = RuntimeError(f"{what} raised {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def _task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None


def _by_signal(error: KeyboardInterrupt) -> bool:
    """A signal interrupts code anywhere, but not in a statement that raises. While a loop serves, Ctrl-C ends the
    serving and raises nothing, but for the second one."""
    at = _innermost(error)
    if at is None:
        return False
    code = at.tb_frame.f_code
    if opname[code.co_code[at.tb_lasti]] == "RAISE_VARARGS":
        return code.co_name == "_on_sigint"  # of asyncio.Runner
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def described(error: BaseException) -> str:
    """Its name and what it says, for a log or an operator; also of one that cannot say anything."""
    try:
        said = str(error)
    except BaseException:  # what it says is foreign code too
        said = "(it cannot say what)"
    name = type(error).__name__
    return f"{name}: {said[:MAX_TEXT]}" if said else name


def place(error: BaseException) -> str:
    """Where it was raised, as `file.py line 7`; "" where that is not known."""
    at = _innermost(error)
    return "" if at is None else f"{os.path.basename(at.tb_frame.f_code.co_filename)} line {at.tb_lineno}"


def _innermost(error: BaseException) -> TracebackType | None:
    at = sound(error).__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at
