"""Seed 003, subscriptions: a namespace, a path, a resource; what happened, when, and which metadata changed. And the
same in the change feed. Each agent hears what it may see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import ERAS, EVENT, Pipe, Place
from tests.e2e.maison_haru import BRAND, Door, maison_haru

pytestmark = [pytest.mark.slow, pytest.mark.seed("O10")]

UPDATED, LISTS = "notifications/resources/updated", "notifications/resources/list_changed"
BRIEF = "sop://brand/campaign-brief"
FILE, SALARY = "sops/brand/campaign-brief.md", "sops/hr/salary-policy.md"
NEW = """---
id: sop-brand-{0}
title: {0}
version: 0.1.0
status: draft
function: func-brand
---
"""


@pytest.fixture(params=ERAS)
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Place, Pipe]]:
    place = maison_haru(tmp_path)
    with place.pipe("--config", tmp_path / "octavo.yaml", "--as", BRAND, era=request.param) as pipe:
        yield place, pipe


def subscribe(pipe: Pipe, pattern: str) -> Callable[[], None]:
    """Gives the way to end it."""
    if pipe.era == "legacy":
        assert pipe.ask("resources/subscribe", {"uri": pattern})["result"] == {}
        return lambda: pipe.ask("resources/unsubscribe", {"uri": pattern})
    wanted = {"resourceSubscriptions": [pattern], "resourcesListChanged": True}
    request = pipe.request("subscriptions/listen", {"notifications": wanted})
    pipe.tell(request)
    assert pipe.next_message()["method"] == "notifications/subscriptions/acknowledged"
    ended = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request["id"]}}
    return lambda: pipe.tell(ended)


def next_event(pipe: Pipe, method: str = UPDATED) -> Any:
    waiting = [note for note in pipe.notifications if note["method"] == method]
    if waiting:
        pipe.notifications.remove(waiting[0])
        return waiting[0]["params"]
    while True:
        message = pipe.next_message()
        if message.get("method") == method:
            return message["params"]
        pipe.notifications.append(message)


def event(pipe: Pipe, method: str = UPDATED) -> dict[str, Any]:
    params = next_event(pipe, method)
    told: dict[str, Any] = params["_meta"][EVENT]
    assert method != UPDATED or params["uri"] == told["uri"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["timestamp"])
    return told


def test_namespace_path_and_resource_tell_the_old_and_the_new_version(served: tuple[Place, Pipe]) -> None:
    place, pipe = served
    text = (place.root / FILE).read_text(encoding="utf-8")
    door = Door(pipe, pipe.era)
    begin = door.tool("changes", target="sop://brand")["structuredContent"]["next"]
    versions = ["1.2.0"]
    for pattern in ("sop://*", "sop://brand/*", BRIEF):
        end = subscribe(pipe, pattern)
        versions.append(f"1.{len(versions) + 2}.0")
        place.edit("sops/hr/onboarding.md", f"no longer what it was, {pattern}")
        place.edit(FILE, text.replace("version: 1.2.0", f"version: {versions[-1]}"))
        told = event(pipe)
        assert (told["type"], told["uri"]) == ("resource/updated", BRIEF)
        assert told["changes"] == {"version": versions[-2:]}
        end()
    news = door.tool("changes", target="sop://brand", after=begin)["structuredContent"]
    expected = [{"version": [old, new]} for old, new in pairwise(versions)]
    assert [change["changes"] for change in news["changes"]] == expected
    read = door.told(f"changes://sop/brand?after={begin}")["changes"]
    assert [(one["type"], one["uri"], one["changes"]) for one in read] == [
        ("resource/updated", BRIEF, changes) for changes in expected
    ]
    assert door.tool("changes", target="sop://brand", after=news["next"])["structuredContent"]["changes"] == []
    assert "://hr/" not in str([*pipe.notifications, door.tool("changes", after=begin)])
    (entry,) = door.listed(filter={"under": "sop://brand", "name": "캠페인 브리프 작성"})
    assert entry["_meta"]["dev.octavo/metadata"]["version"] == versions[-1]


@pytest.mark.seed("O14", "B2")
def test_what_comes_and_goes_is_told_and_nothing_of_what_is_denied(served: tuple[Place, Pipe]) -> None:
    place, pipe = served
    text = (place.root / FILE).read_text(encoding="utf-8")
    subscribe(pipe, "sop://*")
    place.edit("sops/hr/secret-plan.md", NEW.format("secret"))
    place.edit(SALARY, "---\nid: sop-hr-salary-policy\nversion: 99.0.0\n---\n")
    (place.root / "sops/hr/onboarding.md").unlink()
    created = place.edit("sops/brand/pop-up.md", NEW.format("pop-up"))
    told = event(pipe)
    assert (told["type"], told["uri"]) == ("resource/created", "sop://brand/pop-up")
    assert told["changes"]["version"] == [None, "0.1.0"] and told["changes"]["status"] == [None, "draft"]
    assert event(pipe, LISTS)["uri"] == "sop://brand/pop-up"
    place.edit(FILE, text.replace("status: active", "status: deprecated").replace("1.2.0", "1.2.1"))
    told = event(pipe)
    assert told["type"] == "resource/updated" and {**told["changes"], "size": 0} == {
        "version": ["1.2.0", "1.2.1"],
        "status": ["active", "deprecated"],
        "size": 0,
    }
    created.unlink()
    told = event(pipe)
    assert (told["type"], told["uri"]) == ("resource/deleted", "sop://brand/pop-up")
    assert told["changes"]["version"] == ["0.1.0", None]
    feed = Door(pipe, pipe.era).tool("changes", target="sop://")["structuredContent"]["changes"]
    assert [(one["type"], one["uri"]) for one in feed] == [
        ("resource/created", "sop://brand/pop-up"),
        ("resource/updated", BRIEF),
        ("resource/deleted", "sop://brand/pop-up"),
    ]
    assert "://hr/" not in str(pipe.notifications) and "99.0.0" not in str(pipe.notifications)


@pytest.mark.seed("O14")
def test_what_is_denied_cannot_be_subscribed_to(served: tuple[Place, Pipe]) -> None:
    _, pipe = served
    patterns = ["sop://hr/*", "sop://hr/salary-policy", "sop://brand/*"]
    if pipe.era == "modern":
        pipe.tell(pipe.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": patterns}}))
        acknowledged = pipe.next_message()["params"]["notifications"]
        assert acknowledged["resourceSubscriptions"] == ["sop://brand/*"]
        return
    refused = [pipe.ask("resources/subscribe", {"uri": pattern}).get("error") for pattern in patterns]
    assert [one and one["code"] for one in refused] == [-32003, -32003, None]
    data = refused[0]["data"]
    assert (data["agent"], data["required_permission"], data["resource"]) == (BRAND, "watch", "sop://hr/*")


@pytest.mark.seed("O16")
@pytest.mark.parametrize(
    ("pattern", "uri"),
    [("sop://sop-brand-campaign-brief", "sop://sop-brand-campaign-brief"), ("sop://func-brand/*", BRIEF)],
)
def test_what_is_subscribed_to_by_an_id_is_heard_of(served: tuple[Place, Pipe], pattern: str, uri: str) -> None:
    place, pipe = served
    subscribe(pipe, pattern)
    file = place.root / FILE
    file.write_text(file.read_text(encoding="utf-8").replace("1.2.0", "1.3.0"), encoding="utf-8")
    told = next_event(pipe)
    assert (told["uri"], told["_meta"][EVENT]["changes"]["version"]) == (uri, ["1.2.0", "1.3.0"])
