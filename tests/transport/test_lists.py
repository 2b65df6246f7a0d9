"""What clients need as a whole comes as a whole: many of them never ask for a second page of tools or prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.gate.doors import Pipe
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.gate.world import house

from octavo.app.configuration import load_text

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T1", "P1")]

CONFIGURATION = """
sources: {work: {kind: file, roots: [./work], write: true}}
toolsets: [files, filesystem]
prompts: {dirs: [./prompts]}
limits: {page: 2}
policy:
  - {who: "*", may: "*", what: "**"}
  - {who: "*", may: invoke, what: "tool://undo", effect: deny}
"""
PROMPT = "id: p%s\ndescription: One.\nmessages: [{role: user, content: [{type: text, text: Hello}]}]\n"


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "no lane"])
@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
async def test_a_small_page_does_not_cut_lists_of_tools_and_prompts(tmp_path: Path, era: str, lane: bool) -> None:
    for name in ("work", "prompts"):
        (tmp_path / name).mkdir()
    for number in range(5):
        (tmp_path / f"work/{number}.md").write_text("x", encoding="utf-8")
        (tmp_path / f"prompts/{number}.yaml").write_text(PROMPT % number, encoding="utf-8")
    loaded = load_text(CONFIGURATION, file=tmp_path / "octavo.yaml", environ={})
    meta = {"_meta": META} if era == "modern" else {}
    async with house(loaded) as octavo, Pipe(octavo, octavo.works.identity.launched(None), lane=lane) as pipe:

        async def listed(method: str, kind: str) -> tuple[list[str], bool]:
            (answer,) = await pipe.ask(frame(method, meta))
            result = json.loads(answer.text)["result"]
            return [one["name"] for one in result[kind]], "nextCursor" in result

        if not meta:
            for line in (initialize(era), INITIALIZED):
                await pipe.ask(line)
        tools, more = await listed("tools/list", "tools")
        assert len(tools) > 10 and "edit" in tools and "undo" not in tools and not more
        assert await listed("prompts/list", "prompts") == ([f"p{number}" for number in range(5)], False)
        assert await listed("resources/list", "resources") == (["0.md", "1.md"], True)
