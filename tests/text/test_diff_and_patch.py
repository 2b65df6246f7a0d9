"""A diff applied to the old text is the new text, whatever both are; a patch that does not fit is refused."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import InvalidParams
from octavo.text.align import changed
from octavo.text.patch import Placed, apply
from octavo.text.revise import unified

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "한글", "-", "+ x", "@@", "\\ y", "d\r", "e\rf"]), max_size=14)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))
NUMBERS = "".join(f"{n}\n" for n in range(1, 41))


def refusal(text: str, patch: str) -> str:
    with pytest.raises(InvalidParams) as caught:
        apply(text, patch)
    return str(caught.value)


@given(TEXTS, TEXTS, st.integers(0, 4))
def test_a_diff_applied_to_the_old_text_gives_the_new_one_to_the_byte(old: str, new: str, context: int) -> None:
    diff = unified(old, new, "a.txt", context=context)
    if old == new:
        assert diff == ("", 0, 0, True)
    else:
        patched = apply(old, diff.text)
        assert patched.text == new
        assert all(placed.offset == 0 for placed in patched.hunks)


@given(LINES, LINES)
def test_between_changed_blocks_lie_equal_lines(before: list[str], after: list[str]) -> None:
    result: list[str] = []
    at = 0
    for a1, a2, b1, b2 in changed(before, after):
        result += before[at:a1] + after[b1:b2]
        at = a2
    assert result + before[at:] == after


def test_a_few_changes_in_a_large_text_stay_a_few() -> None:
    dice = random.Random(1)
    before = [dice.choice(["", "}", "return", f"line {n}"]) for n in range(20_000)]
    after = list(before)
    for n in range(500, 20_000, 1000):
        after[n] = f"new {n}"
    assert sum(b2 - b1 for _, _, b1, b2 in changed(before, after)) == 20


def test_texts_of_equal_lines_and_moved_blocks_take_no_quadratic_time() -> None:
    same = ["x"] * 50_000
    assert changed(same, [*same, "x"]) == [(50_000, 50_000, 50_000, 50_001)]
    assert changed(["y", *same, "z"], [*same[:100], "w"])
    numbers = [str(n) for n in range(50_000)]
    assert changed(numbers, numbers[25_000:] + numbers[:25_000]) == [
        (0, 25_000, 0, 0),
        (50_000, 50_000, 25_000, 50_000),
    ]


def test_a_diff_reads_like_any_unified_diff() -> None:
    assert unified("a\nb\nc", "a\nB\nc", "notes/a.md", context=1).text == (
        "--- notes/a.md\n+++ notes/a.md\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\\ No newline at end of file\n"
    )
    assert unified("", "a\n", "new\nname").text == "--- new?name\n+++ new?name\n@@ -0,0 +1 @@\n+a\n"


def test_a_diff_is_bounded_and_says_so() -> None:
    diff = unified("", "line\n" * 10_000, "a", max_bytes=1000)
    assert len(diff.text.encode()) <= 1000
    assert diff.text.endswith("left out\n")
    assert (diff.complete, diff.added, diff.removed) == (False, 10_000, 0)
    assert unified("", "x" * 100, "a", max_bytes=10).text == ""


def test_a_hunk_that_moved_is_found_in_its_one_place() -> None:
    patch = "@@ -10,3 +10,3 @@\n 20\n-21\n+XX\n 22\n"
    patched = apply(NUMBERS, patch)
    assert patched.text == NUMBERS.replace("21\n", "XX\n")
    assert patched.hunks == (Placed(1, 20, 10),)


def test_the_offset_of_a_hunk_carries_on_to_the_next() -> None:
    text = "new\n" * 3 + "a\nb\n" + "c\n" * 5
    patched = apply(text, "@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -4 +4 @@\n-c\n+C\n")
    assert patched.text == "new\n" * 3 + "a\nB\nc\nC\nc\nc\nc\n"


def test_a_hunk_that_fits_in_several_places_is_refused_unless_it_says_which() -> None:
    text = "a\nb\nx\na\nb\n"
    assert "fits in several places (line 1, 4)" in refusal(text, "@@ -3,2 +3,2 @@\n a\n-b\n+c\n")
    assert apply(text, "@@ -4,2 +4,2 @@\n a\n-b\n+c\n").text == "a\nb\nx\na\nc\n"


def test_a_context_that_differs_is_refused_with_hunk_and_line() -> None:
    says = refusal(NUMBERS, "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+one\n@@ -10,2 +10,2 @@\n 10\n-eleven\n+11\n")
    assert "Hunk 2 (line 6 of the patch)" in says
    assert "line 11 of the text (of 40) is not 'eleven'" in says


def test_hunks_out_of_order_do_not_apply() -> None:
    assert "Hunk 2" in refusal(NUMBERS, "@@ -20 +20 @@\n-20\n+x\n@@ -10 +10 @@\n-10\n+y\n")


def test_a_patch_with_lf_keeps_the_crlf_of_the_text() -> None:
    assert apply("a\r\nb\r\nc\r\n", "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+C\n c\n").text == "a\r\nB\r\nC\r\nc\r\n"


def test_a_patch_with_crlf_keeps_the_lf_of_the_text() -> None:
    assert apply("a\nb\n", "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+B\r\n").text == "a\nB\n"


def test_a_text_without_a_last_line_end_keeps_having_none() -> None:
    assert apply("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n").text == "a\nb\nc"
    assert apply("a\nb", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n").text == "a\nc\n"


def test_an_empty_context_line_may_have_lost_its_blank() -> None:
    assert apply("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c").text == "a\n\nc\n"


def test_the_signature_of_a_mailed_patch_is_no_hunk() -> None:
    assert (
        apply("a\n", "From: x\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n-- \n2.40\n").text == "b\n"
    )


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("hello", "no hunk"),
        ("@@ -1 +1\n-1\n+2\n", "no header of a hunk"),
        ("@@ -1,2 +1 @@\n-1\n+2\n", "not the number of lines"),
        ("@@ -1 +1 @@\n-1\n+2\n+3\n", "more than the header of hunk 1 counts"),
        ("@@ -1 +1 @@\n*1\n", "begins neither with"),
        ("@@ -1 +1 @@\n-1\n+2\n--- b\n+++ b\n@@ -1 +1 @@\n-1\n+2\n", "one file at a time"),
        ("@@ -99,0 +99 @@\n+x\n", "beyond the text"),
        ("@@ -1 +1 @@\n-1\n+2\n\\ No newline at end of file\n", None),
    ],
)
def test_a_patch_that_is_none_says_what_is_wrong(patch: str, says: str | None) -> None:
    if says is None:
        assert apply(NUMBERS, patch).text == NUMBERS.replace("1\n", "2\n", 1)
    else:
        assert says in refusal(NUMBERS, patch)
