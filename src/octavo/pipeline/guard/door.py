"""Wraps a plugin's source: whatever it does wrong harms nothing but itself.

Every call has a task of its own, so that nobody waits for one that does not end when it is told to; what it raises is
caught there, and what it answers is held against the contract. A listing that broke it is left alone for a while: what
made it break may be dear.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable
from functools import partial
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import OctavoError, SourceUnavailable, Timeout
from octavo.core.foreign import owner, passed_on, sound
from octavo.core.memo import Bounded
from octavo.core.parameters import refuse_unknown
from octavo.core.ports.source import Source
from octavo.core.ref import Ref
from octavo.core.values import Content, Entry, Page
from octavo.pipeline.guard import contract
from octavo.pipeline.guard.contract import Breach
from octavo.pipeline.guard.faults import Faults, told
from octavo.pipeline.guard.life import Life

T = TypeVar("T")

CHANGING: Final = 60.0  # seconds: a change is not walked away from lightly, since it may still happen
LOOKING: Final = 30.0  # for whatever is not bounded by the time of a request
RESTING: Final = 10.0  # for a listing that broke the contract
STUCK: Final = 64  # calls that were given up and have not ended
ENDING: Final = 1.0  # seconds for calls that are cancelled at its end
PATIENT: Final = 0.9  # of the time of a request, after which who goes has waited in vain
IDLE_PAGES: Final = 100  # in a row, in which a listing does not get on
PLACES: Final = 1024  # in listings that are remembered


class _Raised:
    """What foreign code raised, handed over as a value: a loop ends when a task raises some of them."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Guarded:
    """What every source has. `guarded` adds what else this one can do."""

    def __init__(self, source: Source, faults: Faults, time: float, clock: Clock | None = None) -> None:
        """`time` is how many seconds a request may take."""
        self.scheme = source.scheme
        self.source: Any = source
        self._faults, self._time = faults, time
        self._now = (clock or SystemClock()).monotonic
        self._running: set[asyncio.Task[Any]] = set()
        self._stuck: set[asyncio.Task[Any]] = set()
        self._resting: Bounded[Hashable, tuple[float, str]] = Bounded(PLACES)
        # Where a listing was: the last entry before a cursor, and how many pages ago that was new.
        self._places: Bounded[Hashable, tuple[Ref | None, int]] = Bounded(PLACES)
        self.life = Life(source, faults)
        self.parameters: Collection[str] | None = None  # that its addresses take; None: it says itself

    def __repr__(self) -> str:
        return f"Guarded({self.scheme})"

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        self._declared(scope)
        return await self._page("list", scope, cursor, limit, partial(self.source.list, scope))

    async def stat(self, ref: Ref) -> Entry:
        self._declared(ref)
        return await self._asked("stat", lambda: self.source.stat(ref), lambda it: contract.entry(it, self.scheme))

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        self._declared(ref)
        return await self._asked(
            "read",
            lambda: self.source.read(ref, max_bytes=max_bytes),
            lambda it: contract.content(it, self.scheme, max_bytes),
        )

    async def __aenter__(self) -> Guarded:
        """Never raises: a source that does not open is one that does not answer."""
        await self.life.open()
        return self

    async def __aexit__(self, *raised: object) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            _, stuck = await asyncio.wait(self._running, timeout=ENDING)
            if stuck:
                self._faults.note(self.scheme, "close", f"{len(stuck)} calls of it do not end")
        await self.life.close()

    def _declared(self, ref: Ref) -> None:
        if self.parameters is not None and ref.params:
            refuse_unknown(ref, self.parameters)

    # -- one call

    async def _asked(
        self,
        op: str,
        ask: Callable[[], Awaitable[Any]],
        check: Callable[[object], T],
        *,
        seconds: float | None = None,
        changes: bool = False,
    ) -> T:
        """What it answers, if that keeps the contract. Without `seconds` whoever asks has a deadline of his own."""
        self._admit()
        task = asyncio.get_running_loop().create_task(_contained(self.scheme, ask))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        began = self._now()
        try:
            done, _ = await asyncio.wait((task,), timeout=seconds)
        except asyncio.CancelledError:
            self._give_up(task)
            if self._now() - began >= PATIENT * self._time:  # its time was over, and nobody just went away
                self._faults.note(self.scheme, op, f"it did not answer within {self._time:g} s")
            raise
        if not done:
            self._give_up(task)
            self._faults.note(self.scheme, op, f"it did not answer within {seconds:g} s")
            more = "; it may still be done: look before you try again" if changes else ""
            raise Timeout(f"No answer within {seconds:g} s{more}", source=self.scheme)
        if task.cancelled():  # by its end, or that of the loop
            raise self._unavailable("", None)
        given = task.result()
        try:
            if isinstance(given, _Raised):
                self._failed(op, given.error, changes)
            return check(given)
        except OctavoError:
            raise
        except BaseException as error:  # of the check: values of a stranger can raise when they are looked at
            self._failed(op, error, changes)

    async def _changed(self, op: str, ask: Callable[[], Awaitable[Any]], check: Callable[[object], T]) -> T:
        return await self._asked(op, ask, check, seconds=CHANGING, changes=True)

    def at_once(self, op: str, ask: Callable[[], object], check: Callable[[Any], T]) -> T:
        """The same for what is no coroutine."""
        self._admit()
        try:
            return check(ask())
        except BaseException as error:
            if issubclass(type(error), KeyboardInterrupt) and passed_on(error):  # nothing else comes from outside here
                raise
            self._failed(op, error)

    def or_else(self, op: str, ask: Callable[[], object], check: Callable[[Any], T], instead: T) -> T:
        """The same where nobody can be told that it failed."""
        try:
            return self.at_once(op, ask, check)
        except OctavoError:
            return instead

    def _admit(self) -> None:
        if self.life.unopened:
            raise self._unavailable("", 0.0)
        if len(self._stuck) >= STUCK:
            words = f"{STUCK} calls of it have not ended, though they were given up"
            raise self._unavailable(self._faults.note(self.scheme, "calls", words), RESTING)

    def _give_up(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self._stuck.add(task)
        task.add_done_callback(self._stuck.discard)

    def _failed(self, op: str, error: BaseException, changes: bool = False) -> NoReturn:
        error = sound(error)
        if isinstance(error, OctavoError):
            try:
                raise contract.error(error) from None
            except Breach as breach:
                error = breach
        if isinstance(error, Breach):
            incident = self._faults.note(self.scheme, op, f"it broke the contract of a source: {error}")
        else:
            incident = self._faults.note(self.scheme, op, told(error), cause=error)
        if changes:
            message = f"{self.scheme}:// did not say what became of it: look before you try again"
            raise SourceUnavailable(message, source=self.scheme, incident=incident, telling=False) from None
        # A broken connection is an outage; all else is a fault in its code, which one bad document can bring out.
        raise self._unavailable(incident, None, telling=isinstance(error, OSError)) from None

    def _unavailable(self, incident: str, wait: float | None, *, telling: bool = False) -> SourceUnavailable:
        more = {"incident": incident} if incident else {}
        message = f"Source unavailable: {self.scheme}"
        return SourceUnavailable(message, retry_after=wait or None, telling=telling, source=self.scheme, **more)

    # -- pages

    async def _page(
        self,
        op: str,
        scope: Ref,
        cursor: str | None,
        limit: int,
        ask: Callable[..., Awaitable[Any]],
        kind: Hashable = "",
    ) -> Page[Entry]:
        listing = (op, scope, kind)
        until, incident = self._resting.get(listing, (0.0, ""))
        if until > self._now():
            raise self._unavailable(incident, until - self._now())
        after, idle = self._places.get((listing, cursor), (None, 0)) if cursor is not None else (None, 0)

        def check(given: object) -> Page[Entry]:
            page, last, dropped = contract.page(given, scope, cursor=cursor, limit=limit, after=after)
            if dropped:
                self._faults.note(self.scheme, op, f"{dropped}; they are left out")
            if page.cursor is not None:
                behind = 0 if page.items else idle + 1
                if behind > IDLE_PAGES:
                    raise Breach(f"more than {IDLE_PAGES} pages in a row without an entry")
                self._places.keep((listing, page.cursor), (last, behind))
            return page

        try:
            return await self._asked(op, lambda: ask(cursor=cursor, limit=limit), check)
        except SourceUnavailable as error:
            if not error.telling and "incident" in error.data:
                rest = (self._now() + RESTING, str(error.data["incident"]))
                self._resting.keep(listing, rest)
            raise


def source_in(frame: FrameType) -> str:
    """The scheme of the source that this frame of a stack has called; "" where it is no call of one."""
    if frame.f_code is _contained.__code__:
        return str(frame.f_locals["scheme"])
    known = frame.f_code in (Guarded.at_once.__code__, Life.kept.__code__)
    return str(frame.f_locals["self"].scheme) if known else ""


async def _contained(scheme: str, ask: Callable[[], Awaitable[Any]]) -> Any:
    owner.set(scheme)
    try:
        return await ask()
    except BaseException as error:
        if issubclass(type(error), (asyncio.CancelledError, KeyboardInterrupt)) and passed_on(error):
            raise
        return _Raised(error)
