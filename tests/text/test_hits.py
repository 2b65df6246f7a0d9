"""The lines of a text that match: a pure function on the text that may be shown."""

from octavo.sources.file.search import ContentQuery, Hit, matches
from octavo.text.hits import MAX_LINE_CHARACTERS

TEXT = "one\r\ntwo 예산 two\nthree\n\nfive two\n"


def test_each_line_that_matches_is_told_once_with_line_and_column() -> None:
    assert matches(TEXT, ContentQuery(text="two")) == [
        Hit(2, 1, "two 예산 two", (), ()),
        Hit(5, 6, "five two", (), ()),
    ]
    assert matches(TEXT, ContentQuery(text="예산")) == [Hit(2, 5, "two 예산 two", (), ())]
    assert matches(TEXT, ContentQuery(text="산 two", word=False)) == [Hit(2, 6, "two 예산 two", (), ())]


def test_a_word_begins_at_itself_and_not_before() -> None:
    assert matches("-two twos", ContentQuery(text="two", word=True)) == [Hit(1, 2, "-two twos", (), ())]


def test_context_ends_with_the_text() -> None:
    assert matches(TEXT, ContentQuery(text="one|five", regex=True), context=2) == [
        Hit(1, 1, "one", (), ("two 예산 two", "three")),
        Hit(5, 1, "five two", ("three", ""), ()),
    ]


def test_empty_lines_can_match_and_what_follows_the_last_end_is_none() -> None:
    assert [hit.line for hit in matches(TEXT, ContentQuery(text="^$", regex=True))] == [4]
    assert [hit.line for hit in matches("\n", ContentQuery(text="x*", regex=True))] == [1]
    assert matches("", ContentQuery(text="x*", regex=True)) == []


def test_a_long_line_is_cut_around_the_match() -> None:
    line = "x" * 5000 + "needle" + "y" * 5000
    [hit] = matches(f"{line}\n{line}"[: len(line)], ContentQuery(text="needle"), context=1)
    assert hit.column == 5001 and "needle" in hit.text
    assert hit.text.startswith("…x") and hit.text.endswith("y…") and len(hit.text) == MAX_LINE_CHARACTERS + 2


def test_hits_are_bounded() -> None:
    assert len(matches("a\n" * 5000, ContentQuery(text="a"), limit=7)) == 7
