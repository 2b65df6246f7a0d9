"""Edits change what they name and nothing else, or nothing at all."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from octavo.core.edit import Edit
from octavo.core.errors import InvalidParams
from octavo.text import find
from octavo.text.edits import Applied, LineEdit, apply

WORDS = st.text(st.sampled_from("abc한 \n"), min_size=1, max_size=6)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def edited(text: str, *edits: Edit | LineEdit) -> str:
    return apply(text, edits).text


def refusal(text: str, *edits: Edit | LineEdit) -> str:
    with pytest.raises(InvalidParams) as caught:
        apply(text, edits)
    return str(caught.value)


@given(st.text(st.sampled_from("xyz가\n"), max_size=20), st.text(st.sampled_from("xyz가\n"), max_size=20), WORDS, ENDS)
def test_what_is_not_named_stays_to_the_byte(before: str, after: str, new: str, end: str) -> None:
    text = f"{before}<old>{after}".replace("\n", end)
    expected = f"{before}{new}{after}".replace("\n", end) if "\n" in before + after else f"{before}{new}{after}"
    assert edited(text, Edit("<old>", new)) == expected


@given(st.lists(st.tuples(st.sampled_from(["a", "b  ", "  c", ""]), ENDS), max_size=8), st.data())
def test_lines_outside_of_an_edit_keep_their_mixed_ends(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(pairs)))
    pairs.insert(at, ("MARK", "\r\n"))
    lines = [body + end for body, end in pairs]
    assume(not any(lines[n].endswith("\r") and lines[n + 1] == "\n" for n in range(len(lines) - 1)))
    result = edited("".join(lines), Edit("MARK\n", "one\ntwo\n"))
    assert result.startswith("".join(lines[:at]) + "one\r\ntwo")
    assert result.endswith("".join(lines[at + 1 :]))


@given(st.lists(WORDS, min_size=1, max_size=8), st.data())
def test_several_edits_are_the_replacements_one_after_the_other(words: list[str], data: st.DataObject) -> None:
    text = "".join(f"<{n}>{word}" for n, word in enumerate(words))
    numbers = data.draw(st.permutations(range(len(words))))
    expected = text
    for n in numbers:
        expected = expected.replace(f"<{n}>", f"[{n}\n]")
    assert edited(text, *(Edit(f"<{n}>", f"[{n}\n]") for n in numbers)) == expected


@given(st.text(st.sampled_from("ab"), max_size=30), st.text(st.sampled_from("ab"), min_size=1, max_size=3))
def test_all_replaces_every_place_from_left_to_right(text: str, old: str) -> None:
    assume(old in text)
    assert edited(text, Edit(old, "-", "all")) == text.replace(old, "-")
    assert edited(text, Edit(old, "-", text.count(old))) == text.replace(old, "-")


def test_lf_in_an_edit_matches_crlf_in_the_text_and_the_text_wins() -> None:
    assert edited("a\r\nb\r\nc\r\n", Edit("a\nb", "a\nx\nb")) == "a\r\nx\r\nb\r\nc\r\n"
    assert edited("a\nb\n", Edit("a\r\nb", "a\r\nx")) == "a\nx\n"


def test_each_kept_line_keeps_its_own_end() -> None:
    assert edited("a\r\nb\nc\rd\r\n", Edit("a\nb\nc\nd\n", "a\nb\nnew\nc\nd\n")) == "a\r\nb\nnew\r\nc\rd\r\n"


def test_whole_lines_match_with_other_blanks_and_keep_the_indentation_of_the_text() -> None:
    text = "class A:\n        def f(self):  \n            return 1\n\n        x = 2\n"
    result = apply(
        text, [Edit("def f(self):\n    return 1\n", "def f(self):\n    if x:\n        return 2\n    return 1\n")]
    )
    assert result.text == (
        "class A:\n        def f(self):  \n            if x:\n                return 2\n            return 1\n"
        "\n        x = 2\n"
    )
    assert result.places == [Applied(1, 2, exact=False)]


def test_tabs_stay_tabs_when_the_edit_has_spaces() -> None:
    text = "f() {\n\tif (a) {\n\t\tb();\n\t}\n}\n"
    result = edited(
        text, Edit("    if (a) {\n        b();\n    }\n", "    if (a) {\n        b();\n            c();\n    }\n")
    )
    assert result == "f() {\n\tif (a) {\n\t\tb();\n\t\t\tc();\n\t}\n}\n"


def test_an_edit_that_quotes_less_indentation_may_go_further_out() -> None:
    text = "a:\n    b:\n        c\n"
    assert edited(text, Edit("  b:\n      c\n", "  b:\n      c\nd:\n")) == "a:\n    b:\n        c\n  d:\n"


def test_a_last_line_without_an_end_keeps_having_none() -> None:
    assert edited("a\n  b", Edit("b\n", "c\n")) == "a\n  c"


def test_trailing_blanks_and_a_quoted_indentation_after_the_last_line_do_not_matter() -> None:
    assert edited("a  \n  b\nc\n", Edit("a\nb\n    ", "x\nb\n    ")) == "x\n  b\nc\n"


def test_an_exact_match_goes_before_a_tolerant_one() -> None:
    assert edited("  a\na\n", Edit("\na\n", "\nb\n")) == "  a\nb\n"


def test_blanks_inside_of_a_line_are_content() -> None:
    assert "not in the text" in refusal("a  b\n", Edit("a b\n", "c\n"))


def test_what_is_not_found_names_the_nearest_place_and_the_difference() -> None:
    text = "one\ntwo\nalpha(beta, gamma)\nfour\n"
    says = refusal(text, Edit("two\nalpha(beta, delta)\nfour", "x"))
    assert "Edit 1: `old` is not in the text" in says
    assert "line 2" in says
    assert "- alpha(beta, gamma)\n+ alpha(beta, delta)" in says
    assert "line 3" in refusal(text, Edit("alpha(beta, delta)", "x"))
    assert "Nothing in it is similar" in refusal(text, Edit("완전히 다른 말", "x"))


def test_lines_of_the_text_enter_a_message_only_as_far_as_the_caller_may_see_them() -> None:
    with pytest.raises(InvalidParams) as caught:
        apply(
            "key = hunter2\n",
            [Edit("key = [redacted]\n", "key = x\n")],
            visible=lambda text: text.replace("hunter2", "[hidden]"),
        )
    assert "hunter2" not in str(caught.value)
    assert "[hidden]" in str(caught.value)


def test_more_places_than_expected_are_listed_with_their_lines() -> None:
    says = refusal("a\nb\na\n", Edit("a", "x"))
    assert "2 places, not 1 (line 1, 3)" in says
    assert "1 places, not 3" in refusal("a\nb\n", Edit("a", "x", 3))
    assert ", ..." in refusal("a\n" * 20, Edit("a", "x"))


def test_edits_that_touch_are_refused_and_neighbours_are_not() -> None:
    assert "Edit 2 overlaps edit 1" in refusal("abcde", Edit("abc", "x"), Edit("cde", "y"))
    assert "Edit 2 overlaps edit 1" in refusal("a\nb\n", Edit("a", "x"), LineEdit(1, 1, "y"))
    assert edited("abcd", Edit("ab", "x"), Edit("cd", "y")) == "xy"


def test_what_an_earlier_edit_replaced_is_no_longer_found() -> None:
    assert edited("f(1)\nf(2)\n", Edit("f(1)", "g(1)"), Edit("f(", "h(")) == "g(1)\nh(2)\n"


def test_an_edit_that_looks_for_what_another_inserts_is_refused() -> None:
    assert "text that edit 1 inserts" in refusal("a b", Edit("a", "c"), Edit("c", "d"))
    assert "text that edit 1 inserts" in refusal("a b", Edit("a", "b"), Edit("b", "a"))
    assert edited("a b", Edit("b", "c"), Edit("a", "b")) == "b c"


def test_nothing_applies_unless_all_do() -> None:
    assert "Edit 2" in refusal("a b", Edit("a", "x"), Edit("nothing", "y"))


def test_an_empty_old_is_refused_but_for_an_empty_text() -> None:
    assert "`old` is empty" in refusal("a", Edit("", "x"))
    assert edited("", Edit("", "a\r\nb")) == "a\r\nb"
    assert "from 1" in refusal("a", Edit("a", "x", 0))


def test_lines_by_number_are_replaced_inserted_and_removed() -> None:
    text = "a\r\nb\r\nc\r\n"
    assert edited(text, LineEdit(2, 2, "x\ny")) == "a\r\nx\r\ny\r\nc\r\n"
    assert edited(text, LineEdit(1, 2, "")) == "c\r\n"
    assert edited(text, LineEdit(-1, -1, "z\n"), Edit("a", "A")) == "A\r\nb\r\nz\r\n"
    assert edited("", LineEdit(1, 1, "a\n")) == "a\n"
    assert "Edit 1: Line 4 is beyond the end: the text has 3 lines" in refusal(text, LineEdit(4, 4, "x"))


@given(st.integers(0, 2**32))
def test_one_pass_for_many_literals_finds_what_one_by_one_finds(seed: int) -> None:
    dice = random.Random(seed)
    text = "".join(dice.choices("ab한🎉\n", k=400))
    wanted = {text[at : at + dice.randint(3, 40)] for at in dice.choices(range(380), k=20)} | {"a" * 20, "한" * 9}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(find, "_WORTH", 0)
        together = find.Literals(text, wanted)
    alone = find.Literals(text, ())
    assert all(together.positions(literal) == alone.positions(literal) for literal in wanted)
