"""One store for the life of a server: opened by its first use, kept over reloads, closed at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.config.load import Loaded
from octavo.config.problems import ConfigError
from octavo.core.errors import SourceUnavailable
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A4")]

SOURCES = "version: 1\nsources: {notes: {kind: memory, scheme: note, resources: {a: {text: one}}}}\n"
FILE = Path(".octavo", "store.db")


def loaded(folder: Path, more: str = "", **environ: str) -> Loaded:
    return load_text(SOURCES + more, file=folder / "octavo.yaml", environ=environ)


async def test_the_file_is_made_by_the_first_use_and_not_by_the_start(tmp_path: Path) -> None:
    async with Octavo(loaded(tmp_path)) as octavo:
        assert not (tmp_path / FILE).exists()
        one, other = await asyncio.gather(octavo.home.store(), octavo.home.store())
        assert one is other and (tmp_path / FILE).exists()
        assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


async def test_what_was_stored_is_there_after_a_reload_and_after_a_restart(tmp_path: Path) -> None:
    async with Octavo(loaded(tmp_path)) as octavo:
        store = await octavo.home.store()
        await store.keys.set("a", b"1")
        await octavo.reload(loaded(tmp_path, "limits: {page: 5}\n"))
        assert await octavo.home.store() is store
    async with Octavo(loaded(tmp_path)) as octavo:
        assert await (await octavo.home.store()).keys.get("a") == b"1"


async def test_a_store_that_was_closed_is_not_opened_again(tmp_path: Path) -> None:
    async with Octavo(loaded(tmp_path)) as octavo:
        await octavo.home.store()
    with pytest.raises(SourceUnavailable, match="is ending"):
        await octavo.home.store()


async def test_a_file_that_cannot_be_opened_now_is_tried_again(tmp_path: Path) -> None:
    async with Octavo(loaded(tmp_path)) as octavo:
        (tmp_path / FILE).mkdir()
        with pytest.raises(SourceUnavailable):
            await octavo.home.store()
        (tmp_path / FILE).rmdir()
        await (await octavo.home.store()).keys.set("a", b"1")


@pytest.mark.parametrize("section", ["", "store: {kind: sqlite}\n", "store: {kind: postgres, url: '${DB}'}\n"])
async def test_without_a_state_folder_it_is_memory_whatever_it_is_to_be(tmp_path: Path, section: str) -> None:
    config = loaded(tmp_path, section, DB="postgresql://octavo:secret@db.invalid/octavo")
    async with Octavo(config, state=StateDirectory.in_memory()) as octavo:
        store = await octavo.home.store()
        await store.keys.set("a", b"1")
        assert await store.keys.get("a") == b"1"
    assert not (tmp_path / FILE.parent).exists()


@pytest.mark.parametrize(
    ("section", "key", "said"),
    [
        ("{kind: redis}", "store.kind", "must be one of: sqlite, postgres"),
        ("{}", "store.kind", "is required"),
        ("sqlite", "store", "must be a mapping"),
        ("{kind: postgres}", "store.url", "is required"),
        ("{kind: postgres, url: 'postgres://u:hunter2@db/x'}", "store.url", "only referred to"),
        ("{kind: sqlite, ulr: x}", "store.ulr", "unknown key"),
    ],
)
def test_a_mistake_is_named_as_it_stands_in_the_file(tmp_path: Path, section: str, key: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, f"store: {section}\n")
    (problem,) = caught.value.problems
    assert problem.key == key and said in problem.message and "hunter2" not in str(problem)
