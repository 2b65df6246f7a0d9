"""The running server: the current composition, and what outlives a reload."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from octavo.app.audit import Books
from octavo.app.compose import compose
from octavo.app.composition import Composed
from octavo.app.confinement import Wall
from octavo.app.identities import hand_on, stored_keys
from octavo.app.narrowing import WHOLE, Narrowing, asked_for, by_roots, effective
from octavo.app.open_sources import OpenSources
from octavo.app.registries import prompt_folders
from octavo.app.requests import told
from octavo.app.search import Searching
from octavo.app.stores import Home, serving_of, storing_of
from octavo.config.load import Loaded, state_directory
from octavo.core.clock import SystemClock
from octavo.core.errors import Forbidden, OctavoError, SourceUnavailable
from octavo.core.ports.audit import Ledger
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.routes import Route
from octavo.core.values import Call, Principal
from octavo.feed import ChangeFeed
from octavo.pipeline.audit import AnnouncedChange
from octavo.pipeline.identity.fold import Key
from octavo.stores.keys import StoredKeys
from octavo.stores.state import StateDirectory

if TYPE_CHECKING:
    from octavo.app.catalogs import Catalogs
    from octavo.core.metrics import Measure
    from octavo.stores.approvals import StoredApprovals
    from octavo.stores.audit.tally import Tally
    from octavo.stores.conversations import StoredConversations
    from octavo.tools.tasks import LongWork
    from octavo.tools.tasks import TaskContext as Lasts

logger = logging.getLogger(__name__)

GRACE = 30.0  # seconds that calls on old works have after a reload, at the most
LOOK = 1.0  # seconds between two looks whether there are any left
CONFIGURATION = Ref("server", ("config",))  # what a rule names to let somebody change it


class Octavo:
    """The running house. An async context manager: entered once, left once."""

    def __init__(
        self,
        loaded: Loaded,
        *,
        state: StateDirectory | None = None,
        wall: Wall | None = None,
        counted: bool = False,
        lasting: bool = False,
        keyed: bool = False,
    ) -> None:
        """`counted`: what is recorded is counted too, for `measures`. `lasting`: changes are stored, and those while
        nobody watched are looked for, as a server does that is there for longer than one question.
        `keyed`: callers come with keys, so those of the store are known."""
        self._loaded, self._wall = loaded, wall
        closed = loaded.config.audit.fail_closed
        self._state = state or StateDirectory.open(state_directory(loaded), fail_closed=closed)
        self.home = Home(loaded.config.store, self._state.path, loaded.config.shared)
        self._serves = lasting
        self.feed = ChangeFeed()
        self._storing = storing_of(loaded, self.home) if lasting and self._state.path is not None else None
        self._tally = _tally() if counted else None
        hears = told(None if self._tally is None else self._tally.add)
        self._books = Books(loaded.config.audit, self._state, hears)
        self.ledger: Ledger = self._books.ledger
        self._begun = SystemClock.monotonic()
        self.searching = Searching(self._state.path, self.feed)
        self.keyed = keyed
        self._keys: Sequence[Key] = ()
        self._away_since: float | None = None  # the store
        self._open: AsyncExitStack | None = None  # what the works hold open; None before there are any
        self._sources = OpenSources()
        self._swapping = asyncio.Lock()
        self._on_swap: list[Callable[[], None]] = []
        self._on_list_changed: list[Callable[[str], None]] = []
        self._conversations: StoredConversations | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._narrowing = WHOLE
        self._narrowed_by: Literal["nobody", "roots", "client", "admin"] = "nobody"
        self._tasks: LongWork | None = None
        self._catalogs: list[Catalogs] = []  # that may still be read for the first time

    @cached_property
    def works(self) -> Composed:
        """Of the current configuration. Once the house is open this is an attribute: every request asks for it."""
        raise RuntimeError("The house is not open")

    @property
    def tasks(self) -> LongWork:
        if self._tasks is None:
            from octavo.stores.tasks import StoredTasks
            from octavo.tools.tasks import LongWork

            self._tasks = LongWork(StoredTasks(self.home.store, self.home.presence()), self._lasting)
        return self._tasks

    def _long(self) -> LongWork:
        return self.tasks

    def _ask(self, call: Call) -> Awaitable[Reply]:
        return self.works.ask(call)

    def _lasting(self) -> Lasts:
        lasting = self.works.lasting
        if lasting is None:
            from octavo.app.tasks import nothing

            return nothing(self.works.identity.current)
        return lasting

    def key(self, purpose: Any) -> bytes:
        return self._state.key(purpose)

    @property
    def keys(self) -> StoredKeys:
        """Raises SourceUnavailable where the state is kept in memory."""
        if self._state.path is None:
            raise SourceUnavailable("Keys need a state folder that can be written; name one in state.path")
        return StoredKeys(self.home.store)

    @property
    def approvals(self) -> StoredApprovals:
        """For whoever answers. Raises SourceUnavailable where the state is kept in memory."""
        if self._state.path is None:
            raise SourceUnavailable("Approvals need a state folder that can be written; name one in state.path")
        from octavo.app.approvals import answering

        return answering(self.home.store, self.works.audit)

    def note(self, who: str, what: str, outcome: str, **fields: Any) -> None:
        self.works.audit.note(who, what, outcome, **fields)

    def begin(self, who: str, what: str, **fields: Any) -> AnnouncedChange:
        """Before something is changed beside the calls. Raises Unrecorded, and then it must not be."""
        return self.works.audit.begin(who, what, **fields)

    def ready(self) -> bool:
        if self._open is None:
            return False
        try:
            self.ledger.check()
        except OctavoError:
            return False
        return True

    def ailing(self) -> Mapping[str, str]:
        troubles = self._sources.troubles()
        concerned = {
            source.scheme: troubles.get(name) or troubles.get(getattr(source, "store", ""), "")
            for name, source in self._loaded.config.sources.items()
            if source.expose
        }
        return {**self.works.ailing, **{scheme: words for scheme, words in concerned.items() if words}}

    def held_up(self, whose: str, words: str) -> None:
        """By the code of a source, or of a tool."""
        self.works.faults.note(whose, "loop", words)

    def remarks(self) -> Mapping[str, Any]:
        held = self._books.held()
        told = dict[str, int]()
        if held is not None:
            told = {"bytes": held.size} | ({} if held.per_day is None else {"bytesPerDay": held.per_day})
        strange = self._books.strange()
        if strange:
            told["unverifiable"] = strange
        shared = {"shared": "away"} if self._storing is not None and self._storing.tail.alone else {}
        away = {} if self._away_since is None else {"store": "away"}
        return {**({"audit": told} if told else {}), **away, **shared}

    def measures(self) -> Iterable[Measure]:
        from octavo.app.metrics import measures

        return measures(self.works, self._tally, self._begun)

    def routes(self) -> Iterable[Route]:
        """What is served over HTTP beside the protocol."""
        from octavo.feed.stream import ChangeStream

        return ChangeStream(self, lambda: self.works.changes).routes()

    def on_swap(self, listener: Callable[[], None]) -> None:
        self._on_swap.append(listener)

    def on_list_changed(self, listener: Callable[[str], None]) -> None:
        self._on_list_changed.append(listener)

    async def __aenter__(self) -> Octavo:
        try:
            if self._serves:
                self.home.begin()
            await self._learn_keys()
            await self._swap(self._loaded)
        except BaseException:
            await self.home.close()
            self._books.close()
            raise
        self._books.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._tasks is not None:
            await self._tasks.close()
        await self.searching.close()
        await self.feed.close()
        for catalogs in self._catalogs:
            await catalogs.close()
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        if self._open is not None:
            await self._open.aclose()
        await self.home.close()
        self._books.close()

    async def reload(self, loaded: Loaded) -> None:
        """Swap to another configuration. Raises, and changes nothing, when it cannot be composed.

        A client on stdio stays narrowed to what it asked for; what an administrator asked for has ended.
        """
        if self._wall is not None:
            self._wall.admit(loaded)
        async with self._swapping:  # of two at once the later one stays
            ended = self._narrowed_by == "admin"
            before = self._listed()
            await self._swap(loaded, WHOLE if ended else self._narrowing)
            if ended:
                self._narrowed_by = "nobody"
            self._tell()
            if self._listed() != before:  # else only tools or prompts may be others, and some of those are hidden
                self._list_changed("resources")

    async def rekey(self) -> None:
        """Uses the keys that the store has now. Raises, and changes nothing, when they cannot be read."""
        try:
            keys = await stored_keys(self.home.store)
        except OctavoError:
            self._away_since = self._away_since or SystemClock.monotonic()
            raise
        self._away_since = None
        self._use_keys(keys)

    def forget_keys(self, after: float) -> bool:
        """Whether they were forgotten by this, because the store is away for so long: one may have been revoked."""
        away = self._away_since is not None and SystemClock.monotonic() - self._away_since >= after
        return away and self._use_keys(())

    def _use_keys(self, keys: Sequence[Key]) -> bool:
        """Whether they are others."""
        if [*keys] == [*self._keys]:
            return False
        self._keys = keys
        self.works.identity.use_keys(keys)
        self._tell()
        return True

    async def _learn_keys(self) -> None:
        if self.keyed:
            try:
                self._keys = await stored_keys(self.home.store)
            except OctavoError as problem:
                self._away_since = SystemClock.monotonic()
                logger.error("keys of `octavo keys new` are not known: %s", problem)

    async def narrow(
        self,
        who: Principal,
        asked: Mapping[str, Any],
        *,
        owns_process: bool,
        announced: Callable[[object], None] = lambda begun: None,
    ) -> dict[str, Any]:
        if not owns_process and not self.works.administers(who, CONFIGURATION):
            raise Forbidden(
                "Only an agent whom the policy grants admin may narrow this server for everybody",
                agent=who.id,
                required_permission="admin",
                resource=str(CONFIGURATION),
            )
        async with self._swapping:
            narrowing = asked_for(asked, self._loaded)
            announced(self.begin(who.id, "server/config"))
            await self._narrow(narrowing)
            self._narrowed_by = "client" if owns_process else "admin"
            return effective(self._loaded, self._narrowing)

    async def narrow_to_roots(self, who: Principal, uris: Sequence[str]) -> None:
        async with self._swapping:
            if self._narrowed_by not in ("nobody", "roots"):
                return  # it has said more exactly what it wants
            narrowing = by_roots(uris, self._loaded)
            if narrowing is None:
                logger.warning("no root of the client lies in what is served, so they narrow nothing")
            await self._narrow(narrowing or WHOLE)
            self._narrowed_by = "roots"
            self.note(who.id, "roots/list", "ok")

    async def _narrow(self, narrowing: Narrowing) -> None:
        if narrowing != self._narrowing:
            await self._swap(self._loaded, narrowing)
            self._tell()
            self._list_changed("resources")

    def _tell(self) -> None:
        for listener in self._on_swap:
            listener()

    def _listed(self) -> object:
        """What lists of resources are made of, but for what the sources hold: it is told by their watches."""
        return self._loaded.config, tuple(self.works.sources)

    def _retired(self, task: asyncio.Task[None]) -> None:
        """Requests leave no cycles, so the collector of a server looks for them rarely. A configuration is one large
        cycle: there would be dozens of them by then."""
        self._retiring.discard(task)
        gc.collect()

    def _list_changed(self, kind: str) -> None:
        for listener in self._on_list_changed:
            listener(kind)

    def _conversing(self, loaded: Loaded) -> StoredConversations | None:
        """Kept over reloads. Nothing of it is loaded where there are no prompts."""
        if self._conversations is None and prompt_folders(loaded):
            from octavo.stores.conversations import StoredConversations

            expires = loaded.config.prompts.context_expires
            self._conversations = StoredConversations(self.home.store, expires=expires)
        elif self._conversations is not None:
            self._conversations.expires = loaded.config.prompts.context_expires
        return self._conversations

    async def _swap(self, loaded: Loaded, narrowing: Narrowing = WHOLE) -> None:
        stack = AsyncExitStack()
        try:
            composition = await compose(
                loaded,
                self._state,
                self.ledger,
                self.feed,
                stack,
                self._sources,
                self.home.store,
                self._keys,
                narrowing,
                self.searching,
                self._long,
                self._conversing(loaded),
                self._ask,
                self._storing,
            )
            if self._open is not None and composition.unopened:  # what is served now is better
                scheme, why = next(iter(composition.unopened.items()))
                raise SourceUnavailable(f"The source {scheme}:// cannot be opened: {why}", source=scheme)
        except BaseException:
            await stack.aclose()
            raise
        # Not before: catalogs that go on would tell of rules that may never hold.
        self._sources.catalogs = composition.catalogs
        if composition.catalogs is not None:
            composition.catalogs.bind(composition.agents)
            composition.catalogs.begin(lambda: self._list_changed("resources"))
            reading = [one for one in self._catalogs if not one.are_read]
            self._catalogs = [*(one for one in reading if one is not composition.catalogs), composition.catalogs]
        before = None if self._open is None else self.works
        if before is not None:
            hand_on(before.identity, composition.identity)
            composition.identity.use_keys(self._keys)  # that came while it was composed
            before.policy.retire(composition.policy)
            composition.audit.go_on_from(before.audit)
        old, self._open = self._open, stack
        self.works, self._loaded, self._narrowing = composition, loaded, narrowing
        if self._tally is not None:
            self._tally.known = composition.labels
        if self._storing is not None:
            self._storing.journal.redact = composition.redacted
        self.feed.store_in(self._storing, serving_of(loaded, narrowing, self._state.key("feed")))
        stack.callback(self.feed.subscribe(composition.cache.forget))
        stack.callback(composition.tools.on_change(lambda: self._list_changed("tools")))
        stack.callback(composition.prompts.on_change(lambda: self._list_changed("prompts")))
        if old is not None and before is not None:
            await self.feed.follow(composition.sources)
            task = asyncio.get_running_loop().create_task(_retire(before, old, self.feed))
            self._retiring.add(task)
            task.add_done_callback(self._retired)
        else:
            await self.feed.follow(composition.sources)
        self.searching.serve(composition)


def _tally() -> Tally:
    from octavo.stores.audit.tally import Tally  # here: most servers start sooner without it

    return Tally()


async def _retire(composition: Composed, old: AsyncExitStack, feed: ChangeFeed) -> None:
    """What a configuration held open stays open for the calls that still run on it, and for what its watches have
    still to tell."""
    try:
        async with asyncio.timeout(GRACE):
            await feed.handed_over()
            await asyncio.sleep(LOOK)
            while composition.quota.in_flight or composition.quota.waiting:
                await asyncio.sleep(LOOK)
    except TimeoutError:
        logger.warning("calls on the configuration of before still run after %g s: they lose its sources", GRACE)
    finally:
        await old.aclose()
