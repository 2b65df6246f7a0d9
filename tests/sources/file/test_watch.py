"""Watching: every change is told once, as what it was, whatever the kernel's events looked like."""

import asyncio
import errno
import os
import random
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from octavo.core.clock import SystemClock
from octavo.core.errors import SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry
from octavo.sources._shared.fs.notify import Batch, FileHints, Inotify, NoHints, Watchfiles
from octavo.sources.file import FileRoot, FileSource
from octavo.sources.file import watch as watch_module
from octavo.sources.file.snapshot import FileSnapshot

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F1")]
PATIENCE = 30


class Changes:
    """What one watch has told. The last thing a test does to the disk is what it waits for."""

    def __init__(self) -> None:
        self.all: list[Change] = []
        self._news = asyncio.Event()

    def add(self, change: Change) -> None:
        self.all.append(change)
        self._news.set()

    @property
    def told(self) -> list[tuple[str, str]]:
        """Kind and address; of what was renamed, `from > to`."""
        return [
            (change.kind, f"{change.source} > {change.ref}" if change.source else str(change.ref))
            for change in self.all
        ]

    async def until(self, ready: Callable[[], bool]) -> None:
        with anyio.move_on_after(PATIENCE):
            while not ready():
                self._news.clear()
                await self._news.wait()
            return
        raise AssertionError(f"told in vain: {self.told[-20:]} of {len(self.all)}")

    async def of(self, *expected: tuple[str, str]) -> None:
        """Exactly these, in any order; forgets them."""
        await self.until(lambda: len(self.all) >= len(expected))
        assert sorted(self.told) == sorted(expected)
        self.all.clear()


@asynccontextmanager
async def watching(source: FileSource, uri: str = "file://") -> AsyncIterator[Changes]:
    changes = Changes()
    stream = source.watch(Ref.parse(uri))

    async def collect() -> None:
        async for change in stream:
            changes.add(change)

    task = asyncio.ensure_future(collect())
    await begun(source)
    try:
        yield changes
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
        assert task.cancelled()
        await stream.aclose()  # type: ignore[attr-defined]


async def begun(source: FileSource) -> None:
    """The first look at a small tree is over when the watch is first awaited; of a large one, some time later."""
    with anyio.fail_after(PATIENCE):
        await anyio.lowlevel.checkpoint()
        started = source._watcher and source._watcher._started
        assert started is not None
        await asyncio.shield(started)


async def test_a_file_that_comes_changes_and_goes_is_told(put: Any, opened: Any, root: Path) -> None:
    source, ref = await opened(), Ref.parse("file://a.md")
    async with watching(source) as changes:
        put("a.md", "one")
        one = await source.stat(ref)
        await changes.until(lambda: len(changes.all) == 1)
        put("a.md", "longer")
        two = await source.stat(ref)
        await changes.until(lambda: len(changes.all) == 2)
        (root / "a.md").unlink()
        await changes.until(lambda: len(changes.all) == 3)
        assert [(change.kind, change.ref, change.old, change.new) for change in changes.all] == [
            ("created", ref, None, one),
            ("updated", ref, one, two),
            ("deleted", ref, two, None),
        ]
        assert one.version != two.version


async def test_a_file_that_is_written_in_place_ends_as_it_is(put: Any, write: Any, opened: Any) -> None:
    """Truncated and then filled: somebody may be told both, and the last word is what is there."""
    put("a.md", "one")
    source, ref = await opened(), Ref.parse("file://a.md")
    async with watching(source) as changes:
        write("a.md", "longer")
        last = await source.stat(ref)
        await changes.until(lambda: bool(changes.all) and changes.all[-1].new == last)
        assert {kind for kind, _ in changes.told} == {"updated"}


async def test_an_atomic_replace_is_one_update(put: Any, opened: Any, root: Path) -> None:
    """Editors write a new file and rename it; watchfiles tells that as "added"."""
    put("a.md", "one")
    source = await opened()
    async with watching(source) as changes:
        put("a.md", "longer")
        await changes.until(lambda: bool(changes.all))
        [change] = changes.all
        assert (change.kind, str(change.ref)) == ("updated", "file://a.md")
        assert change.old is not None and change.new is not None
        assert (change.old.size, change.new.size) == (3, 6) and change.old.version != change.new.version
        assert change.changes["size"] == [3, 6]


async def test_a_file_that_is_made_anew_by_a_checkout_is_one_update(put: Any, opened: Any, root: Path) -> None:
    """Git unlinks a file and writes another; the watch may look in between, and reads then find nothing."""
    put("a.md", "one")
    put("b.md", "b")
    source = await opened()
    async with watching(source) as changes:
        for text in ("two", "three"):
            (root / "a.md").unlink()
            assert await source.caught_up() is not None, "the watch has seen that it is gone"
            put("a.md", text)
            await changes.until(lambda: bool(changes.all))
            [change] = changes.all
            assert (change.kind, str(change.ref)) == ("updated", "file://a.md")
            assert change.old is not None and change.new is not None and change.new.size == len(text)
            changes.all.clear()
        (root / "a.md").unlink()
        assert await source.caught_up() is not None
        (root / "b.md").unlink()
        await changes.of(("deleted", "file://a.md"), ("deleted", "file://b.md"))


async def test_what_comes_behind_a_deletion_is_told_behind_it(put: Any, opened: Any, root: Path) -> None:
    put("a.md", "one")
    source = await opened()
    async with watching(source) as changes:
        (root / "a.md").unlink()
        put("a.md/b.md", "a folder in the place of a file")
        await changes.until(lambda: len(changes.all) == 2)
        assert changes.told == [("deleted", "file://a.md"), ("created", "file://a.md/b.md")]


async def test_a_renamed_file_is_one_change_with_both_places(put: Any, opened: Any, root: Path) -> None:
    put("a.md"), put("d/x.md")
    source = await opened()
    before = await source.stat(Ref.parse("file://a.md"))
    async with watching(source) as changes, watching(source, "file://d") as inside:
        os.rename(root / "a.md", root / "d" / "b.md")
        await changes.until(lambda: bool(changes.all))
        [change] = changes.all
        assert changes.told == [("renamed", "file://a.md > file://d/b.md")]
        assert (change.old, change.new) == (before, await source.stat(change.ref))
        await inside.of(("created", "file://d/b.md"))
        changes.all.clear()
        os.rename(root / "d" / "b.md", root / "b.md")
        await changes.of(("renamed", "file://d/b.md > file://b.md"))
        await inside.of(("deleted", "file://d/b.md"))


async def test_a_file_renamed_over_another_is_an_update_and_a_deletion(put: Any, opened: Any, root: Path) -> None:
    """Each address has one history: what was there before is not lost from it."""
    put("a.md", "one"), put("b.md", "three")
    source = await opened()
    async with watching(source) as changes:
        os.rename(root / "a.md", root / "b.md")
        await changes.until(lambda: len(changes.all) == 2)
        assert changes.told == [("deleted", "file://a.md"), ("updated", "file://b.md")]
        assert changes.all[1].changes["size"] == [5, 3]


async def test_what_cannot_be_proven_to_be_the_same_file_goes_and_comes(put: Any, opened: Any, root: Path) -> None:
    """Links, and a file that was rewritten on the way, or came from elsewhere."""
    put("a.md", "one"), put("b.md", "two")
    (root / "link.md").symlink_to("b.md")
    source = await opened()
    async with watching(source) as changes:
        os.rename(root / "a.md", root / "c.md")
        (root / "c.md").write_text("one and more", encoding="utf-8")
        await changes.of(("deleted", "file://a.md"), ("created", "file://c.md"))
        os.rename(root / "link.md", root / "other.md")
        await changes.of(("deleted", "file://link.md"), ("created", "file://other.md"))
        shutil.copy2(root / "b.md", root.parent / "copy"), os.unlink(root / "b.md")
        os.rename(root.parent / "copy", root / "d.md")
        await changes.of(("deleted", "file://b.md"), ("deleted", "file://other.md"), ("created", "file://d.md"))


async def test_changes_tell_which_content_it_was_and_is(put: Any, opened: Any, root: Path) -> None:
    """The etag that a read gives; not of a large file, and not of a content that nobody has looked at."""
    put("a.md", "one")
    source, ref = await opened(), Ref.parse("file://a.md")

    async def etag() -> str:
        return str((await source.read(ref, max_bytes=100)).etag)

    async with watching(source) as changes:
        etags: list[str | None] = [None]
        for text in ("two", "three"):
            put("a.md", text)
            etags.append(await etag())
            await changes.until(lambda: len(changes.all) == len(etags) - 1)
        assert [change.changes["etag"] for change in changes.all] == [etags[:2], etags[1:]]
        os.rename(root / "a.md", root / "b.md")
        await changes.until(lambda: len(changes.all) == 3)
        assert changes.all[-1].old and changes.all[-1].old.etag == etags[-1]
        assert "etag" not in changes.all[-1].changes, "it is the same"
        changes.all.clear()
        put("large.md", "x" * ((1 << 20) + 1))
        await changes.until(lambda: bool(changes.all))
        assert "etag" not in changes.all[-1].changes


async def test_a_first_look_that_fails_at_once_is_tried_again(
    put: Any, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a.md")
    source, fill = await opened(), FileSnapshot.fill

    def broken(self: FileSnapshot) -> Iterator[None]:
        raise OSError(errno.EMFILE, "Too many open files")
        yield

    monkeypatch.setattr(FileSnapshot, "fill", broken)
    for _ in range(2):
        with pytest.raises(SourceUnavailable):
            await source.armed()
    monkeypatch.setattr(FileSnapshot, "fill", fill)
    await source.armed()
    async with watching(source) as changes:
        put("b.md")
        await changes.of(("created", "file://b.md"))


async def test_a_renamed_directory_takes_its_files_along(put: Any, opened: Any, root: Path) -> None:
    for path in ("d/a.md", "d/deep/b.md", "d/deep/er/c.md", "e/x.md"):
        put(path)
    source = await opened()
    async with watching(source) as changes:
        os.rename(root / "d", root / "e" / "f")
        files = ("a.md", "deep/b.md", "deep/er/c.md")
        await changes.of(*[("renamed", f"file://d/{f} > file://e/f/{f}") for f in files])
        put("e/f/deep/er/c.md", "changed in its new place")
        await changes.until(lambda: bool(changes.all))
        assert set(changes.told) == {("updated", "file://e/f/deep/er/c.md")}
        changes.all.clear()
        os.rename(root / "e" / "f", root.parent / "gone")
        await changes.of(*[("deleted", f"file://e/f/{f}") for f in files])
        (root.parent / "gone" / "a.md").write_text("outside now", encoding="utf-8")
        put("z.md")
        await changes.until(lambda: bool(changes.all))
        assert {uri for _, uri in changes.told} == {"file://z.md"}


async def test_two_directories_that_change_places_are_told_as_what_is_where(put: Any, opened: Any, root: Path) -> None:
    put("a/x.md", "one"), put("b/x.md", "three"), put("b/y.md")
    expected = {"file://a/x.md": 5, "file://a/y.md": 5, "file://b/x.md": 3}
    source = await opened()
    async with watching(source) as changes:
        for one, two in (("a", "c"), ("b", "a"), ("c", "b")):
            os.rename(root / one, root / two)
        await changes.until(lambda: state(changes) == expected)
        put("b/x.md", "later")
        await changes.until(lambda: changes.told[-1:] == [("updated", "file://b/x.md")])


def state(changes: Changes) -> dict[str, int | None]:
    """What the changes so far leave behind of the files they touched."""
    left: dict[str, int | None] = {}
    for change in changes.all:
        if change.source is not None:
            left.pop(str(change.source), None)
        if change.new is None:
            left.pop(str(change.ref), None)
        else:
            left[str(change.ref)] = change.new.size
    return left


async def test_directories_that_are_made_deep_at_once_are_followed(put: Any, opened: Any) -> None:
    """A watch on a new directory is always set too late: what came before it must be looked for."""
    source = await opened()
    async with watching(source) as changes:
        expected = set()
        for number in range(50):
            put(f"new{number}/a/b/c/x.md", "")
            expected.add(("created", f"file://new{number}/a/b/c/x.md"))
        await changes.until(lambda: len(changes.all) >= 50)
        assert set(changes.told) == expected
        put("new7/a/b/c/y.md", "")
        await changes.until(lambda: changes.told[-1:] == [("created", "file://new7/a/b/c/y.md")])


async def test_a_removed_tree_is_told_file_by_file_and_can_come_back(put: Any, opened: Any, root: Path) -> None:
    paths = [f"d{number}/e/x.md" for number in range(20)]
    for path in paths:
        put(f"t/{path}")
    source = await opened()
    async with watching(source) as changes:
        for kind in ("deleted", "created", "deleted", "created"):
            if kind == "deleted":
                shutil.rmtree(root / "t")
            else:
                for path in paths:
                    put(f"t/{path}", "")
            await changes.until(
                lambda: {uri for k, uri in changes.told if k == kind} == {f"file://t/{p}" for p in paths}
            )
            changes.all.clear()


async def test_every_file_of_a_burst_is_told(put: Any, opened: Any, root: Path) -> None:
    source = await opened()
    (root / "burst").mkdir()
    async with watching(source) as changes:
        for number in range(2000):
            os.close(os.open(root / "burst" / f"한 {number}.md", os.O_CREAT | os.O_WRONLY))
        await changes.until(lambda: len(state(changes)) == 2000)
        assert {kind for kind, _ in changes.told} == {"created"}
        assert len(changes.all) == 2000
        shutil.rmtree(root / "burst")
        await changes.until(lambda: not state(changes))


def queue_length() -> int:
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="ascii"))


@pytest.mark.slow
async def test_an_overflow_of_the_kernels_queue_loses_nothing(put: Any, opened: Any, root: Path) -> None:
    """The loop is blocked while more events come than the kernel keeps; watchfiles loses the rest silently."""
    limit = queue_length()
    if limit > 100_000:
        pytest.skip(f"the queue of this machine is too long to overflow: {limit}")
    for number in range(50):
        put(f"old/{number}.md", "")
    source = await opened()
    async with watching(source) as changes:
        here = os.open(root, os.O_RDONLY)
        count = limit // 2 + 1000  # created and closed: two events each
        for number in range(count):
            os.close(os.open(f"{number}.md", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        for _ in range(3):
            for number in range(count // 3):
                os.utime(f"{number}.md", (number, number), dir_fd=here)
        for number in range(50):
            os.unlink(f"old/{number}.md", dir_fd=here)
        os.mkdir("late", dir_fd=here)
        os.close(os.open("late/x.md", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.close(here)
        with anyio.fail_after(60):
            deleted = {("deleted", f"file://old/{number}.md") for number in range(50)}
            while not (len(state(changes)) == count + 1 and deleted <= set(changes.told)):
                changes._news.clear()
                await changes._news.wait()
        put("late/y.md", "")
        await changes.until(lambda: changes.told[-1:] == [("created", "file://late/y.md")])


async def test_what_is_hidden_or_of_another_kind_is_not_told(put: Any, opened: Any, root: Path) -> None:
    (root / "state").mkdir()
    source = await opened(extensions=["md"], exclude_dirs=[root / "state"])
    async with watching(source) as changes:
        for path in (".env", ".git/x.md", "a.exe", "state/s.md", ".octavo/x.md", "id_rsa.md", "x\u202e.md"):
            put(path)
        os.mkfifo(root / "pipe.md")
        (root / "out.md").symlink_to("/etc/passwd")
        (root / "directory").symlink_to(".")
        put("last.md")
        await changes.until(lambda: bool(changes.all))
        assert {uri for _, uri in changes.told} == {"file://last.md"}


async def test_a_scope_is_told_only_what_is_in_it(put: Any, opened: Any) -> None:
    put("a/x.md"), put("ab/x.md")
    source = await opened()
    async with watching(source, "file://a") as changes, watching(source, "file://a/x.md") as one:
        put("ab/x.md", "beside"), put("a/x.md", "in it"), put("a/y.md", "new")
        await changes.until(lambda: {uri for _, uri in changes.told} == {"file://a/x.md", "file://a/y.md"})
        await one.until(lambda: bool(one.all))
        assert {uri for _, uri in one.told} == {"file://a/x.md"}


async def test_a_link_is_told_when_its_target_changes_comes_or_goes(put: Any, opened: Any, root: Path) -> None:
    put("d/a.md", "one")
    (root / "link.md").symlink_to("d/a.md")
    source = await opened()
    async with watching(source) as changes:
        put("d/a.md", "longer")
        await changes.of(("updated", "file://d/a.md"), ("updated", "file://link.md"))
        (root / "d" / "a.md").unlink()
        await changes.of(("deleted", "file://d/a.md"), ("deleted", "file://link.md"))
        put("d/a.md", "back")
        await changes.of(("created", "file://d/a.md"), ("created", "file://link.md"))
        (root / "link.md").unlink()
        await changes.of(("deleted", "file://link.md"))


async def test_with_several_roots_a_shadow_changes_addresses(put: Any, opened: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    put("x.md", "of two", two)
    source = await opened(one, two)
    async with watching(source) as changes:
        put("x.md", "one", one)
        await changes.of(("updated", "file://x.md"), ("created", "file://x.md?root=2"))
        (one / "x.md").unlink()
        await changes.of(("updated", "file://x.md"), ("deleted", "file://x.md?root=2"))
        assert (await source.stat(Ref.parse("file://x.md"))).size == 6


async def test_the_stamp_of_a_listing_holds_while_nothing_happens_and_not_a_moment_longer(
    put: Any, opened: Any, root: Path
) -> None:
    """What somebody has just written is in the next listing: the stamp is gone before the event is read."""
    put("a.md")
    source = await opened()
    async with watching(source) as changes:
        first = source.stamp(Ref("file"), "list")
        assert first is not None and first == source.stamp(Ref("file"), "list")
        put("b.md")
        assert source.stamp(Ref("file"), "list") is None
        await changes.until(lambda: bool(changes.all))
        with anyio.fail_after(PATIENCE):
            while source.stamp(Ref("file"), "list") is None:
                await anyio.lowlevel.checkpoint()
        assert source.stamp(Ref("file"), "list") != first


async def test_a_watch_ends_when_its_source_closes(root: Path, put: Any) -> None:
    put("a.md")
    source = FileSource([FileRoot(root)], secret=b"")
    async with source:
        stream = source.watch(Ref("file"))
        waiting = asyncio.ensure_future(anext(stream))
        await begun(source)
    with anyio.fail_after(PATIENCE), pytest.raises(StopAsyncIteration):
        await waiting


async def test_one_who_does_not_listen_gets_the_net_changes_and_nothing_is_lost(
    put: Any, opened: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The buffer is bounded: above it a file's changes become one."""
    monkeypatch.setattr(watch_module, "BUFFER", 10)
    put("goes.md"), put("changes.md", "old")
    source = await opened()
    lazy = source.watch(Ref("file"))
    put("first.md")
    first = asyncio.ensure_future(anext(lazy))
    await begun(source)
    async with watching(source) as changes:
        put("begin.md", "")
        with anyio.fail_after(PATIENCE):
            await first
        (root / "goes.md").unlink()
        for turn in range(40):
            put("changes.md", "x" * turn), put("short-lived.md", ""), put(f"new{turn % 4}.md", "")
            await changes.until(lambda: any(str(c.ref) == "file://short-lived.md" and c.new for c in changes.all))
            (root / "short-lived.md").unlink()
            await changes.until(lambda: changes.told[-1:] == [("deleted", "file://short-lived.md")])
            changes.all.clear()
        put("end.md", "")
        await changes.until(lambda: changes.told[-1:] == [("created", "file://end.md")])
        seen = [first.result()]
        with anyio.fail_after(PATIENCE):
            while str(seen[-1].ref) != "file://end.md":
                seen.append(await anext(lazy))
        assert len(seen) <= 60
        replayed = Changes()
        replayed.all = seen
        assert state(replayed) | {"file://begin.md": 0} == {
            "file://begin.md": 0, "file://changes.md": 39, "file://end.md": 0,
            **{f"file://new{n}.md": 0 for n in range(4)},
        }  # fmt: skip
        assert ("deleted", "file://goes.md") in replayed.told
    await lazy.aclose()


class Exhausted(Inotify):
    """A kernel that has no watch left after the first directory."""

    def __init__(self) -> None:
        super().__init__()
        self._followed = 0

    def follow(self, fd: int) -> int | None:
        self._followed += 1
        if self._followed > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().follow(fd)


async def test_a_stamp_that_has_caught_up_knows_what_was_changed_before(put: Any, opened: Any, root: Path) -> None:
    """Both ends of what was renamed, and without waiting for the end of a burst."""
    put("a.md")
    source = await opened()
    assert await source.caught_up() is None, "nobody watches"
    async with watching(source):
        first = await source.caught_up()
        assert first is not None and first == source.stamp(Ref("file"), "list")
        for number in range(100):
            put(f"{number}.md")
            stamp = await source.caught_up()
            assert Ref.parse(f"file://{number}.md") in (source.changed_since(first) or ())
            assert source.changed_since(stamp) == []
        (root / "a.md").rename(root / "b.md")
        before = await source.caught_up()
        changed = source.changed_since(stamp)
        assert before != stamp and changed is not None
        assert {Ref.parse("file://a.md"), Ref.parse("file://b.md")} <= {*changed}


@pytest.mark.parametrize("kind", ["exhausted", "none", "watchfiles"])
async def test_where_hints_are_missing_everything_is_looked_at_from_time_to_time(
    root: Path, put: Any, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The limit of watches is reached, or the platform is another: slower, said once, and nothing is lost."""
    if kind == "watchfiles":
        pytest.importorskip("watchfiles")
    make: dict[str, Callable[[], FileHints]] = {
        "exhausted": Exhausted, "none": NoHints, "watchfiles": lambda: Watchfiles([root]),
    }  # fmt: skip
    monkeypatch.setattr("octavo.sources.file.source.hints", lambda paths: make[kind])
    monkeypatch.setattr(watch_module, "POLL_SECONDS", 0.05)
    put("d/a.md")
    async with FileSource([FileRoot(root)], secret=b"") as source, watching(source) as changes:
        assert source.stamp(Ref("file"), "list") is None and await source.caught_up() is None
        put("d/b.md", "")
        await changes.until(lambda: ("created", "file://d/b.md") in changes.told)
        (root / "d" / "a.md").unlink()
        await changes.until(lambda: ("deleted", "file://d/a.md") in changes.told)
    assert sum("followed" in record.message for record in caplog.records) == 1


async def test_a_disk_that_fails_while_it_is_looked_at_is_looked_at_again(
    put: Any, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An I/O error in the middle of a batch costs time, not changes."""
    from octavo.sources.file.roots import Forest

    monkeypatch.setattr(watch_module, "_RETRY_SECONDS", 0.01)
    source = await opened()
    async with watching(source) as changes:
        failures = iter([True, True])
        original = Forest.facts

        def fail_twice(forest: Forest, place: Any) -> Any:
            if next(failures, False):
                raise OSError(errno.EIO, "Input/output error")
            return original(forest, place)

        monkeypatch.setattr(Forest, "facts", fail_twice)
        put("a.md"), put("b/c.md")
        await changes.until(lambda: set(state(changes)) == {"file://a.md", "file://b/c.md"})


def mutate(root: Path, chance: random.Random) -> None:
    """One random thing that people do to a tree, in a place where many collide."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    folder = chance.choice(folders)
    name = chance.choice(["a.md", "b.md", "가.md", "c.txt", "d", "e", "나"])
    what = chance.choice(
        ["write", "write", "replace", "folder", "move", "move", "delete", "delete tree", "swap", "link"]
    )
    try:
        if what == "write":
            (folder / f"{name}.md").write_text("x" * chance.randrange(50), encoding="utf-8")
        elif what == "replace" and files:
            staged = root.parent / "staged"
            staged.write_text("y" * chance.randrange(50), encoding="utf-8")
            staged.replace(chance.choice(files))
        elif what == "folder":
            (folder / name).mkdir()
        elif what == "move":
            chance.choice([*folders[1:], *files]).rename(folder / name)
        elif what == "delete" and files:
            chance.choice(files).unlink()
        elif what == "delete tree" and len(folders) > 12:
            shutil.rmtree(chance.choice(folders[1:]))
        elif what == "swap" and len(folders) > 3:
            one, two = chance.sample(folders[1:], 2)
            between = root.parent / "between"
            one.rename(between)
            try:
                two.rename(one)
            finally:
                between.rename(two if not two.exists() else root / f"swapped{chance.randrange(10**9)}")
        elif what == "link":
            link = folder / chance.choice([f"link-{name}.md", f"link-{name}"])
            goal = chance.choice([*files, *folders, *(path for path in root.rglob("*") if path.is_symlink())])
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.join(os.path.relpath(goal, folder), chance.choice(["", "", "a.md", "b.md.md"])))
    except OSError:
        pass  # a name that is taken, a directory into itself: no change is a case too


@pytest.mark.parametrize("seed", range(3))
async def test_the_changes_told_add_up_to_what_is_there(put: Any, opened: Any, root: Path, seed: int) -> None:
    """A model check: random mutations, in bursts; replaying what was told gives the listing, versions included."""
    chance = random.Random(seed)
    for path in ("a.md", "d/b.md", "d/e/가.md", "나/c.txt"):
        put(path)
    source = await opened()

    async def listing() -> dict[Ref, Entry]:
        found: dict[Ref, Entry] = {}
        page = await source.list(Ref("file"), cursor=None, limit=10_000)
        found.update((entry.ref, entry) for entry in page.items)
        return found

    async with watching(source) as changes:
        model = await listing()
        for burst in range(12):
            for _ in range(chance.randrange(1, 40)):
                mutate(root, chance)
                if chance.random() < 0.2:
                    await anyio.lowlevel.checkpoint()
            put(f"end{burst}.md", "")
            await changes.until(lambda: ("created", f"file://end{burst}.md") in changes.told)
            await settled(source)
            for change in changes.all:
                assert model.get(change.source or change.ref) == change.old, "what was told before is what it was"
                if change.source is not None:
                    assert change.ref not in model
                    del model[change.source]
                if change.new is None:
                    del model[change.ref]
                else:
                    model[change.ref] = change.new
            changes.all.clear()
            assert model == await listing()


async def test_a_directory_that_was_seen_elsewhere_for_a_moment_is_followed_again(
    put: Any, opened: Any, root: Path
) -> None:
    """Moved away and back, and looked at between: the kernel gives both places one handle."""
    for path in ("a/d/e/x.md", "b/y.md"):
        put(path)
    forest = (await opened())._forest
    kernel = Inotify()
    snapshot = FileSnapshot(forest, kernel, SystemClock.wall, lambda: False)
    for _ in snapshot.fill():
        pass

    def told(*folders: str) -> list[tuple[str, str]]:
        """Of the hints that the kernel has, or of one that says to look for `d` in these folders."""
        batch = Batch()
        kernel.take(batch)
        for folder in folders:
            fd = os.open(root / folder, os.O_RDONLY)
            handle = kernel.follow(fd)
            os.close(fd)
            batch.names[handle or 0] = {"d"}
        return [(one.change.kind, str(one.change.ref)) for one in snapshot.reconcile(batch)]

    try:
        os.rename(root / "a" / "d", root / "b" / "d")
        kernel.take(Batch())  # these hints come later
        assert told("b") == [("created", "file://b/d/e/x.md")]
        os.rename(root / "b" / "d", root / "a" / "d")
        assert told("a") == [("deleted", "file://b/d/e/x.md")]
        put("a/d/e/x.md", "changed")
        assert told() == [("updated", "file://a/d/e/x.md")]
    finally:
        kernel.close()


async def settled(source: FileSource) -> None:
    """Until everything that has happened is told: then a listing has a stamp again."""
    with anyio.fail_after(PATIENCE):
        while source.stamp(Ref("file"), "list") is None:
            await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
