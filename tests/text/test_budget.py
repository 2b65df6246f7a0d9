"""No answer is over its budget, and no cut goes through what a reader sees as one character."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.text.tokens import fit, tokens

TEXTS = st.text(st.sampled_from("abc 12{}\n\r한글ée\u0301🎉👨\u200d👩🇰🇷각"), max_size=60) | st.text(max_size=60)


@given(TEXTS, st.integers(0, 100), st.integers(0, 40))
def test_a_budget_is_never_exceeded_and_nothing_is_lost(text: str, max_bytes: int, max_tokens: int) -> None:
    fitted = fit(text, max_bytes, max_tokens)
    assert fitted.text + fitted.rest == text
    assert len(fitted.text.encode()) <= max_bytes or not fitted.text
    assert tokens(fitted.text) <= max_tokens or not fitted.text
    assert (fitted.cut_at_line is None) == (fitted.rest == "")


@given(TEXTS, st.integers(1, 40))
def test_a_cut_is_at_a_line_end_or_inside_of_the_first_line(text: str, max_bytes: int) -> None:
    fitted = fit(text, max_bytes, 10_000)
    if fitted.rest and fitted.text and not fitted.text.endswith(("\n", "\r")):
        assert "\n" not in fitted.text and "\r" not in fitted.text
        assert fitted.cut_at_line == 1
        assert unicodedata.category(fitted.rest[0])[0] != "M"


def test_whole_lines_as_many_as_fit() -> None:
    assert fit("a\nbb\nccc\n", 5, 100) == ("a\nbb\n", 3, "ccc\n")
    assert fit("a\nbb\nccc\n", 9, 100) == ("a\nbb\nccc\n", None, "")
    assert fit("aaaa bbbb\ncccc\n", 100, 3) == ("aaaa bbbb\n", 2, "cccc\n")


@pytest.mark.parametrize(
    "whole", ["e\u0301\u0302", "👨\u200d👩\u200d👧", "🇰🇷", "👍🏽", "각", "\r\n", "❤\ufe0f", "\ud83d\ude00"]
)
def test_what_a_reader_sees_as_one_is_never_cut(whole: str) -> None:
    text = f"ab{whole}cd"
    size = len(text.encode("utf-8", "surrogatepass"))
    for max_bytes in range(size):
        given_text = fit(text, max_bytes, 1000).text
        assert given_text in ("", "a", "ab", f"ab{whole}", f"ab{whole}c"), max_bytes


def test_a_heap_of_accents_does_not_stop_the_reading() -> None:
    assert 0 < len(fit("a" + "\u0301" * 5000, 1000, 1000).text.encode()) <= 1000


def test_hangul_and_ideographs_cost_more_than_letters() -> None:
    assert tokens("a" * 400) == 100
    assert tokens("가" * 100) == tokens("漢" * 100) == 150
    assert tokens('{"id":1}') == 5
    assert tokens("🎉") == 3
    assert tokens("") == 0
