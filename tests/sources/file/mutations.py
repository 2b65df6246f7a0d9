"""Random changes of a tree, and a consumer that only hears of them: python -m tests.sources.file.mutations

Files are created, edited, replaced, renamed and deleted, directories are moved, and git checks out one branch and
another of a small repository in the tree. Now and then the kernel's queue overflows, because nobody reads it. At every
quiet point the consumer, which knows the first listing and what it was told, must know exactly what is on disk: every
file that differs from the last quiet point was told, what each change says of before is what the one before said of
after, and nothing is told of what did not happen.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from octavo.core.ref import Ref
from octavo.core.values import Change, Entry
from octavo.sources.file import FileRoot, FileSource

PATIENCE = 60.0
QUIET_EVERY = 400  # mutations between two quiet points, on average
FILES = 150  # that a tree has about
ENDING = "quiet.txt"  # the last thing that happens before a quiet point

State = dict[str, str]  # from address to version


class Wrong(AssertionError):
    pass


@dataclass
class Figures:
    mutations: Counter[str] = field(default_factory=Counter[str])
    told: Counter[str] = field(default_factory=Counter[str])
    quiet_points: int = 0
    overflows: int = 0
    touched: int = 0  # files that differed between two quiet points


class Disk:
    """Changes the tree, and keeps the log of which paths were touched."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self._chance = root, chance
        self.log: Counter[str] = Counter()
        self._git("init", "-q", "-b", "one")
        for branch, text in (("one", "first"), ("two", "the second")):
            if branch != "one":
                self._git("checkout", "-q", "-b", branch)
            for number in range(8):
                place = self.root / "repo" / f"d{number % 3}" / f"{branch if number < 3 else 'both'}{number}.md"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(f"{text} {number}", encoding="utf-8")
            self._git("add", "-A")
            self._git("commit", "-q", "-m", branch)
        self._branch = "two"

    def mutate(self) -> None:
        while not self._mutated():  # a name that is taken by a directory, a directory into itself: nothing happens
            pass

    def _mutated(self) -> bool:
        files, folders = self._seen()
        what = self._chance.choices(
            ["create", "edit", "replace", "rename", "move directory", "delete", "checkout"],
            [20 if len(files) < FILES else 4, 30, 20, 15, 6, 8 if len(files) > FILES // 2 else 2, 0.5],
        )[0]
        try:
            self._do(what, files, folders)
        except OSError:
            return False
        self.log[what] += 1
        return True

    def end(self, number: int) -> None:
        (self.root / ENDING).write_text(f"after {number}", encoding="utf-8")

    def _do(self, what: str, files: list[Path], folders: list[Path]) -> None:
        chance = self._chance
        folder, body = chance.choice(folders), "x" * chance.randrange(2000)
        name = chance.choice(["a", "b", "c", "가", "d e"]) + str(chance.randrange(40)) + chance.choice([".md", ".txt"])
        if what == "create":
            if chance.random() < 0.2 and len(folders) < 30:
                folder = folder / chance.choice(["in", "out", "나"])
                folder.mkdir(exist_ok=True)
            (folder / name).write_text(body, encoding="utf-8")
        elif what == "checkout":
            self._branch = "one" if self._branch == "two" else "two"
            self._git("checkout", "-q", "-f", self._branch)
        elif what == "move directory" and len(folders) > 1:
            chance.choice(folders[1:]).rename(folder / f"moved{chance.randrange(20)}")
        elif files:
            file = chance.choice(files)
            if what == "edit":
                with file.open("a", encoding="utf-8") as open_file:
                    open_file.write(body)
                if file.stat().st_size > 20_000:
                    file.write_text(body, encoding="utf-8")
            elif what == "replace":
                staged = file.with_name(f".{file.name}.{chance.randrange(10**6)}.tmp")
                staged.write_text(body, encoding="utf-8")
                staged.replace(file)
            elif what == "rename":
                file.rename(folder / name)
            elif what == "delete":
                file.unlink()

    def _seen(self) -> tuple[list[Path], list[Path]]:
        """Without the repository: its files belong to git."""
        files: list[Path] = []
        folders = [self.root]
        for here, below, names in os.walk(self.root):
            below[:] = [name for name in below if name != "repo"]
            folders += [Path(here, name) for name in below]
            files += [Path(here, name) for name in names if name != ENDING]
        return files, folders

    def _git(self, *arguments: str) -> None:
        repo = self.root / "repo"
        repo.mkdir(exist_ok=True)
        who = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "gc.auto=0")
        subprocess.run(["git", *who, *arguments], cwd=repo, check=True, capture_output=True)


class Consumer:
    """Knows the first listing, and then only what it is told."""

    def __init__(self, source: FileSource, figures: Figures) -> None:
        self._source, self._figures = source, figures
        self._known: State = {}
        self._touched: set[str] = set()
        self._news = asyncio.Event()
        self.failed: Wrong | None = None

    async def run(self) -> None:
        async for change in self._source.watch(Ref("file")):
            try:
                self._hear(change)
            except Wrong as wrong:
                self.failed = self.failed or wrong
            self._news.set()

    def begin(self, state: State) -> None:
        self._known = dict(state)

    def _hear(self, change: Change) -> None:
        self._figures.told[change.kind] += 1
        uri, source = str(change.ref), None if change.source is None else str(change.source)
        was = self._known.pop(source or uri, None)
        if was != _version(change.old):
            raise Wrong(f"{change.kind} {source or ''} {uri}: it was {was}, and {_version(change.old)} is told")
        if source is not None and uri in self._known:
            raise Wrong(f"{source} was renamed to {uri}, which was there already")
        if source is None and _version(change.new) == was:  # a file in a moved directory stays as it is
            raise Wrong(f"{change.kind} {uri}: nothing has changed")
        self._touched |= {uri, source or uri}
        if change.new is not None:
            self._known[uri] = change.new.version

    async def quiet(self) -> None:
        """Until the last thing that happened was told, and nothing is left to tell."""
        ref = Ref.parse(f"file://{ENDING}")
        end = time.monotonic() + PATIENCE
        while True:
            version = (await self._source.stat(ref)).version
            settled = self._source.stamp(Ref("file"), "list") is not None
            if settled and self._known.get(str(ref)) == version:
                return
            if time.monotonic() > end:
                raise Wrong("The end of the changes was not told")
            await self.listen(0.05)

    async def listen(self, seconds: float) -> None:
        """Until something is told, but not longer."""
        self._news.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)

    def check(self, before: State, state: State) -> None:
        if self.failed is not None:
            raise self.failed
        if self._known != state:
            both = self._known.keys() | state.keys()
            wrong = sorted(uri for uri in both if self._known.get(uri) != state.get(uri))
            raise Wrong(f"{len(wrong)} of {len(state)} files are not what was told, such as {wrong[:5]}")
        differs = {uri for uri in before.keys() | state.keys() if before.get(uri) != state.get(uri)}
        if not differs <= self._touched:
            raise Wrong(f"never told: {sorted(differs - self._touched)[:5]}")
        self._figures.touched += len(differs)
        self._figures.quiet_points += 1
        self._touched.clear()


async def prove(root: Path, mutations: int, seed: int, overflows: int = 1) -> Figures:
    """Raises Wrong where the consumer knows anything but what is there."""
    chance, figures = random.Random(seed), Figures()
    disk = Disk(root, chance)
    for _ in range(FILES // 2):
        disk.mutate()
    disk.log.clear()
    disk.end(-1)
    async with FileSource([FileRoot(root)], secret=b"secret", extensions=["*"]) as source:
        consumer = Consumer(source, figures)
        await source.armed()
        listening = asyncio.ensure_future(consumer.run())
        await asyncio.sleep(0)
        before = await on_disk(source)
        consumer.begin(before)
        forced = {(k + 1) * mutations // (overflows + 1) for k in range(overflows)}
        try:
            for number in range(mutations):
                disk.mutate()
                if number in forced:
                    figures.overflows += overflow(source, root, chance)
                if chance.random() < 0.3:
                    await consumer.listen(chance.choice([0, 0, 0.001, 0.01]))
                if chance.random() < 1 / QUIET_EVERY or number == mutations - 1:
                    disk.end(number)
                    await consumer.quiet()
                    state = await on_disk(source)
                    consumer.check(before, state)
                    before = state
        finally:
            listening.cancel()
            await asyncio.wait([listening])
    figures.mutations = disk.log
    return figures


def overflow(source: FileSource, root: Path, chance: random.Random) -> int:
    """More events than the kernel keeps, while nobody reads them: the loop does not run in here. The real changes
    are in the middle, so that some of their events are lost."""
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="ascii"))
    some = [path for path in root.rglob("*.md") if ".git" not in path.parts]
    noise = [root / ENDING, root / "noise.txt"]  # in turn: the kernel merges an event with an equal one before it
    for number in range(queue + 200):
        if number % (queue // 20) == 0 and some:
            with suppress(OSError):
                chance.choice(some).write_text(f"lost {number}", encoding="utf-8")
        with noise[number % 2].open("a", encoding="ascii") as file:
            file.write(".")
    for path in noise:
        path.write_text("", encoding="ascii")
    for path in chance.sample(some, min(5, len(some))):
        with suppress(OSError):
            path.rename(path.with_name(f"lost-{path.name}"))
    return 1 if overflowed(source) else 0


def overflowed(source: FileSource) -> bool:
    """Reads what the kernel has, on behalf of the watch, and sees whether it has given up."""
    watcher: Any = source._watcher
    while not watcher._batch.everything and watcher._hints.pending():
        watcher._hinted()
    return bool(watcher._batch.everything)


async def on_disk(source: FileSource) -> State:
    state: State = {}
    cursor: str | None = None
    while True:
        page = await source.list(Ref("file"), cursor=cursor, limit=10_000)
        state |= {str(entry.ref): entry.version for entry in page.items}
        cursor = page.cursor
        if cursor is None:
            return state


def _version(entry: Entry | None) -> str | None:
    return None if entry is None else entry.version


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--overflows", type=int, default=3)
    asked = parser.parse_args()
    if shutil.which("git") is None:
        print("git is needed", file=sys.stderr)
        return 2
    begun = time.perf_counter()
    with TemporaryDirectory() as place:
        root = Path(place, "root")
        root.mkdir()
        try:
            figures = asyncio.run(prove(root, asked.mutations, asked.seed, asked.overflows))
        except Wrong as wrong:
            print(f"WRONG with --seed {asked.seed}: {wrong}")
            return 1
    counts = ", ".join(f"{count} {what}" for what, count in sorted(figures.mutations.items()))
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(figures.told.items()))
    print(f"{sum(figures.mutations.values())} mutations ({counts}) in {time.perf_counter() - begun:.0f} s")
    print(f"told {sum(figures.told.values())} changes ({told}); {figures.overflows} overflows of the kernel's queue")
    print(
        f"{figures.quiet_points} quiet points, {figures.touched} files differed between them: none lost, all in order"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
