"""Long calls as values: what a client is told of a task, and what is stored of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from octavo.core.errors import InternalError
from octavo.core.forms import Answer, Form
from octavo.core.ports.chain import Reply
from octavo.core.values import NOTHING, Call, Principal

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
ENDED: Final[frozenset[Status]] = frozenset(("completed", "failed", "cancelled"))


class Task(Struct, frozen=True, kw_only=True):
    id: str  # a handle that cannot be guessed, and that serves nobody but `who`
    who: str
    tool: str
    status: Status
    created: float  # seconds since 1970
    updated: float
    ttl: float  # seconds from its creation until it is forgotten
    message: str = ""
    outcome: bytes = b""  # JSON: the result of a completed one, the error of a failed one
    questions: Mapping[str, Form] = NOTHING  # that wait for an answer


class StoredTask(Struct, frozen=True, kw_only=True):
    """What is written of a task when it begins."""

    task: Task
    principal: Principal
    arguments: Mapping[str, Any] | None = None  # of a tool that can begin again


class Ended(Struct, frozen=True):
    status: Status
    outcome: bytes
    message: str = ""


class Lost(InternalError):
    """The work has ended with the process that did it: no word of the tool about it."""


# How the end of a task is told on the wire: what a call gave, or raised.
Speaks: TypeAlias = Callable[[str, Reply | BaseException], Ended]
Heard: TypeAlias = Callable[[Task], None]


class TaskStore(Protocol):
    """Survives the process. Each method is whole or not at all."""

    async def add(self, kept: StoredTask, *, most: int) -> None:
        """Returns once it would be found again after a kill. Raises RateLimited where the principal has `most`."""
        ...

    async def find(self, who: str, task_id: str) -> Task | None:
        """None for one that is not there, has expired, or is somebody else's."""
        ...

    async def end(self, task: Task, ended: Ended) -> Task | None:
        """None where it had ended or expired before, or was taken over by another process."""
        ...

    async def take_over(self) -> Sequence[StoredTask]:
        """Those that a process left when it died. They are this one's from now on."""
        ...

    async def close(self) -> None: ...


class Tasks(Protocol):
    """The long work of one process, as the transport sees it."""

    speaks: Speaks

    def wake(self) -> None:
        """Ends or resumes what a process before this one left, without waiting for that."""
        ...

    async def find(self, who: str, task_id: str) -> Task | None: ...
    async def poll(self, call: Call) -> Task: ...

    async def answer(self, call: Call) -> None:
        """The argument `answers` is by the key of the question. What fits no question that waits is ignored."""
        ...

    async def cancel(self, call: Call) -> None: ...

    def on_change(self, listener: Heard) -> Callable[[], None]:
        """Calls `listener` with each new state of a task. Returns the way out."""
        ...


Answers: TypeAlias = Mapping[str, Answer]
