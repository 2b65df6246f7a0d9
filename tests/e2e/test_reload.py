"""Subscriptions live through a new configuration, and obey it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.harness import ERAS, Place, Server
from tests.e2e.organisation import BRAND, CONFIGURATION, OPENED, OPS, REVOKED, configure, organisation
from tests.e2e.python_client import Link, linked, over_http

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.seed("A4", "B2", "O14"),
]
both_eras = pytest.mark.parametrize("era", ERAS)
GUIDE, SALARY, PLAN = (f"file:///root/{name}" for name in ("docs/guide.md", "hr/salary.md", "notes/plan.txt"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    organisation(made)
    return made


@pytest.fixture
def server(place: Place) -> Iterator[Server]:
    with place.serve("--config", place.base / "octavo.yaml") as running:
        yield running
    assert "Traceback" not in running.log.text


def reload(place: Place, server: Server, text: str) -> None:
    begun = len(server.log)
    configure(place, text)
    server.process.send_signal(signal.SIGHUP)
    server.log.wait_for("configuration reloaded from", after=begun)


async def changes_until_two_marks(place: Place, link: Link) -> list[str]:
    """Addresses told since the last call, two marks of our own left out: what came before them is here."""
    for number in range(2):
        mark = len(link.heard.notes)
        place.edit("notes/plan.txt", f"mark {number} {mark}\n")
        await link.heard.updated(PLAN, after=mark)
    told = [note.params.uri for note in link.heard.notes if note.method == "notifications/resources/updated"]
    link.heard.notes.clear()
    return [uri for uri in told if uri != PLAN]


@both_eras
async def test_delivery_obeys_the_new_policy(place: Place, server: Server, era: str) -> None:
    async with linked(over_http(server.url, BRAND), era) as link, link.subscribed("file://*"):
        place.edit("hr/salary.md", "one\n")
        assert await changes_until_two_marks(place, link) == []
        reload(place, server, OPENED)
        place.edit("hr/salary.md", "two\n")
        assert set(await changes_until_two_marks(place, link)) == {SALARY}
        reload(place, server, CONFIGURATION)
        place.edit("hr/salary.md", "three\n")
        assert await changes_until_two_marks(place, link) == []


@both_eras
async def test_a_change_after_a_reload_is_told_once(place: Place, server: Server, era: str) -> None:
    async with linked(over_http(server.url, OPS), era) as link, link.subscribed("file://docs/*", "file://notes/*"):
        reload(place, server, OPENED)
        reload(place, server, CONFIGURATION)
        place.edit("docs/guide.md", "once\n")
        assert await changes_until_two_marks(place, link) == [GUIDE]


@both_eras
async def test_who_lost_the_key_hears_nothing_more(place: Place, server: Server, era: str) -> None:
    async with (
        linked(over_http(server.url, OPS), era) as witness,
        witness.subscribed("file://*"),
        linked(over_http(server.url, BRAND), era) as link,
    ):
        if era == "modern":
            async with link.client.listen(resource_subscriptions=["file://docs/*"]):
                await revoke_and_look(place, server, witness, link)
        else:
            await link.client.subscribe_resource("file://docs/*")
            await revoke_and_look(place, server, witness, link)


async def revoke_and_look(place: Place, server: Server, witness: Link, link: Link) -> None:
    reload(place, server, REVOKED)
    link.heard.notes.clear()
    place.edit("docs/guide.md", "after\n")
    assert GUIDE in await changes_until_two_marks(place, witness)
    assert [note for note in link.heard.notes if note.method == "notifications/resources/updated"] == []
