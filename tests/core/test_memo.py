"""What is remembered is bounded, and one who asks for ever new things takes nobody's away (A5, T9)."""

from __future__ import annotations

import pytest

from octavo.core.memo import Memo

pytestmark = pytest.mark.seed("A5", "T9")


def look_up(memo: Memo[str, str], key: str) -> bool:
    """Whether it was remembered."""
    if memo.get(key) or memo.again(key):
        return True
    memo.keep(key, key.upper())
    return False


def test_what_somebody_uses_stays_while_another_asks_for_ever_new_things() -> None:
    memo = Memo[str, str](100)
    assert not look_up(memo, "polite")
    for number in range(10_000):
        assert not look_up(memo, f"hostile {number}")
        if number % 40 == 0:
            assert look_up(memo, "polite")


def test_it_holds_no_more_than_it_may_and_what_nobody_uses_is_forgotten() -> None:
    memo = Memo[str, str](100)
    look_up(memo, "once")
    for number in range(200):
        look_up(memo, f"hostile {number}")
        assert len(memo) <= 50  # and as many of before
    assert not look_up(memo, "once")
    assert sum(memo.get(f"hostile {number}") is not None for number in range(200)) <= 50
    assert sum(look_up(memo, f"hostile {number}") for number in range(200)) <= 100
