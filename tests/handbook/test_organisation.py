"""The example organisation is whole, consistent with itself, and guarded as its policy says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.cli.demo import AGENTS, make
from octavo.core.errors import Forbidden
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Trail
from octavo.stores.state import StateDirectory

pytestmark = pytest.mark.anyio

NAMED = (
    "sop://brand/campaign-brief", "sop://hr/onboarding", "sop://ops/incident-response", "sop://hr/salary-policy",
    "doc://policies/expense", "doc://brand/guidelines", "skill://brand/brief-writing", "skill://finance/budget-check",
    "agent://brand", "agent://orchestrator", "org://function/brand", "org://value-stream/collection-launch",
)  # fmt: skip
SCHEMES = ("sop", "doc", "skill", "agent", "org")
CONFIDENTIAL = {
    "sop://hr/salary-policy", "sop://hr/performance-review", "sop://hr/grievance", "doc://policies/pay-bands",
}  # fmt: skip


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Octavo]:
    make(tmp_path / "demo")
    async with Octavo(load(tmp_path / "demo/octavo.yaml"), state=StateDirectory.in_memory()) as octavo:
        yield octavo


async def ask(house: Octavo, op: Op, uri: str, who: str = "local") -> Reply:
    call = Call(op, Ref.parse(uri), house.works.identity.launched(who), Trail(), uri, limit=1000, max_bytes=1 << 20)
    return await house.works.ask(call)


async def seen(house: Octavo, who: str = "local") -> set[str]:
    pages: list[Any] = [await ask(house, "list", f"{scheme}://", who) for scheme in SCHEMES]
    return {str(entry.ref) for page in pages for entry in page.items}


@pytest.mark.seed("O2", "O3", "O4", "O5", "O6")
async def test_everything_that_is_named_is_there_in_both_languages(house: Octavo) -> None:
    entries = await seen(house)
    assert set(NAMED) <= entries
    kinds = Counter(uri.partition("://")[0] for uri in entries)
    assert kinds.total() >= 40 and set(kinds) == set(SCHEMES)
    titles = " ".join([(await ask(house, "read", uri)).body for uri in NAMED])
    assert re.search("[가-힣]{2}", titles) and re.search("[A-Za-z]{4} [a-z]{2}", titles)
    prompts: Any = await ask(house, "list", "prompt://")
    assert len(prompts.items) >= 3


@pytest.mark.seed("O14")
async def test_each_agent_reads_what_the_policy_says(house: Octavo) -> None:
    everything = await seen(house)
    brand, orchestrator = await seen(house, "agent-brand"), await seen(house, "agent-orchestrator")
    assert not any(uri.startswith("sop://hr/") for uri in brand)
    assert everything - orchestrator == CONFIDENTIAL
    for who, uri in (("agent-brand", "sop://hr/onboarding"), ("agent-orchestrator", "sop://hr/salary-policy")):
        with pytest.raises(Forbidden) as refused:
            await ask(house, "read", uri, who)
        assert refused.value.data["why"]
    assert "sop://hr/salary-policy" in await seen(house, "agent-hr")


@pytest.mark.seed("O5")
async def test_every_agent_can_use_its_skills(house: Octavo) -> None:
    for agent in AGENTS:
        uri = f"agent://{agent.removeprefix('agent-')}?view=capabilities"
        told = json.loads((await ask(house, "read", uri)).body)
        assert told["agent"] == agent
        unusable = {one["uri"] for one in told["skills"] if not one["usable"]}
        assert unusable <= {"skill://ops/stock-alert"}, f"{agent}: the draft waits for its tool"


async def test_what_is_judged_is_there(house: Octavo, tmp_path: Path) -> None:
    """What search and match should find."""
    text = "".join((tmp_path / "demo" / name).read_text(encoding="utf-8") for name in ("queries.yaml", "matches.yaml"))
    named = set(re.findall(r'"((?:sop|doc|skill|agent|org)://[^"]+)"', text))
    assert named and named - await seen(house) == set()
    assert len(YAML(typ="safe").load(tmp_path / "demo/matches.yaml")["matches"]) >= 60
