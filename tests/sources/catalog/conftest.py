"""A small organisation on a real disk, and its catalogs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from octavo.core.ref import Ref
from octavo.core.values import Entry
from octavo.sources.catalog import DECLARATIONS, CatalogSource, Declaration, Handbook
from octavo.sources.file import FileRoot, FileSource

BRIEF = """---
schema_version: "1.0"
id: sop-brand-campaign-brief
title: 캠페인 브리프 작성
version: {version}
status: active
function: func-brand
agent: agent-brand
tags: [brand, campaign, creative]
---
# 캠페인 브리프
"""
FILES = {
    "sops/brand/campaign-brief.md": BRIEF.format(version="1.2.0"),
    "sops/brand/press.md": "---\nid: sop-brand-press\ntitle: Press\nversion: 0.1.0\nstatus: draft\n---\n",
    "sops/hr/onboarding.md": (
        "---\nid: sop-hr-onboarding\ntitle: 입사자 안내\nversion: 2.0.0\nstatus: active\nfunction: hr\n"
        "agent: agent-hr\ntags: [people]\n---\n"
    ),
    "sops/ops/incident-response.md": (
        "---\nid: sop-ops-incident-response\ntitle: Incident response\nversion: 1.0.0\nstatus: deprecated\n---\n"
    ),
    "docs/brand/guidelines.md": "---\nid: doc-guidelines\ntitle: 브랜드 가이드\n---\n",
    "docs/policies/expense.md": (
        "---\nid: doc-expense\ntitle: 경비 규정\nversion: 1.2.0\ncategory: policies\nlast_updated: 2025-01-25\n"
        "owner: func-finance\n---\nnew\n"
    ),
    "docs/policies/expense@1.1.0.md": "---\nid: doc-expense\ntitle: 경비 규정\nversion: 1.1.0\n---\nold\n",
    "skills/brand/brief-writing.yml": (
        "id: skill-brand-brief-writing\nname: brief-writing\ntitle: 브리프 작성\nfunction: func-brand\n"
        "agents: [agent-brand]\ndescription: Drafts a campaign brief.\n"
        "triggers:\n  keywords: [브리프, campaign brief]\n  examples: [브리프 써 줘]\nrequired_tools: [read, search]\n"
    ),
    "skills/finance/budget-check.yml": (
        "id: skill-finance-budget-check\nname: budget-check\ntitle: 예산 점검\nfunction: func-finance\n"
        "agents: [agent-finance, agent-brand]\ntriggers: {keywords: [예산, budget]}\n"
    ),
    "agents/brand.yml": (
        "id: agent-brand\nname: brand\nfunction: func-brand\ncapabilities: [briefs]\n"
        "skills: [skill-brand-brief-writing]\npermissions: {read: ['sop://brand/*']}\n"
    ),
    "agents/orchestrator.yml": "id: agent-orchestrator\nname: orchestrator\n",
    "agents/hr.yml": "id: agent-hr\nname: hr\nfunction: func-hr\nskills: []\n",
    "agents/finance.yml": "id: agent-finance\nname: finance\nfunction: org://function/finance\n",
    "org/functions/brand.yml": "id: func-brand\nname: 브랜드\n",
    "org/functions/hr.yml": "id: func-hr\nname: 인사\n",
    "org/functions/finance.yml": "id: func-finance\nname: 재무\n",
    "org/roles/brand-lead.yml": "id: role-brand-lead\nname: 팀장\nfunction: brand\n",
    "org/value-streams/collection-launch.yml": (
        "id: vs-collection-launch\nname: Launch\nfunctions: [func-brand, func-finance]\n"
    ),
}


class Organisation(SimpleNamespace):
    """The folder, the store, the handbook, and a catalog for each scheme."""

    root: Path
    store: FileSource
    handbook: Handbook
    catalogs: dict[str, CatalogSource]

    def write(self, path: str, text: str | bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        staged = self.root.parent / "staged"
        staged.write_bytes(text if isinstance(text, bytes) else text.encode())
        staged.replace(place)

    def source(self, uri: str) -> CatalogSource:
        return self.catalogs[Ref.parse(uri).scheme]

    async def entries(self, uri: str, limit: int = 2) -> list[Entry]:
        found: list[Entry] = []
        cursor: str | None = None
        while True:
            page = await self.source(uri).list(Ref.parse(uri), cursor=cursor, limit=limit)
            found += page.items
            cursor = page.cursor
            if cursor is None:
                return found

    async def uris(self, uri: str) -> list[str]:
        return [str(entry.ref) for entry in await self.entries(uri)]

    async def read(self, uri: str) -> Any:
        return await self.source(uri).read(Ref.parse(uri), max_bytes=1 << 20)

    async def problems(self, scheme: str) -> list[str]:
        return [str(problem) for problem in await self.catalogs[scheme].problems()]


Founded = Callable[..., Awaitable[Organisation]]


@pytest.fixture
async def founded(tmp_path: Path) -> AsyncIterator[Founded]:
    """Makes an organisation of files, by default the usual ones."""
    async with AsyncExitStack() as stack:

        async def found(files: dict[str, str] = FILES, *more: Declaration) -> Organisation:
            root = tmp_path / "handbook"
            root.mkdir()
            made = Organisation(root=root, handbook=Handbook())
            for path, text in files.items():
                made.write(path, text)
            made.store = await stack.enter_async_context(FileSource([FileRoot(root)], secret=b"secret"))
            made.catalogs = {
                one.scheme: CatalogSource(one, made.store, handbook=made.handbook)
                for one in (*DECLARATIONS.values(), *more)
            }
            return made

        yield found


@pytest.fixture
async def organisation(founded: Founded) -> Organisation:
    return await founded()
