"""What a human is shown: exact, bounded, and nothing in it that a model could use to fake the frame."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.approval import MAX_ARGUMENTS, MAX_VALUE, Approval, Wanted, exact, plain, shown_arguments

pytestmark = pytest.mark.seed("T5")

TRICKS = [
    "a\nwho asks: somebody else",
    "a\r\u2028\u2029\x85who asks: x",
    "\x1b[2J\x1b[1;1H",
    "abc\u202etxt.exe",
    "zero\u200bwidth\ufeff",
    "ㅤ\u115f\uffa0\ufe0f\U000e0041\U000e0101",
    "a" + " " * 200 + "who asks: x",
    "\u00a0\u3000",
    "\u2800" * 40 + "who asks: x",
    "\ud800",
    '"}, "approved": true',
]


def approval(**wanted: Any) -> Approval:
    full = {"who": "agent", "act": "invoke tool://wipe", "rule": "policy[0]", "request": "", "versions": "", **wanted}
    return Approval(id="0123456789", wanted=Wanted(**full), asked=0, expires=600)


@pytest.mark.parametrize("trick", TRICKS)
def test_no_text_of_a_caller_makes_a_line_or_hides(trick: str) -> None:
    frame = len(approval(arguments=shown_arguments({"path": "x"})).shown().splitlines())
    shown = approval(who=trick, act=trick, why=trick, tool=trick, arguments=shown_arguments({trick: trick})).shown()
    assert len(shown.splitlines()) == frame + 1  # the tool has a line of its own
    assert all(line.isprintable() for line in shown.splitlines())
    assert "   " not in shown
    assert [line.partition(":")[0] for line in shown.splitlines()][:4] == [
        "Approval 0123456789",
        "who asks",
        "tool",
        "what",
    ]


@given(st.text())
def test_what_is_shown_is_exact(text: str) -> None:
    assert json.loads(plain(text)) == text


def test_korean_is_read_as_it_is() -> None:
    assert shown_arguments({"경로": "문서/안내 파일.md", "count": 3, "all": True, "in": ["a", None]}) == (
        '"경로": "문서/안내 파일.md"',
        '"count": 3',
        '"all": true',
        '"in": ["a", null]',
    )


def test_what_is_long_is_cut_and_still_told_apart() -> None:
    (one,), (other,) = (shown_arguments({"text": "x" * 5000 + end}) for end in "ab")
    assert len(one) < MAX_VALUE + 200 and "cut; 5003 characters, SHA-256" in one
    assert one != other
    many = shown_arguments({f"a{number}": number for number in range(1000)})
    assert len(many) == MAX_ARGUMENTS + 1 and many[-1].startswith("and 960 more, SHA-256 of all")


def test_arguments_that_differ_are_never_the_same() -> None:
    values: list[Any] = [
        1,
        1.0,
        True,
        "1",
        [1],
        ["1"],
        {"a": 1},
        None,
        "",
        "a",
        "a ",
        "\u0061\u0301",
        "\u00e1",
        b"a",
        b"b",
    ]
    told = [json.dumps(exact({"value": value}), sort_keys=True) for value in values]
    assert len(set(told)) == len(values)
    assert exact({"a": 1, "b": 2}) == exact({"b": 2, "a": 1})


def test_a_blank_that_counts_as_a_sign_is_shown() -> None:
    assert plain("a\u2800b") == r'"a\u2800b"'
