"""A branch keeps the contract of every source, by itself and under catalogs, and when its repository is broken."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from tests.sources.git.clones import Clone

from octavo.core.ports import Source, abilities
from octavo.core.ref import Ref
from octavo.sources.catalog import DECLARATIONS, CatalogSource, Declaration
from octavo.sources.git import GitSource
from octavo.testing import Fault, FaultSuite, SourceSuite
from octavo.testing.base import Suite

SOP = "---\nid: sop-{0}\ntitle: 문서 {0}\nversion: 1.{0}.0\nstatus: active\ntags: [가, b]\n---\n# 본문 {0}\n"
YAML = "id: x-{0}\nname: 이름 {0}\n"
NASTY = ("one", "두 번째", "three %2F?", 'it\'s "quoted" & <tagged>', "#hash, [set] and *", "👩‍💻 emoji", "a@b")

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

    def made(self, store: GitSource) -> Source:
        return store

    def path_of(self, path: str) -> str:
        return f"{self.folder_of}/{path}" if self.folder_of else path

    async def put(self, source: Source, path: str, text: str) -> None:
        self.clone.commit({self.path_of(path): text})

    async def remove(self, source: Source, path: str) -> None:
        self.clone.commit({self.path_of(path): None})


class InACatalog(OnABranch):
    declaration: ClassVar[Declaration]
    suffix = ".md"

    def made(self, store: GitSource) -> Source:
        return CatalogSource(self.declaration, store)

    def path_of(self, path: str) -> str:
        return f"{self.declaration.path}/{path}"

    def beside(self, path: str, name: str) -> str:
        return super().beside(path, name).removesuffix(".md") + self.suffix


class TestABranch(OnABranch, SourceSuite):
    pass


class TestSops(InACatalog, SourceSuite):
    declaration = DECLARATIONS["sop"]
    TREE = {f"{folder}/{name}.md": SOP.format(n) for folder in ("brand", "재무") for n, name in enumerate(NASTY)}


class TestDocuments(InACatalog, SourceSuite):
    declaration = DECLARATIONS["doc"]
    TREE = {f"policies/{name}.md": SOP.format(n) for n, name in enumerate(NASTY)} | {"brand/x.md": "no front matter\n"}


class TestSkills(InACatalog, SourceSuite):
    declaration = DECLARATIONS["skill"]
    suffix = ".yml"
    TREE = {f"{folder}/{name}.yml": YAML.format(n) for folder in ("brand", "hr") for n, name in enumerate(NASTY)}


class TestAgents(InACatalog, SourceSuite):
    declaration = DECLARATIONS["agent"]
    suffix = ".yml"
    TREE = {f"{name}.yml": YAML.format(n) for n, name in enumerate(NASTY)}


class TestOrganisation(InACatalog, SourceSuite):
    declaration = DECLARATIONS["org"]
    suffix = ".yml"
    TREE = {f"functions/{name}.yml": YAML.format(n) for n, name in enumerate(NASTY)} | {
        "roles/lead.yml": "id: role-lead\nname: 팀장\n",
        "value-streams/collection-launch.yml": "id: vs-collection-launch\nname: Launch\n",
    }

    def ref(self, source: Source, path: str) -> Ref:
        folder, _, name = path.removesuffix(".yml").partition("/")
        return Ref.of("org", [{"functions": "function", "roles": "role"}.get(folder, "value-stream"), name])

    @property
    def folder(self) -> str:
        pytest.skip("the folders of the store have other names than the collections")

    test_1_listing_a_scope_gives_what_is_in_it_and_nothing_else = None  # for the same reason


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
                patch.setattr("octavo.sources.git.objects.Objects.read", lambda *_: b"garbage")
            else:
                patch.setattr("octavo.sources.git.refs.Refs._identity", read_wrongly)
            yield


def test_a_branch_can_be_watched_and_kept() -> None:
    assert abilities(GitSource(Path("nowhere"), secret=b"")) == {"watch", "stamp"}
