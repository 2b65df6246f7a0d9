"""F1: what an answer or a question finds by itself is spelled as lists spell it; what somebody wrote is repeated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.stores.stored import given

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.arguments import OwnArguments
from octavo.core.errors import ApprovalRequired, Conflict
from octavo.core.ref import Ref
from octavo.core.tools import Text
from octavo.core.values import Call, Trail
from octavo.stores.approvals import StoredApprovals
from octavo.stores.sqlite import SQLiteStore
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F1")]

TWO = "roots: [./work, ./other]"
FORMS = [
    ("roots: [./work]", "file:///work/a.md"),
    (TWO, "file:///work/a.md"),
    ("roots: [./work], uris: relative", "file://a.md"),
]


class Served:
    def __init__(self, octavo: Octavo) -> None:
        self._octavo = octavo

    async def __call__(self, name: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """The text and the structure of an answer."""
        works = self._octavo.works
        who, asked = works.identity.launched("ann"), OwnArguments(arguments)
        result = await works.ask(Call("invoke", Ref.of("tool", (name,)), who, Trail(), f"tool://{name}", asked))
        first = result.content[0]
        assert isinstance(first, Text)
        return first.text, dict(result.structured or {})


@asynccontextmanager
async def serving(base: Path, source: str, approve: str = "never") -> AsyncIterator[Served]:
    for root in ("work", "other"):
        (base / root).mkdir(exist_ok=True)
        (base / root / "a.md").write_text(f"{root}\n", encoding="utf-8")
    text = f"""
version: 1
sources: {{work: {{kind: file, extensions: ['*'], write: true, {source}}}}}
agents: {{ann: {{}}}}
policy:
  - {{who: ann, may: [invoke], what: "tool://*", approve: never}}
  - {{who: ann, may: "*", what: "file://*", approve: {approve}}}
"""
    loaded = load_text(text, file=base / "octavo.yaml", environ={})
    async with Octavo(loaded, state=StateDirectory.open(base / "state")) as octavo:
        yield Served(octavo)


@pytest.mark.parametrize(("source", "listed"), FORMS)
async def test_what_was_undone_is_spelled_as_lists_spell_it(tmp_path: Path, source: str, listed: str) -> None:
    async with serving(tmp_path, source) as call:
        await call("write", target="a.md", content="new\n")
        text, told = await call("undo")
    assert text == f"write {listed}: restored"
    assert [one["uri"] for one in told["undone"]] == [listed]


@pytest.mark.parametrize("written", ["a.md", "file://a.md", "/work/a.md", "file:///work/a.md"])
async def test_an_undo_of_one_address_repeats_it(tmp_path: Path, written: str) -> None:
    repeated = "file://a.md" if "work" not in written else "file:///work/a.md"
    async with serving(tmp_path, "roots: [./work]") as call:
        await call("write", target="a.md", content="new\n")
        text, told = await call("undo", target=written)
    assert text == f"write {repeated}: restored" and told["undone"][0]["uri"] == repeated


async def test_what_cannot_be_undone_is_named_as_lists_name_it(tmp_path: Path) -> None:
    async with serving(tmp_path, TWO) as call:
        await call("write", target="/other/a.md", content="new\n")
        (tmp_path / "other" / "a.md").write_text("changed by somebody else\n", encoding="utf-8")
        with pytest.raises(Conflict, match=r"^file:///other/a\.md has changed since") as refused:
            await call("undo")
    assert refused.value.data["uri"] == "file:///other/a.md"


@pytest.mark.parametrize(
    ("tool", "asked", "shown"),
    [
        ("delete", {"target": "a.md"}, "delete file://a.md"),
        ("delete", {"target": "file://%61.md"}, "delete file://a.md"),
        ("delete", {"target": "/other/a.md"}, "delete file:///other/a.md"),
        ("move", {"target": "/work/a.md", "to": "/work/b.md"}, "move file:///work/a.md to file:///work/b.md"),
        ("copy", {"target": "a.md", "to": "b.md"}, "copy file://a.md to file://b.md"),
    ],
)
async def test_a_human_is_asked_about_the_address_that_the_caller_wrote(
    tmp_path: Path, tool: str, asked: dict[str, str], shown: str
) -> None:
    async with serving(tmp_path, TWO, approve="human") as call:
        with pytest.raises(ApprovalRequired) as waits:
            await call(tool, **asked)
        async with SQLiteStore(tmp_path / "state") as store:
            approval = await StoredApprovals(given(store), lambda *_: None).named(str(waits.value.data["approval"]))
    assert approval.wanted.act == shown
