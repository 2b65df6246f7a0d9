"""How much of the store is looked at: after the first look only what has changed, however fast changes follow."""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
from tests.sources.catalog.test_changes import heard

from octavo.core.ref import Ref
from octavo.core.values import Content, Entry, Page
from octavo.sources.catalog import DECLARATIONS, CatalogSource, Handbook
from octavo.sources.file import FileRoot, FileSource

pytestmark = pytest.mark.anyio
SOP = "---\nid: sop-{0}\ntitle: T\nversion: 1.0.{1}\nstatus: active\n---\n"
SKILL = "---\nname: {0}\ndescription: {1}\n---\n"
FILES = 150


class Counting(FileSource):
    """Counts what it is asked for."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.asked: Counter[str] = Counter()

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        self.asked["list"] += 1
        return await super().list(scope, cursor=cursor, limit=limit)

    async def stat(self, ref: Ref) -> Entry:
        self.asked["stat"] += 1
        return await super().stat(ref)

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        self.asked["read"] += 1
        return await super().read(ref, max_bytes=max_bytes)

    async def caught_up(self) -> object | None:
        self.asked["caught up"] += 1
        return await super().caught_up()


class Place:
    """A folder with files, a store that counts, and all catalogs over it."""

    def __init__(self, root: Path, store: Counting) -> None:
        self.root, self.store, handbook = root, store, Handbook()
        self.catalogs = {one.scheme: CatalogSource(one, store, handbook=handbook) for one in DECLARATIONS.values()}

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    async def listed(self, scheme: str = "sop", limit: int = 50) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        cursor: str | None = None
        while True:
            page = await self.catalogs[scheme].list(Ref(scheme), cursor=cursor, limit=limit)
            found |= {entry.ref.path: entry for entry in page.items}
            cursor = page.cursor
            if cursor is None:
                return found


@asynccontextmanager
async def kept(root: Path) -> AsyncIterator[Place]:
    """Somebody watches, and everything was looked at once."""
    store = Counting([FileRoot(root)], secret=b"secret")
    async with store:
        place = Place(root, store)
        async with heard(place.catalogs["doc"], "doc://"):
            for catalog in place.catalogs.values():
                await catalog.look()
            store.asked.clear()
            yield place


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    for number in range(FILES):
        (tmp_path / f"sops/f{number % 3}").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"sops/f{number % 3}/{number}.md").write_text(SOP.format(number, 0), encoding="utf-8")
    (tmp_path / "skills/brand/letters").mkdir(parents=True)
    (tmp_path / "skills/brand/letters/SKILL.md").write_text(SKILL.format("letters", "Answers."), encoding="utf-8")
    async with kept(tmp_path) as made:
        yield made


async def test_a_listing_after_a_change_looks_at_what_has_changed_and_at_nothing_else(place: Place) -> None:
    for turn in range(1, 21):
        place.write(f"sops/f0/{3 * turn}.md", SOP.format(3 * turn, turn))
        assert (await place.listed())[f"f0/{3 * turn}"].metadata["version"] == f"1.0.{turn}"
    asked = place.store.asked
    assert asked["list"] == 0, "neither of the SOPs, nor of the skills, of which nothing has changed"
    assert asked["stat"] <= 80 and asked["read"] <= 80


async def test_while_changes_come_without_end_nothing_is_looked_at_but_what_has_changed(place: Place) -> None:
    """Another thread writes as fast as it can. What was written before a listing began is in the listing."""
    done, wrote = False, 0

    def keep_writing() -> None:
        nonlocal wrote
        while not done:
            place.write(f"sops/f1/{1 + 3 * (wrote % 20)}.md", SOP.format(wrote, wrote))
            wrote += 1

    writer = Thread(target=keep_writing)
    writer.start()
    try:
        for turn in range(10):
            place.write("sops/f2/2.md", SOP.format(2, turn))
            assert (await place.listed())["f2/2"].metadata["version"] == f"1.0.{turn}"
    finally:
        done = True
        writer.join()
    assert place.store.asked["list"] == 0


async def test_a_store_is_asked_once_for_all_catalogs_of_a_page(place: Place) -> None:
    place.write("sops/f0/0.md", SOP.format(0, 1))
    await place.catalogs["sop"].list(Ref("sop"), cursor=None, limit=10)
    assert place.store.asked["caught up"] == 1


async def test_callers_who_come_at_once_share_a_look(place: Place) -> None:
    for number in range(0, 60, 3):
        place.write(f"sops/f0/{number}.md", SOP.format(number, 1))
    found = await asyncio.gather(*(place.listed(limit=1000) for _ in range(10)))
    assert all(one["f0/57"].metadata["version"] == "1.0.1" for one in found)
    assert place.store.asked["stat"] <= 100, "each file about once, not once for each of them"


async def test_of_a_skill_only_its_own_folder_is_listed_again(place: Place) -> None:
    place.write("skills/brand/letters/references/tone.md", "# Tone")
    assert "brand/letters/references/tone.md" in await place.listed("skill")
    place.write("skills/brand/letters/SKILL.md", SKILL.format("letters", "Answers letters."))
    assert (await place.listed("skill"))["brand/letters"].description == "Answers letters."
    assert place.store.asked["list"] == 2


async def test_what_was_renamed_is_listed_where_it_is_and_no_longer_where_it_was(place: Place) -> None:
    os.rename(place.root / "sops/f0", place.root / "sops/g0")
    os.rename(place.root / "sops/f1/1.md", place.root / "sops/g0/1.md")
    paths = await place.listed()
    assert "g0/0" in paths and "g0/1" in paths and len(paths) == FILES
    assert not [path for path in paths if path.startswith("f0/") or path == "f1/1"]
    assert place.store.asked["list"] == 0


@pytest.mark.parametrize("scheme", ["sop", "skill", "agent"])
async def test_what_is_known_by_its_changes_is_what_a_look_at_everything_tells(tmp_path: Path, scheme: str) -> None:
    """Names that others can take, old versions, files in the wrong place, links, folders that move."""
    random, folder = Random(7), tmp_path / "store" / DECLARATIONS[scheme].path
    names = ["a.md", "a.yml", "a.yaml", "b.yml", "b.md", "a@1.0.0.md", "a@1.0.0.yml", "a/SKILL.md", "b/SKILL.md"]
    names += ["a/x.md", "b/deep/y.yml", "note.txt", "a/SKILL@1.0.md"]
    (folder / "f").mkdir(parents=True)
    (tmp_path / "store/outside.md").write_text("outside", encoding="utf-8")
    async with kept(tmp_path / "store") as place, FileSource([FileRoot(place.root)], secret=b"secret") as other:
        for turn in range(150):
            at = folder / random.choice(["", "f", "f", "g"]) / random.choice(names)
            dice = random.random()
            if at.is_dir() or at.is_symlink() or (at.exists() and dice < 0.3):
                shutil.rmtree(at) if at.is_dir() and not at.is_symlink() else at.unlink()
            elif dice < 0.4:
                at.parent.mkdir(parents=True, exist_ok=True)
                at.unlink(missing_ok=True)
                at.symlink_to(random.choice([folder / "f/b.yml", folder / "f/b.md", place.root / "outside.md"]))
            elif dice < 0.5 and (folder / "f").exists() != (folder / "h").exists():
                os.rename(*([folder / "f", folder / "h"] if (folder / "f").exists() else [folder / "h", folder / "f"]))
            else:
                place.write(str(at.relative_to(place.root)), f"---\nid: i{random.randrange(3)}\nname: {turn}\n---\n")
            if random.random() < 0.7:
                fresh = CatalogSource(DECLARATIONS[scheme], other)
                assert await place.catalogs[scheme].look() == await fresh.look(), f"turn {turn}"
        assert scheme == "skill" or place.store.asked["list"] == 0
