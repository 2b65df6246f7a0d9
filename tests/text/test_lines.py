"""Parts of a text: lines keep their own ends, ranges are what they say."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import InvalidParams
from octavo.text.lines import (
    body,
    byte_range,
    ending,
    endings,
    head,
    line_range,
    numbered,
    split,
    split_at_lf,
    tail,
)

TEXTS = st.text(st.sampled_from("ab한é🎉\n\r\t \x0c\u2028"), max_size=40)


def test_a_line_ends_with_lf_crlf_or_cr_and_keeps_it() -> None:
    assert split("a\nb\r\nc\rd") == ["a\n", "b\r\n", "c\r", "d"]
    assert split_at_lf("a\nb\r\nc\rd") == ["a\n", "b\r\n", "c\rd"]
    assert [ending(line) for line in split("a\nb\r\nc\rd")] == ["\n", "\r\n", "\r", ""]


def test_form_feeds_and_line_separators_are_content() -> None:
    assert split("a\x0cb\u2028c\x85d\n") == ["a\x0cb\u2028c\x85d\n"]


def test_an_empty_text_has_no_lines_and_a_last_end_begins_no_line() -> None:
    assert (split(""), split("a\n"), split("\n\n")) == ([], ["a\n"], ["\n", "\n"])


def test_the_most_frequent_end_comes_first() -> None:
    assert endings("a\nb\r\nc\r\nd\r") == ["\r\n", "\n", "\r"]
    assert endings("a") == []


@given(TEXTS)
def test_lines_together_are_the_text(text: str) -> None:
    assert "".join(split(text)) == text == "".join(split_at_lf(text))
    assert all(body(line) + ending(line) == line and not set(body(line)) & {"\r", "\n"} for line in split(text))


@given(TEXTS, st.integers(-9, 9), st.integers(-9, 9))
def test_a_range_of_lines_is_the_slice_of_the_lines(text: str, first: int, last: int) -> None:
    lines = split(text)
    begin = first if first > 0 else max(len(lines) + 1 + first, 1)
    end = min(last, len(lines)) if last > 0 else len(lines) + 1 + last
    valid = first and last and begin <= max(len(lines), 1) and (end >= begin or not lines)
    if valid:
        part = line_range(text, first, last)
        assert (part.text, part.total) == ("".join(lines[begin - 1 : end]), len(lines))
        assert part.last - part.first + 1 == len(split(part.text)) or not lines
    else:
        with pytest.raises(InvalidParams):
            line_range(text, first, last)


@given(TEXTS, st.integers(1, 9))
def test_head_and_tail_are_the_first_and_last_lines(text: str, count: int) -> None:
    assert head(text, count).text == "".join(split(text)[:count])
    assert tail(text, count).text == "".join(split(text)[-count:])


@given(TEXTS, st.lists(st.integers(0, 120), min_size=2, max_size=6).map(sorted))
def test_neighbouring_byte_ranges_meet_on_characters(text: str, borders: list[int]) -> None:
    raw = text.encode()
    borders = [0, *(min(border, len(raw)) for border in borders), len(raw)]
    parts = [byte_range(text, start, stop) for start, stop in pairwise(borders)]
    assert "".join(part.text for part in parts) == text
    assert all(raw[part.start : part.stop].decode() == part.text for part in parts)
    assert all(stop - 3 <= part.stop <= stop for part, stop in zip(parts, borders[1:], strict=True))


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: line_range("a\nb\n", 3), "the text has 2 lines"),
        (lambda: line_range("a\nb\n", 0, 1), "count from 1"),
        (lambda: line_range("a\nb\n", 2, 1), "of 2 lines"),
        (lambda: head("a", 0), "at least one"),
        (lambda: tail("a", -1), "at least one"),
        (lambda: byte_range("한", 4, 5), "has 3 bytes"),
        (lambda: byte_range("한", 2, 1), "start <= stop"),
    ],
)
def test_a_range_outside_of_the_text_says_what_is_allowed(ask, says: str) -> None:
    with pytest.raises(InvalidParams, match=says):
        ask()


def test_numbers_stand_before_the_lines_and_leave_the_ends_alone() -> None:
    assert numbered(line_range("a\r\n" * 8 + "b\nc\nd", 8, 10)) == " 8\ta\r\n 9\tb\n10\tc\n"
