"""Counts who watches a source, so that changes are followed only while somebody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry

_News: TypeAlias = Change | OctavoError  # an error is the last thing that a watch hears


class SourceWatchers:
    def __init__(self, follow: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
        """`follow` sets the event when nothing is missed from then on, and tells what changes until it is cancelled.
        If it cannot go on it says so by `dismiss`."""
        self._follow = follow
        self._scopes: dict[asyncio.Queue[_News], Ref] = {}
        self._task: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()

    async def watch(self, scope: Ref) -> AsyncIterator[Change]:
        queue: asyncio.Queue[_News] = asyncio.Queue()
        self._scopes[queue] = scope.bare
        if self._task is None:
            self._begun = asyncio.Event()
            self._task = asyncio.create_task(self._follow(self._begun))
        try:
            while True:
                news = await queue.get()
                if isinstance(news, OctavoError):
                    raise news
                yield news
        finally:
            del self._scopes[queue]
            if not self._scopes:
                self._stop()

    async def begun(self) -> None:
        """Returns when whoever watches misses nothing any more."""
        if self._task is not None:
            await self._begun.wait()

    def tell(self, change: Change) -> None:
        """To each what of it stands in its scope."""
        for queue, scope in self._scopes.items():
            part = change.part(partial(_stands_in, scope))
            if part is not None:
                queue.put_nowait(part)

    def dismiss(self, error: OctavoError) -> None:
        """Whoever watches is told that it has ended, and watches again."""
        self._task = None
        for queue in self._scopes:
            queue.put_nowait(error)

    def close(self, error: OctavoError) -> None:
        self._stop()
        self.dismiss(error)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None


def _stands_in(scope: Ref, ref: Ref, _: Entry | None) -> bool:
    return ref.within(scope)
