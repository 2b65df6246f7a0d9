"""What a text calls itself is a text: secrets in it are hidden, and who may not read it is not told (A13, O14)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.asking import ask, told
from tests.gate.doors import Pipe
from tests.gate.fixtures import anyio_backend
from tests.gate.twins import INITIALIZED, frame, initialize

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.errors import Forbidden
from octavo.core.ports.source import Source
from octavo.core.ref import Ref
from octavo.core.values import Change

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A13", "O14")]

__all__ = ["anyio_backend"]

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
CONFIGURATION = """
version: 1
sources:
  store: {kind: file, roots: [./work], expose: false}
  docs: {kind: doc, store: store, path: docs}
  talents: {kind: skill, store: store, path: talents, endings: [.md]}
agents: {reader: {}, lister: {}, part: {}}
toolsets: [files, prompts]
prompts: {dirs: [./prompts]}
policy:
  - {who: reader, may: "*", what: ["doc://*", "skill://*", "prompt://*", "tool://*"]}
  - {who: lister, may: render, what: "prompt://*"}
  - {who: [lister, part], may: [list, watch, invoke], what: ["doc://*", "skill://*", "tool://*"]}
  - {who: part, may: read, what: ["doc://*", "skill://*"], TRUSTED}
  - {who: part, may: read, what: ["doc://secret/*", "skill://secret/*"], effect: deny}
"""
FILES = {
    "docs/open/page.md": "# The zeppelin page\n\nSee [the plan](../secret/plan.md).\n",
    "docs/open/said.md": "---\ntitle: A declared name\n---\n# Another\n\nWords.\n",
    "docs/open/token.md": f"# Deploy token {TOKEN}\n",
    "docs/open/told.md": f"---\ntitle: Deploy token {TOKEN}\n---\nWords.\n",
    "docs/secret/plan.md": "# The walrus plan\n\nSee [the page](../open/page.md).\n",
    "talents/secret/plan.md": "# The walrus plan\n",
}
PROMPT = f"""---
description: Uses {TOKEN}
model: {TOKEN}
---
Say ${{input:what:for example {TOKEN}}}
"""


@pytest.fixture(params=["", "when: {metadata: {status: open}}"], ids=["plainly", "by metadata"])
def trusted(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Octavo]:
    async with _house(tmp_path, "") as octavo:
        yield octavo


def _house(tmp_path: Path, condition: str, more: str = "") -> Octavo:
    for name, text in FILES.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text(text, encoding="utf-8")
    (tmp_path / "prompts").mkdir(exist_ok=True)
    (tmp_path / "prompts/p.prompt.md").write_text(PROMPT, encoding="utf-8")
    config = CONFIGURATION.replace(", TRUSTED", f", {condition}" if condition else "")
    return Octavo(load_text(config + more, file=tmp_path / "octavo.yaml", environ={}))


def of_docs(house: Octavo) -> Source:
    return next(one for one in house.works.sources if one.scheme == "doc")


async def names(house: Octavo, who: str, **more: Any) -> dict[str, str]:
    page: Any = await ask(house, who, "list", "doc://", limit=100, **more)
    return {str(entry.ref): entry.name for entry in page.items}


async def test_a_secret_in_a_title_is_hidden_in_lists_and_facts(house: Octavo) -> None:
    for uri in ("doc://open/token", "doc://open/told"):
        for name in ((await names(house, "reader"))[uri], (await ask(house, "reader", "stat", uri)).name):
            assert name.startswith("Deploy token [redacted:github-token:")
        assert (await ask(house, "reader", "stat", f"{uri}?view=parsed")).name.startswith("Deploy token [redacted:")
    assert (await names(house, "lister"))["doc://open/told"].startswith("Deploy token [redacted:")


async def test_a_secret_in_a_title_is_hidden_from_filters_and_requests(house: Octavo) -> None:
    assert await names(house, "reader", arguments={"filter": {"name": f"*{TOKEN}"}}) == {}
    shown = await names(house, "reader", arguments={"filter": {"name": "*redacted*"}})
    assert set(shown) == {"doc://open/token", "doc://open/told"}


async def test_a_secret_in_a_title_is_hidden_in_events(house: Octavo) -> None:
    await names(house, "reader")
    entry = await of_docs(house).stat(Ref.parse("doc://open/token"))
    assert TOKEN in entry.name
    told = house.works.redacted(Change(kind="created", ref=entry.ref, at=0, new=entry))
    assert TOKEN not in json.dumps(told.changes)
    assert "redacted:github-token" in told.changes["name"][1]


async def test_a_secret_in_a_prompt_is_hidden_from_one_caller_as_well(tmp_path: Path) -> None:
    redact = "redact: {personal: [], principals: {lister: [email]}}\n"
    (tmp_path / "prompts").mkdir()
    text = "---\ndescription: Writes\n---\nTo ${input:whom:somebody, kim@corp.co.kr}\n"
    (tmp_path / "prompts/mail.prompt.md").write_text(text, encoding="utf-8")
    told = {}
    async with _house(tmp_path, "", redact) as house:
        for who in ("reader", "lister"):
            async with Pipe(house, house.works.identity.launched(who), lane=True) as pipe:
                await pipe.ask(initialize("2025-11-25"), INITIALIZED)
                (answer,) = await pipe.ask(frame("prompts/list", {}))
                told[who] = answer.text
    assert "kim@corp.co.kr" in told["reader"]
    assert "kim@corp.co.kr" not in told["lister"]
    assert "[redacted:email:" in told["lister"]


async def test_the_name_of_a_file_stays_as_it_is(house: Octavo, tmp_path: Path) -> None:
    (tmp_path / f"work/docs/{TOKEN}.md").write_text("Words.\n", encoding="utf-8")
    assert (await names(house, "reader"))[f"doc://{TOKEN}"] == TOKEN


async def test_who_may_not_read_a_text_is_told_its_name_from_the_path(tmp_path: Path, trusted: str) -> None:
    async with _house(tmp_path, trusted) as house:
        assert (await names(house, "reader"))["doc://secret/plan"] == "The walrus plan"
        for who in ("lister", "part"):
            assert (await names(house, who))["doc://secret/plan"] == "plan"
            for uri in ("doc://secret/plan", "doc://secret/plan?view=parsed", "doc://secret/plan?view=body"):
                entry = await ask(house, who, "stat", uri)
                assert (entry.name, entry.title) == ("plan", None), uri
        page = await ask(house, "part", "stat", "doc://open/page")
        assert page.name == ("page" if trusted else "The zeppelin page")


async def test_what_front_matter_says_is_told_to_whoever_may_list(house: Octavo) -> None:
    assert (await names(house, "lister"))["doc://open/said"] == "A declared name"
    assert (await ask(house, "lister", "stat", "doc://open/said")).name == "A declared name"


async def test_a_filter_finds_no_name_that_is_not_told(house: Octavo) -> None:
    assert set(await names(house, "reader", arguments={"filter": {"name": "*walrus*"}})) == {"doc://secret/plan"}
    for who in ("lister", "part"):
        assert await names(house, who, arguments={"filter": {"name": "*walrus*"}}) == {}
        assert set(await names(house, who, arguments={"filter": {"name": "plan"}})) == {"doc://secret/plan"}


async def test_a_request_finds_nothing_by_a_name_that_is_not_told(tmp_path: Path, trusted: str) -> None:
    async with _house(tmp_path, trusted) as house:
        for who, found in (("reader", ["skill://secret/plan"]), ("lister", []), ("part", [])):
            page: Any = await ask(house, who, "list", "skill://?match=walrus", limit=100)
            assert [str(entry.ref) for entry in page.items] == found
            assert [one["uri"] for one in (await told(house, who, "skill://?match=walrus"))["matches"]] == found


async def test_a_collection_tells_names_as_a_list_does(tmp_path: Path, trusted: str) -> None:
    async with _house(tmp_path, trusted) as house:
        for who in ("reader", "lister", "part"):
            entries = (await told(house, who, "doc://"))["entries"]
            assert {one["uri"]: one["name"] for one in entries} == await names(house, who)
            assert all("quoted" not in one for one in entries)


async def test_events_tell_names_as_a_list_does(house: Octavo) -> None:
    await names(house, "reader")
    old = await of_docs(house).stat(Ref.parse("doc://secret/plan"))
    happened = Change(kind="created", ref=old.ref, at=0, new=old)
    heard = {
        who: house.works.policy.told(house.works.identity.launched(who), "watch", happened)
        for who in ("reader", "lister", "part")
    }
    assert {who: one and one.changes["name"] for who, one in heard.items()} == {
        "reader": [None, "The walrus plan"],
        "lister": [None, "plan"],
        "part": [None, "plan"],
    }


async def test_a_link_in_a_text_is_told_to_whoever_may_read_that_text(tmp_path: Path) -> None:
    async with _house(tmp_path, "") as house:
        uri = "doc://open/page?view=relations"
        everything = await told(house, "reader", uri)
        assert everything["linked_from"] == [{"uri": "doc://secret/plan", "name": "The walrus plan"}]
        part = await told(house, "part", uri)
        assert part["linked_from"] == []
        assert part["links_to"] == [{"uri": "doc://secret/plan", "name": "plan"}]  # this text says so
        with pytest.raises(Forbidden):
            await ask(house, "lister", "read", uri)


async def test_a_link_is_not_told_by_a_text_that_a_condition_hides(tmp_path: Path) -> None:
    (tmp_path / "work/docs/open").mkdir(parents=True)
    (tmp_path / "work/docs/open/seen.md").write_text(
        "---\nstatus: open\n---\n# Seen\n\nSee [the page](page.md).\n", encoding="utf-8"
    )
    (tmp_path / "work/docs/open/unseen.md").write_text(
        "---\nstatus: shut\n---\n# Unseen\n\nSee [the page](seen.md).\n", encoding="utf-8"
    )
    (tmp_path / "work/docs/open/friend.md").write_text(
        "---\nstatus: open\n---\n# Friend\n\nSee [the page](seen.md).\n", encoding="utf-8"
    )
    async with _house(tmp_path, "when: {metadata: {status: open}}") as house:
        part = await told(house, "part", "doc://open/seen?view=relations")
        assert part["linked_from"] == [{"uri": "doc://open/friend", "name": "Friend"}]
        assert part["links_to"] == [{"uri": "doc://open/page", "name": "page"}]


async def test_a_secret_in_a_prompt_is_hidden_wherever_the_prompt_is_told(house: Octavo) -> None:
    asked = [
        frame("prompts/list", {}),
        frame("prompts/get", {"name": "p", "arguments": {"what": "it"}}),
        frame("resources/list", {}),
        frame("tools/call", {"name": "get_prompt", "arguments": {"name": "p", "arguments": {"what": "it"}}}),
    ]
    async with Pipe(house, house.works.identity.launched("reader"), lane=True) as pipe:
        await pipe.ask(initialize("2025-11-25"), INITIALIZED)
        answers = [answer.text for one in asked for answer in await pipe.ask(one)]
    assert not [text for text in answers if TOKEN in text]
    assert answers[0].count("[redacted:github-token:") >= 3
    assert "Uses [redacted:github-token:" in answers[1]
