"""Conversations by handle: bounded, forgotten, and of use to nobody but who began them (P8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.stores.stored import made, opens

from octavo.core.arguments import OwnArguments
from octavo.core.clock import FrozenClock
from octavo.core.errors import InvalidParams, RateLimited, TooLarge
from octavo.core.ports.stores import Opens
from octavo.core.ref import Ref
from octavo.core.tools import Said
from octavo.core.values import Call, Principal, Trail
from octavo.prompts.registry import PromptRegistry
from octavo.stores import conversations as bounds
from octavo.stores.conversations import StoredConversations
from octavo.tools.schema import compile_schema

__all__ = ["made", "opens"]

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def kept(opens: Opens, clock: FrozenClock) -> StoredConversations:
    return StoredConversations(opens, expires=60.0, clock=clock)


def user(text: str) -> Said:
    return Said("user", text)


@pytest.mark.seed("P8")
async def test_a_handle_is_bound_to_who_began_it(kept: StoredConversations) -> None:
    mine, theirs = await kept.begin("a"), await kept.begin("b")
    await kept.add("a", mine, [user("secret of a")])
    told = set[str]()
    for who, handle in (("b", mine), ("a", theirs), ("a", "made up"), ("a", "")):
        for attempt in (kept.past, kept.end, lambda who, handle: kept.add(who, handle, [user("x")])):
            with pytest.raises(InvalidParams) as caught:
                await attempt(who, handle)
            told.add(str(caught.value))
    assert len(told) == 1, "what is somebody else's cannot be told from what there is not"
    assert list(await kept.past("a", mine)) == [user("secret of a")]


@pytest.mark.seed("P8")
async def test_it_expires_after_its_last_use(kept: StoredConversations, clock: FrozenClock) -> None:
    old, used = await kept.begin("a"), await kept.begin("a")
    clock.advance(59)
    await kept.past("a", used)
    clock.advance(2)
    assert list(await kept.past("a", used)) == []
    with pytest.raises(InvalidParams, match="expired"):
        await kept.past("a", old)


@pytest.mark.seed("P8")
async def test_it_is_bounded(kept: StoredConversations, clock: FrozenClock) -> None:
    handles = [await kept.begin("a") for _ in range(bounds.MAX_OPEN)]
    with pytest.raises(RateLimited):
        await kept.begin("a")
    await kept.begin("b")
    await kept.end("a", handles[0])
    handle = await kept.begin("a")
    for number in range(bounds.MAX_SAID + 5):
        await kept.add("a", handle, [user(str(number))])
    assert [said.text for said in await kept.past("a", handle)] == [str(n) for n in range(5, bounds.MAX_SAID + 5)]
    await kept.add("a", handle, [user("x" * bounds.MAX_CHARACTERS)])
    assert len(await kept.past("a", handle)) == 1
    with pytest.raises(TooLarge):
        await kept.add("a", handle, [user("x" * (bounds.MAX_CHARACTERS + 1))])
    clock.advance(61)
    assert len({await kept.begin("a") for _ in range(bounds.MAX_OPEN)}) == bounds.MAX_OPEN


async def rendered(registry: PromptRegistry, who: str, **arguments: str) -> list[tuple[str, str]]:
    call = Call("render", Ref("prompt", ("p",)), Principal(who), Trail(), arguments=OwnArguments(arguments))
    return [(one.role, one.content.text) for one in (await registry.render(call)).messages]


@pytest.mark.seed("P8")
async def test_a_prompt_uses_what_was_said_before_and_only_its_callers(
    tmp_path: Path, kept: StoredConversations
) -> None:
    body: dict[str, Any] = {
        "id": "p",
        "description": "d",
        "messages": [
            {"history": 2},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "{% for one in history %}{{ one.role }}:{{ one.text }};{% endfor %}go on"}
                ],
            },
        ],
    }
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "p.json").write_text(json.dumps(body), encoding="utf-8")
    registry = PromptRegistry(compile_schema, conversations=kept)
    assert registry.load([folder]) == []
    assert await rendered(registry, "a") == [("user", "go on")]
    handle = await kept.begin("a")
    await kept.add("a", handle, [user("one {{x}}"), Said("assistant", "two"), user("three")])
    assert await rendered(registry, "a", context_id=handle) == [
        ("assistant", "two"),
        ("user", "three"),
        ("user", "user:one {{x}};assistant:two;user:three;go on"),
    ]
    await kept.add("a", handle, [user("four")])
    assert (await rendered(registry, "a", context_id=handle))[1] == ("user", "four"), "a kept rendering is not stale"
    for who, wrong in (("b", handle), ("a", "nope")):
        with pytest.raises(InvalidParams, match="No such conversation"):
            await rendered(registry, who, context_id=wrong)
