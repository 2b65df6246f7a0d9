"""Catalogs keep the contract of every source, over files and over memory, and when the store is broken."""

import errno
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.sources.catalog.trees import Agents, Catalog, Documents, Organisation, Skills, Sops

from octavo.core.errors import SourceUnavailable
from octavo.core.ports.source import Source, abilities
from octavo.core.ref import Ref
from octavo.sources.catalog import CatalogSource, chosen, own
from octavo.sources.file import FileRoot, FileSource
from octavo.sources.memory import MemorySource
from octavo.testing import Fault, FaultSuite, SourceSuite
from octavo.testing.faults import broken_calls

NOTE = own("note", "notes", "{+path}.md", {"properties": {"title": {"type": "string"}, "version": {"type": "string"}}})


class InMemory(Catalog):
    declaration = NOTE

    @pytest.fixture
    async def source(self) -> CatalogSource:
        self.store = MemorySource("store", {f"{self.declaration.path}/{p}": text for p, text in self.TREE.items()})
        return CatalogSource(self.declaration, self.store)

    async def put(self, source: Source, path: str, text: str) -> None:
        await self.store.write(self.at(path), text, if_match=None)

    async def remove(self, source: Source, path: str) -> None:
        await self.store.delete(self.at(path), if_match=None)

    def at(self, path: str) -> Ref:
        return Ref.of("store", [*self.declaration.path.split("/"), *path.split("/")])


class OnDisk(InMemory):
    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[CatalogSource]:
        self.root = tmp_path / "root"
        for path, text in self.TREE.items():
            self.write(path, text)
        async with FileSource([FileRoot(self.root)], secret=b"secret") as store:
            self.files = store
            yield CatalogSource(self.declaration, store)

    def place(self, path: str) -> Path:
        return self.root / self.declaration.path / path

    def write(self, path: str, text: str) -> None:
        place = self.place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    async def put(self, source: Source, path: str, text: str) -> None:
        self.write(path, text)

    async def remove(self, source: Source, path: str) -> None:
        self.place(path).unlink()


class TestOverMemory(InMemory, SourceSuite):
    pass


class TestOverFiles(OnDisk, SourceSuite):
    pass


class TestSops(Sops, OnDisk, SourceSuite):
    pass


class TestDocuments(Documents, InMemory, SourceSuite):
    pass


class TestDocumentsOfARepository(Documents, OnDisk, SourceSuite):
    """Some of them beside the folder in which most stand, and files that are left out."""

    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[CatalogSource]:
        self.root = tmp_path / "root"
        for path, text in {**self.TREE, "brand/node_modules/x/README.md": "of others\n"}.items():
            self.write(path, text)
        async with FileSource([FileRoot(self.root)], secret=b"secret") as store:
            found = await chosen(self.declaration, store, path=None, alone=True, files=False)
            assert found.home == "docs"
            yield CatalogSource(found, store)

    def place(self, path: str) -> Path:
        return self.root / path if path.startswith("brand/") else super().place(path)


class TestSkills(Skills, OnDisk, SourceSuite):
    pass


class TestAgents(Agents, InMemory, SourceSuite):
    pass


class TestOrganisation(Organisation, OnDisk, SourceSuite):
    pass


class TestOverBrokenDisks(OnDisk, FaultSuite):
    @contextmanager
    def broken(self, source: Source, fault: Fault) -> Iterator[None]:
        def open_wrongly(dir_fd: int, path: bytes, how: int) -> int:
            if fault == "garbage":
                return os.open("/dev/null", os.O_RDONLY)
            raise TimeoutError if fault == "hangs" else OSError(errno.EIO, "broken")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("octavo.sources._shared.fs.syscalls.openat2", open_wrongly)
            yield


class TestOverAStoreThatBreaksTheContract(InMemory, FaultSuite):
    """It hangs, raises what it should not, or gives what is no entry at all."""

    @contextmanager
    def broken(self, source: Source, fault: Fault) -> Iterator[None]:
        with broken_calls(self.store, ["list", "stat", "read"], fault):
            yield


class TestOverAStoreThatIsDown(InMemory, FaultSuite):
    @contextmanager
    def broken(self, source: Source, fault: Fault) -> Iterator[None]:
        error = SourceUnavailable("Source unavailable: store", source="store")
        with broken_calls(self.store, ["list", "stat", "read"], fault, error=error):
            yield


def test_a_catalog_can_be_watched_completed_and_kept() -> None:
    source = CatalogSource(NOTE, MemorySource("store", {}))
    assert abilities(source) == {"watch", "levels", "filter", "complete", "suggest", "stamp", "template"}
