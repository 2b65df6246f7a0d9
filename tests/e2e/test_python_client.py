"""The official Python client lists, reads, subscribes and hears of changes: both transports, both eras."""

from __future__ import annotations

from datetime import datetime

import pytest
from tests.e2e.harness import ODD_NAMES, Place
from tests.e2e.organisation import organisation
from tests.e2e.python_client import connected, event

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
both_eras = pytest.mark.parametrize("era", ("modern", "legacy"))
both_transports = pytest.mark.parametrize("transport", ("stdio", "http"))

GUIDE, KOREAN = "file://docs/guide.md", "file://docs/한국/소개.md"
NAMES = ["docs/guide.md", "docs/한국/소개.md", "notes/plan.txt"]
PATTERNS = {"exact": GUIDE, "path": "file://docs/*", "namespace": "file://*"}


@both_transports
@both_eras
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.seed("A2", "A4", "F6", "O9")
async def test_changes_arrive_as_the_seeds_write_them(place: Place, transport: str, era: str, pattern: str) -> None:
    async with connected(place, transport, era) as link, link.subscribed(PATTERNS[pattern]) as honoured:
        assert honoured == {PATTERNS[pattern]}
        assert await link.uris() == [place.listed(name, transport) for name in NAMES]
        assert await link.text(KOREAN) == "안녕하세요, 옥타보입니다.\n"

        place.edit("docs/guide.md", "# Guide, second edition\n")
        changed = GUIDE if pattern == "exact" else place.listed("docs/guide.md", transport)
        told = await link.heard.updated(changed)
        assert set(told) == {"type", "uri", "timestamp", "changes"}
        assert (told["type"], told["uri"]) == ("resource/updated", changed)
        assert datetime.fromisoformat(told["timestamp"]).tzinfo is not None
        assert set(told["changes"]) == {"version", "size", "etag"}
        assert told["changes"]["size"] == [8, 24]
        old, new = told["changes"]["version"]
        assert old and new and old != new
        assert await link.text(GUIDE) == await link.text(changed) == "# Guide, second edition\n"

        if pattern == "exact":
            return
        fresh = place.listed("docs/새%20문서.md", transport)
        begun = len(link.heard.notes)
        made = place.edit("docs/새 문서.md", "새")
        told = await link.heard.updated(fresh, after=begun)
        assert (told["type"], told["changes"]["size"], told["changes"]["version"][0]) == (
            "resource/created", [None, 3], None,
        )  # fmt: skip
        assert await link.heard.list_changed(after=begun) == told
        assert fresh in await link.uris()

        begun = len(link.heard.notes)
        made.unlink()
        told = await link.heard.updated(fresh, after=begun)
        assert (told["type"], told["changes"]["size"], told["changes"]["version"][1]) == (
            "resource/deleted", [3, None], None,
        )  # fmt: skip
        assert await link.heard.list_changed(after=begun) == told
        assert fresh not in await link.uris()


@both_transports
@both_eras
@pytest.mark.seed("A4")
async def test_an_ended_subscription_is_silent(place: Place, transport: str, era: str) -> None:
    guide, plan = (place.listed(name, transport) for name in ("docs/guide.md", "notes/plan.txt"))
    async with connected(place, transport, era) as link, link.subscribed("file://notes/*"):
        async with link.subscribed("file://docs/*"):
            place.edit("docs/guide.md", "two\n")
            await link.heard.updated(guide)
        # The handshake era answers an unsubscription; an end that is not answered is noticed a moment later.
        for turn in range(20 if era == "modern" else 1):
            begun = len(link.heard.notes)
            place.edit("docs/guide.md", f"three {turn}\n")
            # Two more changes, one after the other: what belonged to the first is here before the second.
            for number in range(2):
                mark = len(link.heard.notes)
                place.edit("notes/plan.txt", f"plan {turn} {number}\n")
                await link.heard.updated(plan, after=mark)
            told = {event(one)["uri"] for one in link.heard.notes[begun:]}
            if guide not in told:
                break
        assert told == {plan}


@both_transports
@both_eras
@pytest.mark.seed("A4", "B2", "O14")
async def test_the_policy_is_asked_at_every_delivery(place: Place, transport: str, era: str) -> None:
    organisation(place)
    async with connected(place, transport, era, agent="agent-brand") as link, link.subscribed("file://*") as honoured:
        assert honoured == {"file://*"}
        place.edit("hr/salary.md", "raised\n")
        place.edit("hr/new.md", "new\n").unlink()
        place.edit("board/merger.md", "off\n")
        place.edit("board/new.md", "new\n").unlink()
        for number in range(2):
            mark = len(link.heard.notes)
            place.edit("docs/guide.md", f"guide {number}\n")
            await link.heard.updated(place.listed("docs/guide.md"), after=mark)
        assert link.heard.uris == {place.listed("docs/guide.md")}


@both_transports
@both_eras
@pytest.mark.seed("B2", "O13", "O14")
async def test_what_may_not_be_watched_is_refused(place: Place, transport: str, era: str) -> None:
    organisation(place)
    async with connected(place, transport, era, agent="agent-brand") as link:
        for pattern in ("file://hr/salary.md", "file://hr/*"):
            if era == "modern":  # what may not be watched is left out of the acknowledgement
                async with link.subscribed(pattern, GUIDE) as honoured:
                    assert honoured == {GUIDE}
            else:
                with pytest.raises(Exception, match=r"Access denied"):
                    await link.client.subscribe_resource(pattern)


@both_transports
@both_eras
@pytest.mark.seed("B2", "O14")
async def test_a_subscription_does_not_tell_what_is_hidden_from_what_is_not_there(
    place: Place, transport: str, era: str
) -> None:
    organisation(place)
    async with connected(place, transport, era, agent="agent-brand") as link:
        for pattern in ("file://board/merger.md", "file://board/*", "file://bored/merger.md", "file://bored/*"):
            async with link.subscribed(pattern, GUIDE) as honoured:
                assert honoured == {pattern, GUIDE}
                place.edit("board/merger.md", f"{pattern}\n")
                for number in range(2):
                    mark = len(link.heard.notes)
                    place.edit("docs/guide.md", f"{pattern} {number}\n")
                    await link.heard.updated(GUIDE, after=mark)
        assert link.heard.uris == {GUIDE}


@both_transports
@both_eras
@pytest.mark.seed("F1", "A4")
async def test_every_spelling_is_read_and_a_pattern_is_told_as_lists_give_it(
    place: Place, transport: str, era: str
) -> None:
    listed, machine = place.listed("docs/guide.md", transport), f"file://{place.root}/docs/guide.md"
    async with connected(place, transport, era) as link:
        for uri in (GUIDE, listed, machine):
            assert await link.text(uri) == await link.text(listed)
            for pattern, named in ((uri, uri), (uri.replace("guide.md", "*"), listed)):
                async with link.subscribed(pattern):
                    begun = len(link.heard.notes)
                    place.edit("docs/guide.md", f"for {pattern}\n")
                    told = await link.heard.updated(named, after=begun)
                    assert (told["uri"], told["type"]) == (named, "resource/updated")
        assert link.heard.uris == {GUIDE, listed, machine}


@both_transports
@both_eras
@pytest.mark.seed("F1", "F6")
async def test_whatever_names_look_like_what_is_listed_is_read_back(place: Place, transport: str, era: str) -> None:
    place.edit_all(ODD_NAMES)
    async with connected(place, transport, era) as link:
        listed = await link.listed()
        for name in ODD_NAMES:
            assert await link.text(listed[name.rpartition("/")[2]]) == f"{name}\n"
        if transport == "http":
            assert not any(str(place.base) in uri for uri in listed.values())
