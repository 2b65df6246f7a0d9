"""A branch that moves, told as changes of files. The kernel says when to look; a look now and then is the promise."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.values import Change
from octavo.sources._shared.audience import SourceWatchers
from octavo.sources._shared.fs.notify import Batch, FileHints
from octavo.sources._shared.git.objects import Id
from octavo.sources._shared.git.repository import Repository

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 2.0


class Tells(Protocol):
    """The source, as its watch sees it."""

    async def tip(self) -> Id: ...
    async def told(self, old: Id, new: Id) -> Sequence[Change]: ...
    async def remember(self, commit: Id) -> None: ...


class GitWatcher:
    """One for all who watch: at work while somebody does. A branch that is gone is not the end of its files: nothing
    is told until it is there again, and then what is different from before."""

    def __init__(self, source: Tells, repository: Repository, hints: Callable[[], FileHints]) -> None:
        self._source, self._repository, self._make = source, repository, hints
        self._audience = SourceWatchers(self._follow)
        self._news = asyncio.Event()
        self._untold: Id | None = None  # from where on what has changed could not be told

    def watch(self, scope: Ref) -> AsyncIterator[Change]:
        return self._audience.watch(scope)

    async def armed(self) -> None:
        await self._audience.begun()

    def close(self) -> None:
        self._audience.close(SourceUnavailable("The source is not open"))

    async def _follow(self, begun: asyncio.Event) -> None:
        hints = self._make()
        hints.listen(lambda: self._wake(hints))
        known = self._untold
        try:
            self._listen(hints)
            known = await self._look(known)
            self._untold = None
            begun.set()
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), POLL_SECONDS)
                self._news.clear()
                self._listen(hints)
                known = await self._look(known)
        except OctavoError as error:
            self._untold = known  # a repository that is being copied here is whole a moment later
            log.warning("What has changed on a branch cannot be told: %s", error)
            self._audience.dismiss(error)  # whoever watches begins again, and looks at everything
        finally:
            begun.set()
            hints.stop()
            hints.close()

    def _wake(self, hints: FileHints) -> None:
        hints.take(Batch())
        self._news.set()

    async def _look(self, known: Id | None) -> Id | None:
        now = await self._tip()
        if now is None or now == known:
            return known
        if known is None:
            await self._source.remember(now)
            return now
        for change in await self._source.told(known, now):
            self._audience.tell(change)
        return now

    async def _tip(self) -> Id | None:
        try:
            return await self._source.tip()
        except OctavoError:
            return None

    def _listen(self, hints: FileHints) -> None:
        """Folders can come and go with the branches in them: following one twice is harmless."""
        for names in self._repository.refs.folders():
            try:
                fd = self._repository.root.open(names, "directory")
            except OSError:
                continue
            try:
                hints.follow(fd)
            except OSError as error:
                log.info("A folder of references cannot be followed: %s", os.strerror(error.errno or 0))
            finally:
                os.close(fd)
