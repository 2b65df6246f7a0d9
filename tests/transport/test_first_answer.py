"""What can wait for a client's first answer waits, and no longer: sources are watched once it was told something."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import LIMIT, Pipe
from tests.gate.twins import META, frame, initialize

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.config.load import Loaded
from octavo.stores.state import StateDirectory
from octavo.transport.mcp import wire_names

pytestmark = pytest.mark.anyio
FILE = "file:///files/a.md"
LOOKS = [("resources/read", {"uri": FILE}), ("resources/list", {}), ("tools/list", {})]


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.md").write_text("# A\n", encoding="utf-8")
    (tmp_path / "octavo.yaml").write_text("sources: {f: {kind: file, roots: [./files]}}\n", encoding="utf-8")
    return load(tmp_path / "octavo.yaml")


def held(loaded: Loaded) -> Octavo:
    octavo = Octavo(loaded, state=StateDirectory.in_memory())
    octavo.feed.hold(3600.0)
    return octavo


def is_watched(octavo: Octavo) -> bool:
    return octavo.feed.since(octavo.feed.number(), ["file"]) is not None


async def watched(octavo: Octavo) -> None:
    async with asyncio.timeout(LIMIT):
        while not is_watched(octavo):
            await asyncio.sleep(0)


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "SDK"])
@pytest.mark.parametrize(("method", "params"), LOOKS)
@pytest.mark.parametrize("era", ["2025-11-25", wire_names.MODERN])
async def test_a_handshake_begins_no_watch_and_the_first_answer_does(
    loaded: Loaded, era: str, method: str, params: dict[str, Any], lane: bool
) -> None:
    octavo, meta = held(loaded), {"_meta": META} if era == wire_names.MODERN else {}
    hello = frame("server/discover", meta) if meta else initialize(era)
    async with octavo, Pipe(octavo, octavo.works.identity.launched(None), lane=lane) as pipe:
        (said,) = await pipe.ask(hello)
        assert "result" in said.value and not is_watched(octavo)
        (told,) = await pipe.ask(frame(method, {**params, **meta}, 2))
        assert "result" in told.value
        await watched(octavo)


async def test_a_subscription_begins_the_watch_before_it_is_answered(loaded: Loaded) -> None:
    octavo = held(loaded)
    async with octavo, Pipe(octavo, octavo.works.identity.launched(None), lane=True) as pipe:
        await pipe.ask(initialize("2025-11-25"))
        (said,) = await pipe.ask(frame("resources/subscribe", {"uri": FILE}, 2))
        assert "result" in said.value and is_watched(octavo)
