"""Cursors inside the house: what was written is read again, and anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core import cursor
from octavo.core.errors import InvalidParams

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_a_path_is_read_as_it_was_written(names: list[str]) -> None:
    written = cursor.of_path(names)
    assert cursor.path_of(written) == tuple(names)
    assert written.isascii() and "+" not in written and "/" not in written


@given(st.integers(0, 9), st.lists(NAMES, max_size=5))
def test_a_place_is_read_as_it_was_written(root: int, names: list[str]) -> None:
    assert cursor.place_of(cursor.of_place(root, names), "no") == (root, tuple(names))


@pytest.mark.parametrize(
    "given", ["%", cursor.token("[]"), cursor.token("3"), cursor.token('["a"]'), cursor.token("[0,1]")]
)
def test_what_is_no_place_is_refused(given: str) -> None:
    with pytest.raises(InvalidParams, match="elsewhere"):
        cursor.place_of(given, "elsewhere")


def test_the_forms_are_those_of_cursors_that_clients_still_carry() -> None:
    assert cursor.of_path(["a", "b c"]) == "YS9iIGM="
    assert cursor.of_place(1, ["a", "é"]) == "WzEsICJhIiwgIlx1MDBlOSJd"
    assert cursor.joined("sop", None, 3, "é") == '["sop",null,3,"é"]'


@given(st.text(max_size=20), st.integers(), st.none() | st.text(max_size=20))
def test_parts_are_read_as_they_were_written(text: str, number: int, maybe: str | None) -> None:
    written = cursor.joined(text, number, maybe)
    assert cursor.parts_of(written, str, int, (str, type(None)), refusal="no") == [text, number, maybe]


@pytest.mark.parametrize("given", ["%", "a b", "é", "a", "/w==", "_w=="])
def test_what_is_no_path_is_refused(given: str) -> None:
    with pytest.raises(InvalidParams, match="not one of this source"):
        cursor.path_of(given)


@pytest.mark.parametrize(
    "given", [None, "", "{}", "3", "null", '["a"]', '["a",1,2]', '["a","1"]', '[1,"a"]', "[" * 100_000, "\ud800"]
)
def test_parts_of_another_kind_are_refused_with_a_reason(given: str | None) -> None:
    with pytest.raises(InvalidParams, match="list again") as refused:
        cursor.parts_of(given, str, int, refusal="list again")
    assert refused.value.data["reason"] == "invalid_cursor"
