"""The tables of what each operation and each tool can reveal are those of the code (tests/security holds them)."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import anyio
import pytest
from tests.e2e.tool_calls import PIXEL, TOOLSETS, calls_of
from tests.gate.world import Journal, records

from octavo.app import Octavo
from octavo.app.builtin_tools import _OFFERED
from octavo.app.configuration import load_text
from octavo.core.arguments import OwnArguments
from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail
from octavo.stores.state import StateDirectory

FILES = {
    "docs/guide.md": b"# Guide\n",
    "docs/한국/소개.md": "안녕하세요, 옥타보입니다.\n".encode(),
    "notes/plan.txt": b"plan\n",
    "pixel.png": PIXEL,
}


def test_every_built_in_tool_has_a_row(generate: ModuleType) -> None:
    for toolset, tools in _OFFERED.items():
        assert {*tools} <= {*generate.ASKED_BY[toolset]}, toolset


@pytest.mark.anyio
@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("toolset", TOOLSETS)
async def test_a_tool_asks_for_what_its_row_says(
    tmp_path: Path, generate: ModuleType, toolset: str, write: bool
) -> None:
    root = tmp_path / "work"
    for name, body in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(body)
    (tmp_path / "state").mkdir(mode=0o700)
    sources = {"work": {"kind": "file", "roots": ["./work"], "extensions": ["*"], "write": write}}
    written = json.dumps({"version": 1, "sources": sources, "toolsets": [toolset]})
    octavo = Octavo(
        load_text(written, file=tmp_path / "octavo.yaml", environ={}),
        state=StateDirectory(tmp_path / "state", b"s" * 32),
    )
    octavo.ledger = Journal()
    async with octavo:
        works = octavo.works
        offered = [call for call in calls_of(toolset, root) if works.tools.tool(call.tool) is not None]
        assert {call.tool for call in offered} == {*works.tools.names}
        for call in offered:
            known, name = len(records(octavo)), call.tool
            asked = Call(
                "invoke",
                Ref.of("tool", (name,)),
                works.identity.launched(None),
                Trail(),
                "",
                OwnArguments(dict(call.arguments)),
            )
            with anyio.fail_after(30):
                try:
                    await works.ask(asked)
                except OctavoError:
                    assert call.fails, call
            ops = {record["op"] for record in records(octavo, known) if "parent" in record}
            assert ops <= {row.op for row in generate.asked_for(toolset, name)}, name
