"""The change feed as it is read: the tool `changes` and the addresses of `changes://` (O10, B3, F5)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anyio
import pytest
from tests.tools.builtin.conftest import Tools

from octavo.app.configuration import load
from octavo.core.errors import Forbidden, InvalidParams
from octavo.core.ref import Ref
from octavo.core.values import Call, Change, Content, Trail
from octavo.feed import ChangeFeed

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F5", "O10", "B3")]

OPEN = 'sources: {work: {kind: file, uris: relative, roots: [./work], extensions: ["*"]}}'
RULED = """
    sources:
      work: {kind: file, uris: relative, roots: [./work], extensions: ["*"]}
      notes: {kind: memory, scheme: note, resources: {today: {text: "buy milk"}}}
    agents: {agent-brand: {}, agent-ops: {}, agent-dumb: {}}
    policy:
      - {who: agent-ops, may: "*", what: "**"}
      - {who: agent-brand, may: [watch], what: "file://brand/*"}
      - {who: agent-dumb, may: "*", what: ["tool://changes", "changes://*"], effect: deny}
      - {who: agent-dumb, may: "*", what: "**"}
"""


async def told(tools: Tools, *paths: str) -> None:
    """Writes files, each when the one before has been told."""
    for path in paths:
        news = asyncio.Event()
        leave = tools.octavo.feed.subscribe(lambda change, path=path: news.set() if change.ref.path == path else None)
        tools.put(path, path)
        with anyio.fail_after(30):
            await news.wait()
        leave()


async def read(tools: Tools, uri: str, who: str | None = None, **limits: Any) -> dict[str, Any]:
    works = tools.octavo.works
    call = Call("read", Ref.parse(uri), works.identity.launched(who), Trail(), uri)._replace(**limits)
    with anyio.fail_after(30):
        content: Content = await works.ask(call)
    assert content.entry.mime_type == "application/json"
    return dict(json.loads(content.body))


def seen(news: dict[str, Any]) -> list[str]:
    return [f"{one['type'].removeprefix('resource/')} {one['uri']}" for one in news["changes"]]


async def test_an_agent_goes_on_from_the_number_that_it_was_given(serve: Any) -> None:
    tools = await serve(OPEN, {"old.md": "old"})
    first = await tools.data("changes")
    assert first["changes"] == []
    await told(tools, "a.md", "docs/b.md")
    since = await tools.data("changes", after=first["next"])
    assert seen(since) == ["created file://a.md", "created file://docs/b.md"]
    assert since["changes"][0]["changes"]["size"] == [None, 4]
    assert first["next"] < since["changes"][0]["seq"] < since["changes"][1]["seq"] <= since["next"] < 2**53
    assert (await tools.data("changes", after=since["next"]))["changes"] == []
    assert seen(await tools.data("changes", after=first["next"], target="docs")) == ["created file://docs/b.md"]
    assert await read(tools, f"changes://file/docs?after={first['next']}") | {"next": 0} == {
        "changes": since["changes"][1:],
        "next": 0,
    }
    assert seen(await read(tools, f"changes://?after={first['next']}")) == seen(since)


async def test_without_a_number_the_latest_changes_are_told_oldest_first(serve: Any) -> None:
    tools = await serve(OPEN)
    await tools.data("changes")
    await told(tools, "a.md", "b.md", "c.md")
    latest = await tools.data("changes", limit=2)
    assert seen(latest) == ["created file://b.md", "created file://c.md"]
    assert "more" not in latest
    await told(tools, "d.md")
    assert seen(await tools.data("changes", after=latest["next"])) == ["created file://d.md"]
    assert "created file://d.md" in await tools.text("changes", after=latest["next"])


async def test_pages_meet(serve: Any) -> None:
    """By their number, and by the room that there is in an answer."""
    tools = await serve(OPEN)
    at = begin = (await tools.data("changes"))["next"]
    await told(tools, *(f"{k}.md" for k in range(5)))
    for ask in (
        lambda at: tools.data("changes", after=at, limit=2),
        lambda at: read(tools, f"changes://file?after={at}", max_bytes=700),
        lambda at: read(tools, f"changes://file?after={at}", limit=1),
    ):
        at, found, pages = begin, list[str](), 0
        while True:
            page = await ask(at)
            found, at, pages = found + seen(page), page["next"], pages + 1
            if "more" not in page:
                break
        assert found == [f"created file://{k}.md" for k in range(5)]
        assert pages > 1


async def test_nobody_is_told_of_what_it_may_not_watch(serve: Any) -> None:
    tools = await serve(RULED)
    begin = (await tools.data("changes", who="agent-ops"))["next"]
    await told(tools, "brand/a.md", "hr/pay.md", "brand/b.md")
    everything = ["created file://brand/a.md", "created file://hr/pay.md", "created file://brand/b.md"]
    brand = ["created file://brand/a.md", "created file://brand/b.md"]
    for target in ({}, {"target": "file://"}):
        assert seen(await tools.data("changes", who="agent-ops", after=begin, **target)) == everything
        assert seen(await tools.data("changes", who="agent-brand", after=begin, **target)) == brand
    for target in ("hr", "note://"):
        with pytest.raises(Forbidden) as refused:
            await tools("changes", who="agent-brand", after=begin, target=target)
        assert refused.value.data["required_permission"] == "watch"
    with pytest.raises(Forbidden) as refused:
        await read(tools, f"changes://file/hr?after={begin}", "agent-brand")
    assert refused.value.data["required_permission"] == "watch"


async def test_two_who_ask_at_once_are_each_told_their_own(serve: Any) -> None:
    """An answer is never kept, and nobody shares the one that another waits for."""
    tools = await serve(RULED)
    begin = (await tools.data("changes", who="agent-ops"))["next"]
    await told(tools, "brand/a.md", "hr/pay.md")
    uri = f"changes://file?after={begin}"
    ops, brand = await asyncio.gather(read(tools, uri, "agent-ops"), read(tools, uri, "agent-brand"))
    assert seen(ops) == ["created file://brand/a.md", "created file://hr/pay.md"]
    assert seen(brand) == ["created file://brand/a.md"]
    await told(tools, "brand/c.md")
    assert seen(await read(tools, uri, "agent-brand")) == ["created file://brand/a.md", "created file://brand/c.md"]


async def test_the_number_tells_nothing_of_hidden_changes(serve: Any) -> None:
    """It is the time, whether or not something happened."""
    tools = await serve(RULED)
    quiet = (await tools.data("changes", who="agent-brand"))["next"]
    await told(tools, "hr/pay.md")
    after = await tools.data("changes", who="agent-brand", after=quiet)
    last = (await tools.data("changes", who="agent-ops"))["changes"][-1]["seq"]
    assert after["changes"] == []
    assert after["next"] > last


async def test_a_move_is_told_as_far_as_the_caller_may_know(serve: Any) -> None:
    tools = await serve(RULED, {"hr/a.md": "a", "brand/b.md": "b", "brand/c.md": "c"})
    begin = (await tools.data("changes", who="agent-ops"))["next"]
    heard: list[str] = []
    news = asyncio.Event()

    def hear(change: Change) -> None:
        heard.append(change.kind)
        news.set()

    tools.octavo.feed.subscribe(hear)
    for old, new in (("hr/a.md", "brand/a.md"), ("brand/b.md", "hr/b.md"), ("brand/c.md", "brand/d.md")):
        news.clear()
        (tools.root / old).rename(tools.root / new)
        with anyio.fail_after(30):
            await news.wait()
    assert heard == ["renamed"] * 3
    told = await tools.data("changes", who="agent-ops", after=begin)
    assert [(one["from"], one["uri"]) for one in told["changes"]] == [
        ("file://hr/a.md", "file://brand/a.md"),
        ("file://brand/b.md", "file://hr/b.md"),
        ("file://brand/c.md", "file://brand/d.md"),
    ]
    told = await tools.data("changes", who="agent-brand", after=begin)
    assert seen(told) == ["created file://brand/a.md", "deleted file://brand/b.md", "renamed file://brand/d.md"]
    assert told["changes"][2]["from"] == "file://brand/c.md"
    assert "hr" not in json.dumps(told)
    told = await tools.data("changes", who="agent-ops", after=begin, target="hr")
    assert seen(told) == ["deleted file://hr/a.md", "created file://hr/b.md"]
    assert "renamed file://brand/c.md -> file://brand/d.md" in await tools.text("changes", who="agent-ops")


async def test_a_link_that_leads_elsewhere_comes_and_goes_for_who_sees_one_end(serve: Any) -> None:
    """The size of what it led to before is not for everybody."""
    tools = await serve(RULED, {"hr/pay.md": "secret", "brand/a.md": "a"})
    link = tools.root / "brand" / "link.md"
    link.symlink_to("../hr/pay.md")
    begin = (await tools.data("changes", who="agent-ops"))["next"]
    for target in ("a.md", "../hr/pay.md"):
        news = asyncio.Event()
        leave = tools.octavo.feed.subscribe(
            lambda change, news=news: news.set() if change.ref.name == "link.md" else None
        )
        (tools.root / "brand" / "new").symlink_to(target)
        (tools.root / "brand" / "new").replace(link)
        with anyio.fail_after(30):
            await news.wait()
        leave()
    assert seen(await tools.data("changes", who="agent-ops", after=begin)) == ["updated file://brand/link.md"] * 2
    told = await tools.data("changes", who="agent-brand", after=begin)
    assert seen(told) == ["created file://brand/link.md", "deleted file://brand/link.md"]
    assert [one["changes"]["size"] for one in told["changes"]] == [[None, 1], [1, None]]


async def test_who_may_not_read_learns_no_etag(serve: Any) -> None:
    """It would tell whether a content is one that the caller can guess."""
    tools = await serve(RULED)
    begin = (await tools.data("changes", who="agent-ops"))["next"]
    await told(tools, "brand/a.md")
    (known,) = (await tools.data("changes", who="agent-ops", after=begin))["changes"]
    (kept,) = (await tools.data("changes", who="agent-brand", after=begin))["changes"]
    etag = (await tools.data("info", who="agent-ops", target="brand/a.md"))["etag"]
    assert known["changes"].pop("etag") == [None, etag]
    assert kept == known


async def test_a_rule_can_take_the_feed_away(serve: Any) -> None:
    tools = await serve(RULED)
    with pytest.raises(Forbidden):
        await tools("changes", who="agent-dumb")
    with pytest.raises(Forbidden):
        await read(tools, "changes://file", "agent-dumb")


async def test_a_number_from_before_is_a_gap_and_never_a_silent_loss(serve: Any) -> None:
    tools = await serve(OPEN)
    earlier_process = ChangeFeed().number() - 60_000_000
    begin = await tools.data("changes")
    for lost in (0, earlier_process, begin["next"] + 60_000_000):
        news = await tools.data("changes", after=lost)
        assert news["gap"] is True
        assert news["changes"] == []
        assert "gap" not in await tools.data("changes", after=news["next"])
        assert (await read(tools, f"changes://file?after={lost}"))["gap"] is True
    assert "list anew" in await tools.text("changes", after=0)


async def test_what_happens_while_a_source_is_opened_anew_is_a_gap(serve: Any) -> None:
    """Between the two nobody watches; a reload that leaves it as it is is none."""
    tools = await serve(OPEN)
    begin = (await tools.data("changes"))["next"]
    assert "gap" not in await tools.data("changes", after=begin)
    file = tools.root.parent / "octavo.yaml"
    await tools.octavo.reload(load(file, environ={}))
    assert "gap" not in await tools.data("changes", after=begin)
    (tools.root.parent / "other").mkdir()
    tools.root.rename(tools.root.parent / "gone")
    (tools.root.parent / "other").rename(tools.root)
    await tools.octavo.reload(load(file, environ={}))
    news = await tools.data("changes", after=begin)
    assert news["gap"] is True
    await told(tools, "a.md")
    assert seen(await tools.data("changes", after=news["next"])) == ["created file://a.md"]


async def test_a_number_from_before_one_source_was_watched_is_a_gap_there() -> None:
    feed = ChangeFeed()
    early = feed.number()
    assert feed.since(early) == []
    assert feed.since(early, ["file"]) is None


@pytest.mark.parametrize("uri", ["changes://file?after=x", "changes://file?after=-1", "changes://file?before=1",
                                 "changes://file?after=99999999999999999999", "changes://nope", "changes://tool",
                                 "changes://changes/file"])  # fmt: skip
async def test_what_makes_no_sense_is_refused(serve: Any, uri: str) -> None:
    tools = await serve(OPEN)
    with pytest.raises(InvalidParams):
        await read(tools, uri)


async def test_reading_the_feed_is_recorded_with_what_it_asks_for(serve: Any) -> None:
    tools = await serve(OPEN)
    await read(tools, "changes://file")
    await tools("changes", target="docs")
    tools.octavo.ledger.flush()
    audit = tools.root.parent / ".octavo" / "audit"
    lines = [line for file in audit.glob("*.jsonl") for line in file.read_bytes().splitlines()]
    records = [one for one in map(json.loads, lines) if "op" in one]
    assert [(one["op"], one["uri"]) for one in records] == [
        ("changes", "file://"), ("read", "changes://file"), ("changes", "file://docs"), ("invoke", "tool://changes"),
    ]  # fmt: skip
    assert records[0]["parent"] == records[1]["id"]
