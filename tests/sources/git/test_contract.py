"""A branch keeps the contract of every source, by itself and under catalogs, and when its repository is broken."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from tests.sources.catalog.trees import Agents, Catalog, Documents, Organisation, Skills, Sops
from tests.sources.git.clones import Clone

from octavo.core.ports.source import Source, abilities
from octavo.sources.catalog import CatalogSource
from octavo.sources.git import GitSource
from octavo.testing import Fault, FaultSuite, SourceSuite
from octavo.testing.base import Suite

MODELS: dict[type, Path] = {}  # a repository for each class, made once by git: its tests have copies


class OnABranch(Suite):
    secrets = ("top secret",)
    folder_of: ClassVar[str] = ""

    @pytest.fixture
    async def source(self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Source]:
        model = MODELS.get(type(self))
        if model is None:
            model = MODELS[type(self)] = tmp_path_factory.mktemp("model") / "clone"
            Clone(model).commit({self.path_of(path): text for path, text in self.TREE.items()})
        self.clone = Clone(tmp_path / "clone", copy_of=model)
        async with GitSource(self.clone.path, secret=b"top secret") as store:
            self.store = store
            yield self.made(store)

    async def fresh(self) -> Source:
        if self.made(self.store) is not self.store:
            pytest.skip("what stands over a store is opened with it")
        return GitSource(self.clone.path, secret=b"top secret")

    def made(self, store: GitSource) -> Source:
        return store

    def path_of(self, path: str) -> str:
        return f"{self.folder_of}/{path}" if self.folder_of else path

    async def put(self, source: Source, path: str, text: str) -> None:
        self.clone.commit({self.path_of(path): text})

    async def remove(self, source: Source, path: str) -> None:
        self.clone.commit({self.path_of(path): None})


class InACatalog(Catalog, OnABranch):
    def made(self, store: GitSource) -> Source:
        return CatalogSource(self.declaration, store)

    def path_of(self, path: str) -> str:
        return f"{self.declaration.path}/{path}"


class TestABranch(OnABranch, SourceSuite):
    pass


class TestSops(Sops, InACatalog, SourceSuite):
    pass


class TestDocuments(Documents, InACatalog, SourceSuite):
    pass


class TestSkills(Skills, InACatalog, SourceSuite):
    pass


class TestAgents(Agents, InACatalog, SourceSuite):
    pass


class TestOrganisation(Organisation, InACatalog, SourceSuite):
    pass


class TestABranchOfABrokenRepository(OnABranch, FaultSuite):
    @contextmanager
    def broken(self, source: Source, fault: Fault) -> Iterator[None]:
        """The references cannot be read, or say nonsense."""

        def read_wrongly(*_: object, **__: object) -> object:
            if fault == "garbage":
                raise ValueError("garbage") from None
            raise TimeoutError if fault == "hangs" else OSError(5, "broken")

        with pytest.MonkeyPatch.context() as patch:
            if fault == "garbage":
                patch.setattr("octavo.sources._shared.git.objects.Objects.read", lambda *_: b"garbage")
            else:
                patch.setattr("octavo.sources._shared.git.refs.Refs._identity", read_wrongly)
            yield


def test_a_branch_can_be_watched_and_kept() -> None:
    assert abilities(GitSource(Path("nowhere"), secret=b"")) == {"watch", "stamp"}
