"""The order of the folds is the architecture (house.md, section 2)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from octavo.core.ports.chain import Next, Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Principal, Trail
from octavo.pipeline.audit import Audit
from octavo.pipeline.cache import Cache
from octavo.pipeline.chain import ORDER, fold, inner
from octavo.pipeline.identity.fold import Identity
from octavo.pipeline.mask import Mask
from octavo.pipeline.policy.fold import Policy
from octavo.pipeline.quota import Quota
from octavo.pipeline.redact.fold import Redact
from octavo.pipeline.throttle import Throttle

CALL = Call("read", Ref.parse("sop://a"), Principal("local"), Trail())


def steps(seen: list[str]) -> list[Any]:
    """One step of each name, which notes that it was met."""

    async def meet(self: Any, call: Call, call_next: Next) -> Reply:
        seen.append(type(self).__name__.lower())
        return await call_next(call)

    return [type(name.capitalize(), (), {"__call__": meet})() for name in ORDER]


async def dispatch(call: Call) -> Reply:
    return "reply"


@pytest.mark.seed("F11", "B2")
def test_the_eight_folds_stand_in_this_order() -> None:
    """Pinned on purpose: whoever changes it changes what is promised of audit, quota, policy and cache."""
    assert ORDER == ("audit", "identity", "quota", "policy", "mask", "cache", "redact", "throttle")
    real = (Audit, Identity, Quota, Policy, Mask, Cache, Redact, Throttle)
    assert tuple(step.__name__.lower() for step in real) == ORDER


@pytest.mark.anyio
async def test_a_call_meets_the_folds_from_the_outermost_to_the_desk() -> None:
    """The folded chain is the list, read from left to right."""
    seen: list[str] = []
    assert await fold(steps(seen), dispatch)(CALL) == "reply"
    assert tuple(seen) == ORDER


@pytest.mark.parametrize("seed", range(20))
def test_another_order_is_refused(seed: int) -> None:
    """Configuration tunes the steps and cannot reorder them."""
    mixed = steps([])
    random.Random(seed).shuffle(mixed)
    if [type(step).__name__.lower() for step in mixed] == list(ORDER):
        mixed.reverse()
    with pytest.raises(ValueError, match="order"):
        fold(mixed, dispatch)


@pytest.mark.parametrize("missing", range(8))
def test_a_chain_that_lacks_a_fold_is_refused(missing: int) -> None:
    """Nothing may be left out, the audit least of all."""
    all_of_them = steps([])
    del all_of_them[missing]
    with pytest.raises(ValueError, match=ORDER[missing]):
        fold(all_of_them, dispatch)


def test_a_fold_twice_is_refused() -> None:
    """Two caches would keep two truths."""
    all_of_them = steps([])
    with pytest.raises(ValueError):
        fold([*all_of_them, all_of_them[-1]], dispatch)


@pytest.mark.anyio
async def test_the_house_itself_asks_through_the_last_folds_and_no_others() -> None:
    seen: list[str] = []
    assert await inner(steps(seen)[-2:], dispatch)(CALL) == "reply"
    assert seen == ["redact", "throttle"]
    for wrong in (steps(seen)[-3:-1], steps(seen)[:2], []):
        with pytest.raises(ValueError, match="throttle"):
            inner(wrong, dispatch)
