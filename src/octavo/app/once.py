"""A server that lives for one question of a command, with policy and audit like any other.

What it is asked walks the same pipeline as everything else. What an operator changes is recorded by `changing`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from octavo.app.server import Octavo
from octavo.config.load import Loaded
from octavo.core.arguments import PLAIN, Arguments
from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.ports.chain import Reply, page_of
from octavo.core.values import Entry, Op
from octavo.stores.state import StateDirectory

if TYPE_CHECKING:
    from octavo.core.approval import ApprovalQuestion, Verdict
    from octavo.core.forms import Answer, Form

T = TypeVar("T")

_NAMES: Final = "octavo.sources.file.watch.names"
LOOK: Final = 0.2  # seconds between two looks at how far something is


def inside(
    loaded: Loaded, ask: Callable[[Octavo], Awaitable[T]], *, leaves_traces: bool = True, lasting: bool = False
) -> T:
    """What `ask` gives, of a house that is open for no longer. Without traces: no state is kept, and no record.
    `lasting`: it may be open for long, and stores the changes that it sees.
    Which files are not served for their names servers say, and `octavo check`."""

    async def main() -> T:
        state = None if leaves_traces else StateDirectory.in_memory()
        async with Octavo(loaded, state=state, lasting=lasting) as server:
            return await ask(server)

    logger = logging.getLogger(_NAMES)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return asyncio.run(main())
    finally:
        logger.setLevel(level)


def when_read(loaded: Loaded, ask: Callable[[Octavo], Awaitable[T]]) -> T:
    """Asked when the catalogs are there. Leaves no state and no audit record behind."""

    async def then(server: Octavo) -> T:
        await settled(server)
        return await ask(server)

    return inside(loaded, then, leaves_traces=False)


async def request(
    server: Octavo,
    who: str | None,
    op: Op,
    uri: str | None,
    cursor: str | None = None,
    limit: int | None = None,
    arguments: Arguments = PLAIN,
) -> Reply:
    """One request, recorded before its answer is used, like every client's."""
    composition = server.works
    call = composition.calls.at(op, composition.identity.launched(who), uri, arguments, cursor=cursor, limit=limit)
    try:
        return await composition.ask(call)
    finally:
        server.ledger.flush()


async def everything(server: Octavo, who: str | None, uri: str | None) -> tuple[list[Entry], list[str]]:
    """All pages of a list, and the sources that could not be asked."""
    entries: list[Entry] = []
    unavailable: list[str] = []
    cursor: str | None = None
    while True:
        page = page_of(await request(server, who, "list", uri, cursor))
        entries += page.items
        unavailable += page.unavailable
        cursor = page.cursor
        if cursor is None:
            return entries, unavailable


async def settled(server: Octavo) -> None:
    """Whoever asks once is answered when the catalogs are there, and not told to come again."""
    if server.works.catalogs is not None:
        await server.works.catalogs.read()


async def completed(server: Octavo, shows: Callable[..., None]) -> int:
    """The number of documents, once all were looked at; how far that is, is shown meanwhile."""
    looking = asyncio.ensure_future(server.searching.complete())
    while not looking.done():
        await asyncio.wait({looking}, timeout=LOOK)
        shows(done=server.searching.looked)
    return looking.result()


@contextmanager
def changing(server: Octavo, who: str, what: str, **facts: str) -> Iterator[dict[str, str]]:
    """Around what an operator changes: on record before and after, the latter with what is learnt meanwhile."""
    begun, outcome = server.begin(who, what, **facts), "crash"
    learnt: dict[str, str] = {}
    try:
        yield learnt
        outcome = "ok"
    except OctavoError as error:
        outcome = error.reason
        raise
    finally:
        server.note(who, what, outcome, begun=begun, **learnt, **facts)


class Terminal:
    """The client that waits is whoever sits at the terminal. Questions and approvals are answered by commands of their
    own, here as everywhere."""

    asks = lasts = waits = False

    def __init__(
        self, locale: str | None = None, *, progress: Callable[[float, float | None, str | None], None] | None = None
    ) -> None:
        self.locales: Sequence[str] = () if locale is None else (locale,)
        self._progress = progress

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        if self._progress is not None:
            self._progress(value, total, message)

    @property
    def wire(self) -> Any:
        raise InvalidParams("No client waits for this call, so there is no wire")

    async def ask(self, form: Form) -> Answer | None:
        return None

    async def approve(self, question: ApprovalQuestion) -> Verdict | None:
        return None
