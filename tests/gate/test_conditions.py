"""A decision that hangs on the time, on arguments or on a human is made for every request anew: the lane remembers
frames and calls, contents remember how they were encoded, and none of that outlives what was decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.gate.twins import META, StdioTwins, frame, houses, stdio_twins

from octavo.core.clock import FrozenClock

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clock"), pytest.mark.seed("O14", "T5", "T6")]

both_eras = pytest.mark.parametrize("era", ["modern", "2025-11-25"])
DAY = 24 * 3600.0
# The clock of the gate stands at 09:46 UTC.
MORNINGS = "when: {time: {hours: '09:00-10:00'}}"


async def ask(twins: StdioTwins, era: str, method: str, **params: Any) -> Any:
    """The same from lane and SDK; asked often enough for the lane to know it by heart."""
    said: dict[str, Any] = {}
    for number in (1, 2, 3, 4):
        meta = {"_meta": META} if era == "modern" else {}
        (answer,) = await twins.same(frame(method, {**params, **meta}, number))
        told = {name: value for name, value in answer.value.items() if name != "id"}
        assert not said or told == said, "the same question at the same time"
        said = told
    return said


@both_eras
@pytest.mark.parametrize("uri", ["file://guide.md", "mem://one"])
async def test_a_read_that_depends_on_the_time_is_decided_each_time(
    folder: Path, clock: FrozenClock, era: str, uri: str
) -> None:
    rule = f"{{who: brand, may: '*', what: '{uri}', effect: deny, {MORNINGS}}}"
    async with houses(folder, rule=rule) as pair, stdio_twins(pair, "brand") as twins:
        await twins.open(era)
        for allowed in (False, True, False, True):
            told = await ask(twins, era, "resources/read", uri=uri)
            assert ("result" in told) is allowed
            listed = json.dumps(await ask(twins, era, "resources/list"), ensure_ascii=False)
            assert (f'"{uri}"' in listed) is (allowed and uri.startswith("file"))
            clock.advance(DAY / 2)
        assert twins.hits > 20


@both_eras
async def test_a_call_that_depends_on_its_arguments_is_decided_by_its_own(folder: Path, era: str) -> None:
    rule = "{who: brand, may: invoke, what: 'tool://sum', effect: deny, when: {arguments: {n: {min: 5}}}}"
    async with houses(folder, rule=rule) as pair, stdio_twins(pair, "brand") as twins:
        await twins.open(era)
        for n in (1, 9, 2, 5, 4):
            told = await ask(twins, era, "tools/call", name="sum", arguments={"n": n})
            assert told["result"]["isError"] is (n >= 5), n
        unknown = await ask(twins, era, "tools/call", name="sum", arguments={})
        assert unknown["result"]["isError"], "what is not said is not known"


@both_eras
@pytest.mark.parametrize("asks", ["", ", when: {arguments: {n: {min: 5}}}"], ids=["always", "by argument"])
async def test_what_a_human_has_allowed_once_is_not_remembered(folder: Path, era: str, asks: str) -> None:
    rule = f"{{who: brand, may: invoke, what: 'tool://sum', approve: human{asks}}}"
    async with houses(folder, rule=rule) as pair, stdio_twins(pair, "brand") as twins:
        await twins.open(era)
        if asks:
            free = await ask(twins, era, "tools/call", name="sum", arguments={"n": 1})
            assert not free["result"]["isError"]
        meta = {"_meta": META} if era == "modern" else {}
        asked = frame("tools/call", {"name": "sum", "arguments": {"n": 9}, **meta}, 7)
        for pipe in (twins.fast, twins.slow):
            outcomes: list[bool] = []
            for answered in (False, True, False):
                (told,) = await pipe.ask(asked)
                error = told.value["result"].get("_meta", {}).get("dev.octavo/error")
                outcomes.append(error is None)
                if error is not None and not answered:
                    policy: Any = pipe.house.works.policy
                    kept = policy._approval._approving._approvals
                    await kept.answer(error["data"]["approval"], "somebody", allow=True)
            assert outcomes == [False, True, False]
