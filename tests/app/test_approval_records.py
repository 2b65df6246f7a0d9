"""What the audit log tells of an approval holds no secret, also where an address that a caller made up is one (T5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.arguments import WriteArguments
from octavo.core.errors import ApprovalRequired
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T5")]

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
CONFIGURATION = """
version: 1
sources:
  files: {kind: file, roots: [./files], extensions: ["*"], write: true}
agents: {brand: {}}
policy:
  - {who: brand, may: "*", what: "**", approve: human}
"""


async def test_the_act_of_an_approval_is_scrubbed_like_an_address(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    loaded = load_text(CONFIGURATION, file=tmp_path / "octavo.yaml", environ={})
    async with Octavo(loaded, state=StateDirectory(state, b"s" * 32)) as octavo:
        who = octavo.works.identity.launched("brand")
        for ref in (Ref.parse(f"file://{SECRET}"), Ref.parse(f"file://a/{SECRET}.md")):
            with pytest.raises(ApprovalRequired):
                await octavo.works.ask(Call("write", ref, who, Trail(), str(ref), WriteArguments(body="x")))
        octavo.ledger.flush()
    text = "".join(file.read_text("utf-8") for file in (state / "audit").rglob("*") if file.is_file())
    assert SECRET not in text
    records = [json.loads(line) for line in text.splitlines() if '"approval"' in line]
    acts = [record["act"] for record in records if record["op"] == "approval"]
    assert len(acts) == 2 and all("[redacted:" in act for act in acts)
