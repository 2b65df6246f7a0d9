"""Formats read and written: what one says the others say too, and hostile texts are refused with their place (T4)."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.errors import InvalidParams
from octavo.tools.data.csv_text import parse as parse_csv
from octavo.tools.data.formats import parse, write
from octavo.tools.data.profiles import column
from octavo.tools.data.tables import table_of

pytestmark = pytest.mark.seed("T4")

ROWS = [
    {"name": "서울", "count": 3, "share": 0.5, "open": True, "note": 'a, "b"\nc'},
    {"name": "007", "count": -1, "share": 1.25, "open": False, "note": "# no: comment"},
]
KEYS = st.text("abcXYZ가_", min_size=1, max_size=6)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\u2028\u2029\x85\ufeff")
)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | TEXTS | st.floats(allow_nan=False, allow_infinity=False, width=32),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("format", ["json", "jsonl", "yaml", "csv"])
def test_a_table_comes_back_as_it_was(format: str) -> None:
    assert parse(write(ROWS, format), format) == ROWS


@pytest.mark.parametrize("format", ["toml", "xml"])
def test_a_document_comes_back_as_it_was(format: str) -> None:
    value = {"site": {"title": "하루", "pages": {"page": [{"name": "a"}, {"name": "b & <c>"}]}}}
    assert parse(write(value, format), format) == value


@settings(max_examples=40)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_whatever_is_written_is_read_again(value: dict[str, Any]) -> None:
    for format in ("json", "yaml", "toml"):
        assert parse(write(value, format), format) == value, format


@given(st.binary(max_size=200))
def test_whatever_is_read_is_a_value_or_a_refusal(raw: bytes) -> None:
    for format in ("json", "jsonl", "yaml", "toml", "csv", "xml"):
        try:
            json.dumps(parse(raw, format))
        except InvalidParams:
            pass


def test_types_of_a_csv_are_those_of_whole_columns() -> None:
    table = parse_csv("id;n;f;b;mixed;date\n007;1;1.5;true;1;2026-01-02\n008;-2;;FALSE;x;2026-01-03\n")
    assert table.columns == ("id", "n", "f", "b", "mixed", "date")
    assert table.rows == (
        ("007", 1, 1.5, True, "1", "2026-01-02"),
        ("008", -2, None, False, "x", "2026-01-03"),
    )
    assert parse_csv("a,a,\n1,2,3\n").columns == ("a", "a_2", "column3")


@pytest.mark.parametrize(
    ("format", "text", "says"),
    [
        ("json", '{"a": 1, "a": 2}', "stands twice"),
        ("json", "[1, NaN]", "no number of JSON"),
        ("json", '{"a": }', "line 1, column 7"),
        ("jsonl", '{"a": 1}\n{', "line 2"),
        ("yaml", "a: &x [1]\nb: *x\n", "alias"),
        ("yaml", "a: !!python/object:os.system x\n", "tag"),
        ("yaml", "a: 1\na: 2\n", "stands twice; line 2"),
        ("yaml", "a: 1\n---\nb: 2\n", "several documents"),
        ("yaml", "[" * 100, "deeper|flow"),
        ("toml", "a = ", "TOML"),
        ("csv", 'a,b\n"x', "line 2"),
        ("csv", "a\n1,2\n", "row 2 has 2 cells"),
        ("csv", "", "no header"),
        ("xml", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "document type"),
        ("xml", "<a><b></a>", "line 1"),
        ("xml", "<a>" * 300, "deeper"),
    ],
)
def test_a_text_that_is_wrong_or_hostile_is_refused_with_its_place(format: str, text: str, says: str) -> None:
    with pytest.raises(InvalidParams, match=says):
        parse(text.encode(), format, name="x")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidParams, match="no text in UTF-8"):
        parse(b"\xff\xfe", "json")


@pytest.mark.parametrize(
    ("value", "format", "says"),
    [
        ([1], "toml", "holds an object"),
        ({"a": {"b": None}}, "toml", "a.b is null"),
        ({"a b": 1, "c": 2}, "xml", "nothing with the name"),
        ({"a": "\x01", "b": 1}, "xml", "control character"),
        ("text", "csv", "no table"),
    ],
)
def test_what_a_format_cannot_say_is_refused(value: Any, format: str, says: str) -> None:
    with pytest.raises(InvalidParams, match=says):
        write(value, format)


def test_tables_are_found_in_what_is_nearly_one() -> None:
    rows = [{"a": 1}, {"b": 2}]
    assert table_of(rows).dicts() == [{"a": 1, "b": None}, {"a": None, "b": 2}]
    assert table_of({"meta": "x", "items": rows}) == table_of(rows)
    assert table_of({"root": {"item": rows}}) == table_of(rows)
    assert table_of([1, 2]).columns == ("value",)
    assert table_of([[1], [2, 3]]).rows == ((1, None), (2, 3))


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra data is not installed")
def test_parquet_comes_back_as_it_was_and_garbage_is_refused() -> None:
    assert parse(write(ROWS, "parquet"), "parquet") == ROWS
    with pytest.raises(InvalidParams, match="no Parquet"):
        parse(b"PAR1garbage", "parquet")
    with pytest.raises(InvalidParams, match="one type"):
        write([{"a": 1}, {"a": "x"}], "parquet")


def test_lines_of_json_end_where_lines_end_and_not_within_a_text() -> None:
    rows = [{"a": "one\u2028two"}, {"a": "three\x85\x0bfour"}]
    assert parse("".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows).encode(), "jsonl") == rows


@pytest.mark.parametrize("format", ["json", "jsonl"])
def test_half_a_character_is_refused_and_a_whole_one_in_two_escapes_is_read(format: str) -> None:
    assert parse(b'["\\ud83d\\ude00"]', "json") == ["😀"]
    with pytest.raises(InvalidParams, match="half a character"):
        parse(b'{"a": "\\ud83d"}', format)


def test_columns_of_one_name_are_told_apart_and_none_is_lost() -> None:
    assert parse_csv("a,a,a_2,A\n1,2,3,4\n").columns == ("a", "a_3", "a_2", "A")


def test_attributes_of_xml_are_written_or_refused_and_never_lost() -> None:
    assert b'<r x="1"/>' in write({"r": {"@x": 1, "@none": None}}, "xml")
    with pytest.raises(InvalidParams, match="1b"):
        write({"r": {"@1b": "x"}}, "xml")


@pytest.mark.parametrize("values", [[1e999, 3.0], [-1.7e308, 1.7e308, 0.0], [10**400, 1], [2**63, -1], [1e200, 1]])
def test_numbers_of_any_size_have_a_profile(values: list[float]) -> None:
    facts = column(values)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    if facts["type"] != "mixed":  # digits that no number holds are a text
        assert sum(facts["histogram"]["counts"]) == len(values) - facts["missing"]
