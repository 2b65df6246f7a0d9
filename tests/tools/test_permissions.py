"""What a tool demands besides the right to call it (T6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.errors import Forbidden, InvalidParams
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail
from octavo.stores.state import StateDirectory
from octavo.tools.permissions import demands

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T6")]

CONFIGURATION = """
sources: {notes: {kind: memory, scheme: note, resources: {hr/a: {text: x}}}}
tools: {dirs: [./tools]}
agents: {agent-hr: {roles: [hr]}, agent-brand: {}, agent-ops: {}}
policy:
  - {who: "*", may: [invoke], what: "tool://*"}
  - {who: "role:hr", may: [invoke], what: "permission://people"}
  - {who: [agent-hr, agent-ops], may: [read], what: "note://hr/*"}
"""
TOOLS = '''
from octavo.tools import tool

ran = []

@tool(read_only=True, permissions=("people", "read note://hr/a"))
def salaries() -> str:
    """Tells what people earn."""
    ran.append(1)
    return "much"
'''


async def test_the_caller_must_hold_each_of_them_before_the_tool_runs(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "salaries.py").write_text(TOOLS, encoding="utf-8")
    loaded = load_text(CONFIGURATION, file=tmp_path / "octavo.yaml", environ={})
    async with Octavo(loaded, state=StateDirectory.in_memory()) as house:

        async def call(who: str) -> Any:
            principal = house.works.identity.launched(who)
            with anyio.fail_after(5):
                return await house.works.ask(Call("invoke", Ref("tool", ("salaries",)), principal, Trail()))

        assert (await call("agent-hr")).content[0].text == "much"
        for who in ("agent-brand", "agent-ops"):
            with pytest.raises(Forbidden, match="needs the permission people") as caught:
                await call(who)
            assert caught.value.data["required_permission"] == "people"
            assert caught.value.data["toolName"] == "salaries"


def test_a_permission_is_a_name_or_a_right_to_an_address() -> None:
    assert demands(["people", "read file://hr"]) == (
        ("people", "invoke", Ref("permission", ("people",))),
        ("read file://hr", "read", Ref.parse("file://hr")),
    )
    for wrong in ("", "eat file://hr", "read nothing at all", "a b"):
        with pytest.raises(InvalidParams, match="permission"):
            demands([wrong])
