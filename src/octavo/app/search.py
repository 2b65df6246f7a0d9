"""The ranked search of a house: it begins when it is needed, follows the sources, and outlives a reload.

Nothing of it is imported or opened before that. Where there are catalogs it begins soon after the start; else with the
first question.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
from collections.abc import Awaitable, Coroutine, Hashable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from octavo.core.arguments import Allowed
from octavo.core.ports.source import Watches
from octavo.core.query import TextQuery
from octavo.core.search_results import Finding, Findings
from octavo.feed import ChangeFeed

if TYPE_CHECKING:
    from octavo.app.composition import Composed
    from octavo.app.search_documents import Documents, ProcessIndex
    from octavo.net.client import GuardedClient
    from octavo.search import Meaning, Upkeep

logger = logging.getLogger(__name__)

AHEAD: Final = 3.0  # seconds after the start: the first request is answered by then
PATIENCE: Final = 5.0  # seconds that a question waits while next to nothing was looked at
MOMENT: Final = 0.3  # and for what has just changed
_LOOKING: Final = 0.8  # of the time for an answer, until which texts are looked at
_ASKING: Final = 0.95  # and until which sources are asked whether they are still there
LOOK_AGAIN: Final = 60.0  # seconds between two looks for what the feed did not tell
_RARELY: Final = 10  # so many of these until what cannot be watched is compared
_REST: Final = 1.0  # an index that nobody waits for takes half of the time


class _SearchState(NamedTuple):
    """The index as it follows one configuration."""

    composition: Composed
    documents: Documents
    upkeep: Upkeep


class Searching:
    """See `core.ports.Finds`. `directory` is that of the state; None keeps the index in memory."""

    def __init__(self, directory: Path | None, feed: ChangeFeed) -> None:
        self._directory = None if directory is None else directory / "search"
        self._feed = feed
        self._composition: Composed | None = None
        self._room: ProcessIndex | None = None
        self._kept: _SearchState | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._following: set[asyncio.Task[None]] = set()
        self._ahead: asyncio.TimerHandle | None = None
        self._lent: ProcessIndex | None = None  # instead of one that is followed here
        self._client: GuardedClient | None = None  # of the embedder, where there is one

    def serve(self, composition: Composed) -> None:
        """Another configuration: what the index holds is compared with it, unless it is about the same."""
        self._composition = composition
        if self._kept is not None and _alike(self._kept.composition, composition):
            self._kept.documents.serve(composition)
            self._kept = self._kept._replace(composition=composition)
        if not composition.config.search.enabled:
            return
        if self._room is not None:
            self._begin()
        elif composition.catalogs is not None and self._ahead is None:
            self._ahead = asyncio.get_running_loop().call_later(AHEAD, self._begin)

    async def find(
        self,
        query: TextQuery,
        *,
        allowed: Allowed,
        viewer: Hashable | None = None,
        cursor: str | None = None,
        limit: int = 10,
        seconds: float = 10.0,
    ) -> Findings:
        if self._lent is not None:
            return await self._found_in(self._lent, query, allowed=allowed, viewer=viewer, cursor=cursor, limit=limit)
        time = asyncio.get_running_loop().time
        begun, patience = time(), min(PATIENCE, seconds / 2)
        until = begun + patience  # for both: whoever asks waits once
        ready = await self._ready(patience)
        if ready is None:
            return Findings((), building=True)
        room, kept = ready
        upkeep = kept.upkeep
        await _patiently(upkeep.answerable(), max(0.0, until - time()))
        await _patiently(upkeep.caught_up(), MOMENT)
        left = max(0.0, begun + _LOOKING * seconds - time())
        found = await room.text.find(query, allowed=allowed, viewer=viewer, cursor=cursor, limit=limit, seconds=left)
        asked = [_by(begun + _ASKING * seconds, kept.documents.as_it_is(one), one) for one in found.items]
        there = await asyncio.gather(*asked)
        return replace(
            found,
            items=tuple(one for one in there if one is not None),
            building=not upkeep.is_compared,
            limited=upkeep.limited,
            unlisted=upkeep.unlisted,
        )

    async def borrow(self, *, kept: bool) -> bool:
        """Whether there is an index in step with this configuration that can be asked without following anything: of
        another process, which follows for both; or `kept`, as it was when it was last compared.

        For whoever asks once and ends, before anything else is asked."""
        from octavo.app.search_documents import ProcessIndex

        composition, directory = self._composition, self._directory
        if composition is None or directory is None:
            return False
        room = await asyncio.to_thread(ProcessIndex.lent, directory, _configuration(composition), kept=kept)
        if room is not None:
            room.text.meaning = self._meaning(composition, room)
            self._lent = room
        return room is not None

    async def _found_in(self, room: ProcessIndex, query: TextQuery, **asked: Any) -> Findings:
        from octavo.app.search_documents import Documents

        assert self._composition is not None
        found = await room.text.find(query, **asked)
        there = await asyncio.gather(*map(Documents(self._composition).as_it_is, found.items))
        return replace(found, items=tuple(one for one in there if one is not None))

    @property
    def looked(self) -> int:
        """How many documents were looked at so far."""
        return 0 if self._kept is None else self._kept.upkeep.looked

    async def complete(self) -> int:
        """Returns once everything was looked at: the number of documents."""
        ready = await self._ready(None)
        assert ready is not None
        room, kept = ready
        await kept.upkeep.compared()
        return await asyncio.to_thread(room.index.count)

    async def close(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
        if self._preparing is not None:
            await asyncio.wait({self._preparing}, timeout=PATIENCE)  # what a thread opens must be closed
        await _ended(self._following)
        await self._end_client()
        rooms = self._room, self._lent
        self._room = self._lent = self._kept = None
        for room in filter(None, rooms):
            await asyncio.to_thread(room.close)

    async def _ready(self, seconds: float | None) -> tuple[ProcessIndex, _SearchState] | None:
        """The index, following what is served now; None if that takes longer. Whoever gives up waiting disturbs
        nobody."""
        preparing = self._begin()
        if preparing is not None:
            await asyncio.wait({preparing}, timeout=seconds)
            if not preparing.done():
                return None
            preparing.result()
        assert self._room is not None and self._kept is not None
        return self._room, self._kept

    def _begin(self) -> asyncio.Task[None] | None:
        """What has to be waited for, if anything."""
        if self._preparing is None and (self._kept is None or self._kept.composition is not self._composition):
            self._preparing = asyncio.get_running_loop().create_task(self._prepare())
        return self._preparing

    async def _prepare(self) -> None:
        try:
            if self._room is None:
                self._room = await asyncio.to_thread(_opened, self._directory)
            while (composition := self._composition) is not None and (
                self._kept is None or self._kept.composition is not composition
            ):
                await _ended(self._following)
                self._kept = await self._follow(composition, self._room)
        finally:
            self._preparing = None

    async def _follow(self, composition: Composed, room: ProcessIndex) -> _SearchState:
        from octavo.app.search_documents import Documents
        from octavo.search import Upkeep

        redaction = composition.redact.version
        documents = Documents(composition)
        await self._end_client()
        room.text.meaning = meaning = self._meaning(composition, room)
        room.index.most = composition.config.search.documents
        configuration = _configuration(composition)
        await asyncio.to_thread(room.index.begin_for, redaction)
        if await asyncio.to_thread(room.index.marked) != configuration:
            await asyncio.to_thread(room.index.mark, "")
        upkeep = Upkeep(
            room.index,
            documents.schemes,
            entries=documents.entries,
            read=documents.read,
            redaction=redaction,
            configuration=configuration,
            meaning=meaning,
            rest=_REST,
        )
        watched = [source.scheme for source in composition.sources if isinstance(source, Watches)]
        _kept_track(self._following, self._run(upkeep, watched))
        _kept_track(self._following, self._look_out(upkeep, watched, [*set(documents.schemes) - set(watched)]))
        return _SearchState(composition, documents, upkeep)

    def _meaning(self, composition: Composed, room: ProcessIndex) -> Meaning | None:
        options = composition.config.search.embedder
        if options is None:
            return None
        from octavo.app.embedder import HttpEmbedder, client_for
        from octavo.search import Meaning

        self._client = client_for(options)
        return Meaning(room.index, HttpEmbedder(options, self._client, composition.redact.text))

    async def _end_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _run(self, upkeep: Upkeep, watched: list[str]) -> None:
        leave = self._feed.subscribe(upkeep.hear)
        try:
            await _patiently(self._feed.followed(watched), PATIENCE)
            await upkeep.run()
        finally:
            leave()

    async def _look_out(self, upkeep: Upkeep, watched: list[str], others: list[str]) -> None:
        """What is not watched, or was not for a while, is compared."""
        await _patiently(self._feed.followed(watched), PATIENCE)
        number = self._feed.number()
        for turn in itertools.count(1):
            await asyncio.sleep(LOOK_AGAIN)
            unsure = [scheme for scheme in watched if self._feed.since(number, [scheme]) is None]
            number = self._feed.number()
            if not turn % _RARELY:
                unsure += others
            if unsure:
                upkeep.compare(unsure)


def _alike(before: Composed, after: Composed) -> bool:
    """Whether a document that is found by the one would be found by the other."""
    return (
        len(before.sources) == len(after.sources)
        and all(one is other for one, other in zip(before.sources, after.sources, strict=True))
        and before.catalogs is after.catalogs
        and before.redact.version == after.redact.version
        and before.config.search == after.config.search
    )


def _configuration(composition: Composed) -> str:
    """Names all that decides which documents there are and what the index holds of them."""
    parts = composition.config.model_dump_json(include={"sources", "search", "redact", "plugins"})
    return hashlib.sha256(f"{composition.redact.version} {parts}".encode()).hexdigest()


def _opened(directory: Path | None) -> ProcessIndex:
    from octavo.app.search_documents import ProcessIndex  # here: whoever never searches pays nothing for it

    return ProcessIndex.open(directory)


def _kept_track(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    def done(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            logger.error("The search index is no longer kept in step", exc_info=fault)

    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(done)


async def _patiently(waiting: Awaitable[None], seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiting


async def _by(moment: float, asked: Awaitable[Finding | None], known: Finding) -> Finding | None:
    """What is known, where more cannot be said in time."""
    try:
        async with asyncio.timeout_at(moment):
            return await asked
    except TimeoutError:
        return known


async def _ended(tasks: set[asyncio.Task[None]]) -> None:
    waiting = [*tasks]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
