"""What is remembered is bounded, and one who asks for ever new things takes nobody's away (A5, T9)."""

from __future__ import annotations

import pytest

from octavo.core.memo import Bounded, Memo, Weighted

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


def test_of_what_can_be_found_out_again_the_first_goes_first() -> None:
    kept = Bounded[str, int](3)
    for number, name in enumerate("abca"):  # what is kept again counts as new
        assert kept.keep(name, number) == number
    assert [*kept] == ["b", "c", "a"]
    kept.keep("d", 4)
    assert [*kept.items()] == [("c", 2), ("a", 3), ("d", 4)]


def test_of_a_large_map_some_go_at_once_and_never_more_than_a_part() -> None:
    many, one = Bounded[int, int](640), Bounded[int, int](640, at_once=1)
    for number in range(10_000):
        many.keep(number, number)
        one.keep(number, number)
        assert len(many) >= min(number + 1, 630) and len(many) <= 640
        assert len(one) == min(number + 1, 640)
    assert [*one] == [*range(9_360, 10_000)]


def test_of_what_is_heavy_what_was_used_last_stays() -> None:
    kept = Weighted[str, str](100)
    for name in "abcde":
        kept.keep(name, name.upper(), 20)
    assert kept.get("a") == "A"
    kept.keep("f", "F", 20)
    assert [name for name in "abcdef" if name in kept] == ["a", "c", "d", "e", "f"]
    kept.keep("giant", "G", 26)  # more than a quarter of the room
    assert "giant" not in kept and len(kept) == 5
    kept.keep("a", "again", 5)  # weighs less now, and so there is room
    kept.keep("g", "G", 15)
    assert (len(kept), kept.get("a")) == (6, "again")
    kept.clear()
    assert (len(kept), kept.get("a")) == (0, None)


def test_the_number_of_heavy_things_may_have_an_end_too() -> None:
    kept = Weighted[int, int](1000, most=2)
    for number in range(4):
        kept.keep(number, number)
    assert [number for number in range(4) if number in kept] == [2, 3]
