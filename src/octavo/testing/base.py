"""What the suites share: the tree, the hooks, and ways to wait without sleeping."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, TypeVar

import anyio
import anyio.lowlevel
import pytest

from octavo.core.errors import OctavoError
from octavo.core.ports.source import Source, Watches, Writes
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.values import Change, Content, Entry

T = TypeVar("T")
ENOUGH = MIB

# Decoded paths and their texts. The names are nasty on purpose; all end in `.md`, so that a source with
# a list of extensions can hold them too.
TREE: Mapping[str, str] = {
    "a/one.md": "---\ntitle: One\nversion: 1.0.0\n---\nfirst\n",
    "a/두 번째.md": "두 번째 문서\n",  # NFC, more bytes than characters
    "a/b/three %2F?.md": "a name that must be decoded exactly once\n",
    'a/b/it\'s "quoted" & <tagged>.md': "quotes\n",
    "a/b/c/déjà vu.md": "accents\n",
    "a b/#hash, [set] and *.md": "what patterns and fragments are made of\n",
    "aa/beside a.md": "shares the first letter of its folder, and is not in it\n",
    "東京/設計書.md": "設計\n",
    "東京/👩‍💻 emoji.md": "joined by an invisible character\n",
    "empty.md": "",
    "z.md": "last\n",
}


class Watched:
    """The changes that one watch has told so far, those of its probe apart."""

    def __init__(self, changes: AsyncIterator[Change], probe: Ref, patience: float) -> None:
        self.changes: list[Change] = []
        self._source = changes
        self._probe = probe
        self._patience = patience
        self._news = asyncio.Event()
        self.begun = asyncio.Event()

    async def collect(self) -> None:
        async for change in self._source:
            if change.ref == self._probe:
                self.begun.set()
            else:
                self.changes.append(change)
                self._news.set()

    async def until(self, ready: Callable[[Change], bool], what: str) -> Change:
        """The first change that is `ready`; waits for it."""
        with anyio.move_on_after(self._patience):
            while True:
                for change in self.changes:
                    if ready(change):
                        return change
                self._news.clear()
                await self._news.wait()
        told = [(change.kind, str(change.ref)) for change in self.changes]
        raise AssertionError(f"watch never told {what}; it told {told}")


class Suite:
    """The hooks that a subclass may override. Only `source` must be."""

    # On the class: a mark on this module would not reach a subclass elsewhere.
    pytestmark = pytest.mark.anyio

    #: Decoded path -> text: exactly what the source under test holds. Override only with a reason.
    TREE: ClassVar[Mapping[str, str]] = TREE
    #: What the source hides from the end of its names, as catalogs hide `.md`.
    suffix: ClassVar[str] = ""
    #: Texts in the options of the source that must never show.
    secrets: ClassVar[Sequence[str]] = ()
    #: False for a source whose queries are free (http).
    refuses_unknown_parameters: ClassVar[bool] = True
    #: Seconds to wait for an event before the test fails.
    patience: ClassVar[float] = 5.0

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def source(self) -> Any:
        """The source under test, opened, holding exactly TREE. May be an async (generator) fixture."""
        raise NotImplementedError("override the fixture `source`")

    @pytest.fixture
    def kind(self) -> Any:
        """The record of its kind, where it has one, with options of which `source` is made: `(record, options)`."""
        return None

    async def put(self, source: Source, path: str, text: str) -> None:
        """Makes or changes one entry behind the source's back. By default through its own `write`."""
        if not isinstance(source, Writes):
            pytest.skip("cannot write, and the hook `put` is not overridden")
        await source.write(self.ref(source, path), text, if_match=None)

    async def remove(self, source: Source, path: str) -> None:
        """Deletes one entry. By default through the source's own `delete`."""
        if not isinstance(source, Writes):
            pytest.skip("cannot write, and the hook `remove` is not overridden")
        await source.delete(self.ref(source, path), if_match=None)

    async def fresh(self) -> Source:
        """Another source, not opened yet, for the tests of opening and closing."""
        pytest.skip("the hook `fresh` is not overridden")

    async def settle(self, source: Source) -> None:
        """Called after each `put` and `remove`: a source that polls looks now."""

    def ref(self, source: Source, path: str) -> Ref:
        """The address at which the source serves a path of TREE."""
        return Ref.of(source.scheme, path.removesuffix(self.suffix).split("/"))

    # Below: what the tests are written with.

    @property
    def folder(self) -> str:
        """A first segment with several entries and a neighbour that begins like it, as far as TREE has one."""
        firsts = [path.split("/")[0] for path in self.TREE if "/" in path]
        return max(firsts, key=firsts.count) if firsts else pytest.skip("TREE has no folders")

    @property
    def text_path(self) -> str:
        """An entry whose text has more bytes than characters, as far as TREE has one."""
        return max(self.TREE, key=lambda path: len(self.TREE[path].encode()) - len(self.TREE[path]))

    def beside(self, path: str, name: str) -> str:
        """A path for a new entry in the same folder."""
        folder, slash, _ = path.rpartition("/")
        return f"{folder}{slash}{name}.md"

    async def change(self, source: Source, path: str, text: str | None) -> None:
        if text is None:
            await self.remove(source, path)
        else:
            await self.put(source, path, text)
        await self.settle(source)

    async def everything(self, source: Source, scope: Ref | None = None, limit: int = 100) -> list[Entry]:
        found: list[Entry] = []
        cursor: str | None = None
        for _ in range(1000):
            page = await source.list(scope or Ref(source.scheme), cursor=cursor, limit=limit)
            assert len(page.items) <= limit, "a page is never longer than asked"
            found += page.items
            cursor = page.cursor
            if cursor is None:
                return found
        raise AssertionError("paging never ends")

    async def patiently(self, work: Awaitable[T], what: str) -> T:
        """`work`, which must end within `patience`."""
        with anyio.move_on_after(self.patience):
            return await work
        raise AssertionError(f"{what} did not end within {self.patience} s")

    @asynccontextmanager
    async def watching(self, source: Source, scope: Ref, probe: str) -> AsyncGenerator[Watched, None]:
        """A watch that is known to have begun: `probe`, a path in its scope, is changed until it is told.

        What is told of the probe is left out of `Watched.changes`.
        """
        if not isinstance(source, Watches):
            pytest.skip("cannot watch")
        changes = closable(source.watch(scope))
        watched = Watched(changes, self.ref(source, probe), self.patience)
        task = asyncio.create_task(watched.collect())
        try:
            await self._begin(source, watched, task, probe)
            yield watched
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=self.patience)
        assert task.done(), "a watch that is cancelled ends"
        if not task.cancelled():
            error = task.exception()
            raise AssertionError("watch ended before it was cancelled") from error
        await changes.aclose()

    async def _begin(self, source: Source, watched: Watched, task: asyncio.Task[None], probe: str) -> None:
        with anyio.move_on_after(self.patience):
            for turn in range(10_000):
                if task.done():
                    return  # the end of `watching` says why
                await anyio.lowlevel.checkpoint()
                await self.change(source, probe, f"turn {turn}\n")
                with anyio.move_on_after(0.05):
                    await watched.begun.wait()
                    return
        raise AssertionError("watch told nothing of an entry that was changed again and again")


def closable(changes: AsyncIterator[Change]) -> Any:
    assert hasattr(changes, "aclose"), "what watch gives can be closed with aclose()"
    return changes


def text_of(content: Content) -> str:
    return content.body if isinstance(content.body, str) else content.body.decode("utf-8")


async def outcome(work: Awaitable[T]) -> T | OctavoError:
    """What was answered, or the OctavoError that left. Anything else is a breach of clause 6."""
    try:
        return await work
    except OctavoError as error:
        return error
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} left the source; only OctavoErrors may") from error


def told(reply: object) -> str:
    """Everything that a log or a client could see of a reply or an error, its causes included."""
    if not isinstance(reply, BaseException):
        return repr(reply)
    return "".join(traceback.format_exception(reply)) + repr(reply) + repr(getattr(reply, "data", {}))


def showing(secrets: Iterable[str], text: str) -> list[str]:
    return [secret for secret in secrets if secret in text]
