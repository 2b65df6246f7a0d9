"""`octavo approvals`: what waits is shown, and answered once."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.stores.stored import given

from octavo.core.approval import Wanted
from octavo.stores.approvals import StoredApprovals
from octavo.stores.sqlite import SQLiteStore
from octavo.stores.state import StateDirectory

pytestmark = pytest.mark.seed("T5")

CONFIG = "sources: {mem: {kind: memory, scheme: mem, resources: {one: {text: content}}}}"


@pytest.fixture
def name(empty: Path) -> str:
    """Of an approval that waits."""
    (empty / "octavo.yaml").write_text(CONFIG, encoding="utf-8")
    state = StateDirectory.open(empty / ".octavo").path
    wanted = Wanted(who="agent\n", act="invoke tool://pay", rule="policy[0]", people=2, request="r", versions="v")
    assert state is not None

    async def asked() -> str:
        async with SQLiteStore(state) as store:
            return (await StoredApprovals(given(store), lambda *_: None).ask(wanted, seconds=600)).id

    return asyncio.run(asked())


def test_nothing_waits_at_first(run: Run, empty: Path) -> None:
    (empty / "octavo.yaml").write_text(CONFIG, encoding="utf-8")
    assert run("approvals", "list").stdout == ""
    assert run("approvals", "show", "nope").exit_code == 1


def test_what_waits_is_listed_without_line_ends_of_the_caller(run: Run, name: str) -> None:
    (line,) = run("approvals", "list").stdout.splitlines()
    assert line.startswith(f"{name}  pending") and line.endswith('"agent\\n": "invoke tool://pay"')


def test_a_person_is_the_user_of_the_system_or_a_name(run: Run, name: str) -> None:
    for by in ("the user of agent", "", "a" * 65, "a\nb"):
        assert run("approvals", "allow", name, "--yes", "--by", by).exit_code == 2
    told = run("approvals", "allow", name, "--yes")
    assert "1 more must allow it" in told.stderr
    assert run("approvals", "allow", name, "--yes").exit_code == 1
    user = pwd.getpwuid(os.getuid()).pw_name
    assert json.loads(run("approvals", "show", name, "--json").stdout)["allowed"] == [user]
    assert run("approvals", "deny", name, "--by", "kim@example.org").exit_code == 0
    shown = json.loads(run("approvals", "show", name, "--json").stdout)
    assert (shown["state"], shown["denied"]) == ("denied", "kim@example.org")


def test_nothing_is_allowed_by_mistake(run: Run, name: str) -> None:
    asked = run("approvals", "allow", name)
    assert asked.exit_code != 0 and "may this be done, once?" in asked.stderr
    assert "pending" in run("approvals", "list").stdout
