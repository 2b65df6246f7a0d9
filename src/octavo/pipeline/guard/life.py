"""Opens and closes a plugin's source, within a time, whatever it raises; and stands in for one that cannot be
opened."""

from __future__ import annotations

import asyncio
from typing import Any, Final, NoReturn

from octavo.core.errors import SourceUnavailable
from octavo.core.foreign import owner, passed_on
from octavo.core.ports.source import Source
from octavo.core.ref import Ref
from octavo.pipeline.guard.faults import Faults, told

OPENING: Final = 10.0  # seconds
CLOSING: Final = 5.0


class Life:
    """One task opens it and closes it: what some libraries open must be closed where it was opened."""

    def __init__(self, source: Source, faults: Faults) -> None:
        self._source: Any = source
        self.scheme, self._faults = source.scheme, faults
        self._keeper: asyncio.Task[None] | None = None
        self._opened, self._closing = asyncio.Event(), asyncio.Event()
        self.unopened = ""  # why it cannot be asked, once that is known

    def begin(self) -> None:
        """Opening several at once takes as long as the slowest of them."""
        if self._keeper is None and hasattr(type(self._source), "__aenter__"):
            self._keeper = asyncio.get_running_loop().create_task(self.kept())

    async def open(self) -> None:
        self.begin()
        if self._keeper is None:
            return
        try:
            async with asyncio.timeout(OPENING):
                await self._opened.wait()
        except TimeoutError:
            self._cannot_open(f"it did not open within {OPENING:g} s")
            self._keeper.cancel()

    async def close(self) -> None:
        """It is told to end after its time, and not waited for any longer."""
        self._closing.set()
        if self._keeper is None:
            return
        await asyncio.wait((self._keeper,), timeout=CLOSING)
        if not self._keeper.done():
            self._faults.note(self.scheme, "close", f"it did not close within {CLOSING:g} s")
            self._keeper.cancel()

    async def kept(self) -> None:
        owner.set(self.scheme)
        try:
            await self._source.__aenter__()
        except BaseException as error:
            if not self.unopened:
                self._cannot_open(told(error))
        self._opened.set()
        try:
            if not self.unopened:
                await self._closing.wait()
        finally:
            await self._close()

    def _cannot_open(self, words: str) -> None:
        self.unopened = words
        self._faults.note(self.scheme, "open", words, lasts=True)

    async def _close(self) -> None:
        """Also where opening failed half-way."""
        try:
            await self._source.__aexit__(None, None, None)
        except BaseException as error:
            if not passed_on(error):
                self._faults.note(self.scheme, "close", told(error))


class Unopened:
    """In the place of a source that could not be made: it answers nothing, and the operator is told why."""

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> NoReturn:
        raise self._unavailable()

    async def stat(self, ref: Ref) -> NoReturn:
        raise self._unavailable()

    async def read(self, ref: Ref, *, max_bytes: int) -> NoReturn:
        raise self._unavailable()

    def _unavailable(self) -> SourceUnavailable:
        return SourceUnavailable(f"Source unavailable: {self.scheme}", source=self.scheme)
