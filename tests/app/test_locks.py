"""A store that another process holds stops whoever needs it, and nobody else. Requirements T7, T9."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.app.asking import ask
from tests.stores.stored import given

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.errors import ApprovalRequired, SourceUnavailable
from octavo.core.ports.stores import STORE_FILE
from octavo.stores.questions import StoredQuestions
from octavo.stores.sqlite import SQLiteStore
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T7", "T9")]

CONFIGURATION = """
version: 1
sources:
  files: {kind: file, roots: [./files], extensions: ["*"], write: true}
agents: {hostile: {}, polite: {}}
policy:
  - {who: polite, may: "*", what: "**"}
  - {who: hostile, may: "*", what: "**", approve: human}
"""


class Held:
    """The store of the state folder in other hands, until the others were served, or for so long."""

    def __init__(self, state: Path) -> None:
        self.begun, self.served = threading.Event(), threading.Event()
        self.in_time = False
        self._file = state / STORE_FILE
        self._thread = threading.Thread(target=self._hold)
        self._thread.start()
        assert self.begun.wait(30)

    def _hold(self) -> None:
        database = sqlite3.connect(self._file, isolation_level=None)
        database.execute("BEGIN IMMEDIATE")
        self.begun.set()
        self.in_time = self.served.wait(5)
        database.execute("ROLLBACK")
        database.close()

    def end(self) -> None:
        self.served.set()
        self._thread.join(30)


async def test_a_process_that_never_ends_its_turn_is_not_waited_for(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path, patience=0.5) as store:
        questions = StoredQuestions(given(store), lambda step, asked: None)
        held = Held(tmp_path)
        with pytest.raises(SourceUnavailable, match="busy"):
            await questions.take("request")
        held.end()
        assert await questions.take("request") is None


async def test_others_are_served_while_approvals_wait_for_the_store(tmp_path: Path) -> None:
    """Held for three seconds it stopped the loop, and so everybody, for as long."""
    state, files = tmp_path / "state", tmp_path / "files"
    files.mkdir()
    state.mkdir(mode=0o700)
    (files / "long.md").write_text("word " * 20_000, encoding="utf-8")  # which is redacted in a thread
    loaded = load_text(CONFIGURATION, file=tmp_path / "octavo.yaml", environ={})
    async with Octavo(loaded, state=StateDirectory(state, b"s" * 32)) as octavo:
        await octavo.home.store()
        held = Held(state)
        waiting = [
            asyncio.ensure_future(ask(octavo, "hostile", "write", f"file://{number}.md", arguments={"body": "x"}))
            for number in range(20)
        ]
        for _ in range(20):
            await asyncio.sleep(0)
        assert (await ask(octavo, "polite", "read", "file://long.md")).body.startswith("word")
        await ask(octavo, "polite", "write", "file://mine.md", arguments={"body": "x"})
        assert not any(one.done() for one in waiting)
        held.end()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(answer, ApprovalRequired) for answer in answers), answers
    assert held.in_time
