"""Changes of the store are told as changes of the catalog, with what the metadata were before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import anyio
import pytest

from octavo.core.ref import Ref
from octavo.core.values import Change
from octavo.sources.catalog import DECLARATIONS, CatalogSource
from octavo.sources.memory import MemorySource

pytestmark = pytest.mark.anyio
SOP = "---\nid: {id}\ntitle: T\nversion: {version}\nstatus: active\n---\n{body}\n"


@asynccontextmanager
async def heard(source: CatalogSource, scope: str) -> AsyncIterator[asyncio.Queue[Change]]:
    """What a watch tells from now on."""
    queue: asyncio.Queue[Change] = asyncio.Queue()

    async def listen() -> None:
        async for change in source.watch(Ref.parse(scope)):
            queue.put_nowait(change)

    task = asyncio.create_task(listen())
    await asyncio.sleep(0)
    await source.armed()
    try:
        yield queue
    finally:
        task.cancel()
        await asyncio.wait([task])


async def following(queue: asyncio.Queue[Change]) -> Change:
    with anyio.fail_after(30):
        return await queue.get()


@pytest.mark.seed("O10")
async def test_an_update_tells_the_difference_of_the_metadata(organisation: Any) -> None:
    async with heard(organisation.catalogs["sop"], "sop://brand") as queue:
        old = (organisation.root / "sops/brand/campaign-brief.md").read_text(encoding="utf-8")
        organisation.write("sops/brand/campaign-brief.md", old.replace("1.2.0", "1.3.0"))
        change = await following(queue)
        assert (change.kind, str(change.ref)) == ("updated", "sop://brand/campaign-brief")
        assert change.changes == {"version": ["1.2.0", "1.3.0"]}
        organisation.write("sops/hr/onboarding.md", "outside the scope")
        organisation.write("sops/brand/new.md", SOP.format(id="n", version="0.1.0", body=""))
        created = await following(queue)
        assert (created.kind, str(created.ref), created.changes["version"]) == (
            "created", "sop://brand/new", [None, "0.1.0"],
        )  # fmt: skip
        (organisation.root / "sops/brand/new.md").unlink()
        assert (await following(queue)).kind == "deleted"


@pytest.mark.seed("O10")
async def test_an_update_of_the_body_alone_tells_its_etag(organisation: Any) -> None:
    """Size and metadata are the same: the etag is all that tells it."""
    organisation.write("sops/x/a.md", SOP.format(id="one", version="1.0.0", body="aaaa"))
    sop = organisation.catalogs["sop"]
    async with heard(sop, "sop://x") as queue:
        before: str | None = None
        for body in ("bbbb", "cccc"):
            organisation.write("sops/x/a.md", SOP.format(id="one", version="1.0.0", body=body))
            change = await following(queue)
            read = await sop.read(Ref.parse("sop://x/a"), max_bytes=1000)
            assert change.kind == "updated" and change.changes == {"etag": [before, read.etag]}
            before = read.etag


async def test_two_files_that_swap_their_ids_are_two_updates(organisation: Any) -> None:
    organisation.write("sops/x/a.md", SOP.format(id="one", version="1.0.0", body="a"))
    organisation.write("sops/x/b.md", SOP.format(id="two", version="1.0.0", body="b"))
    async with heard(organisation.catalogs["sop"], "sop://x") as queue:
        organisation.write("sops/x/a.md", SOP.format(id="two", version="1.0.0", body="a"))
        organisation.write("sops/x/b.md", SOP.format(id="one", version="1.0.0", body="b"))
        told = {str(change.ref): change.changes["id"] for change in [await following(queue), await following(queue)]}
    assert told == {"sop://x/a": ["one", "two"], "sop://x/b": ["two", "one"]}
    assert await organisation.problems("sop") == []
    assert await organisation.uris("sop://x") == ["sop://x/a", "sop://x/b"]


async def test_a_listing_meanwhile_does_not_swallow_the_difference(organisation: Any) -> None:
    async with heard(organisation.catalogs["doc"], "doc://") as queue:
        old = (organisation.root / "docs/policies/expense.md").read_text(encoding="utf-8")
        organisation.write("docs/policies/expense.md", old.replace("1.2.0", "2.0.0"))
        await organisation.entries("doc://")
        assert (await following(queue)).changes["version"] == ["1.2.0", "2.0.0"]


async def test_old_versions_and_other_files_are_no_changes(organisation: Any) -> None:
    async with heard(organisation.catalogs["doc"], "doc://") as queue:
        organisation.write("docs/policies/expense@1.0.0.md", "older")
        organisation.write("docs/policies/picture.png", "x")
        organisation.write("docs/policies/last.md", "x")
        assert str((await following(queue)).ref) == "doc://policies/last"


async def test_whoever_watches_hears_when_the_store_stops() -> None:
    from octavo.core.errors import OctavoError

    class Ending(MemorySource):
        async def watch(self, scope: Ref) -> AsyncIterator[Change]:
            return
            yield

    source = CatalogSource(DECLARATIONS["sop"], Ending("store", {}))
    with anyio.fail_after(30), pytest.raises(OctavoError):
        async for _ in source.watch(Ref("sop")):
            pass


async def test_a_catalog_that_follows_is_the_same_as_one_that_looks(organisation: Any) -> None:
    """Small changes are looked at one by one, and nothing is missed: compared with a catalog that knows nothing."""
    random, following_one = Random(3), organisation.catalogs["sop"]
    async with heard(following_one, "sop://"):
        for turn in range(60):
            path = f"sops/f{random.randrange(3)}/{random.randrange(4)}.md"
            place = organisation.root / path
            if random.random() < 0.3 and place.exists():
                place.unlink()
            elif random.random() < 0.1:
                organisation.write(path.replace(".md", "@1.0.0.md"), "old")
            else:
                organisation.write(path, SOP.format(id=random.randrange(3), version=f"1.0.{turn}", body=turn))
            fresh = CatalogSource(DECLARATIONS["sop"], organisation.store)
            assert await following_one.look() == await fresh.look()


async def test_a_file_that_is_moved_is_told_with_both_its_ends(organisation: Any) -> None:
    async with heard(organisation.catalogs["sop"], "sop://") as queue:
        (organisation.root / "sops/brand/press.md").rename(organisation.root / "sops/ops/press.md")
        told = await following(queue)
        assert (told.kind, str(told.source), str(told.ref)) == ("renamed", "sop://brand/press", "sop://ops/press")


async def test_who_watches_one_end_of_a_move_hears_of_that_end(organisation: Any) -> None:
    async with heard(organisation.catalogs["sop"], "sop://brand") as queue:
        (organisation.root / "sops/brand/press.md").rename(organisation.root / "sops/ops/press.md")
        told = await following(queue)
        assert (told.kind, str(told.ref)) == ("deleted", "sop://brand/press")
