"""docs/words.md and the tree: where modules were, and the words that are the house's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "octavo"
PAGE = (ROOT / "docs" / "words.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[tuple[str, str]]:
    """The table below a heading, without its head."""
    _, _, below = PAGE.partition(f"\n{heading}\n")
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert table is not None, f"there is no table below {heading!r}"
    cells = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in table[0].splitlines()]
    return [(one[0], one[1]) for one in cells[2:]]


MOVED = rows("## Where modules were")
WORDS = rows("And what Octavo's own words mean:")


def is_there(place: str) -> bool:
    """A folder is one that has modules: what a compiler left behind does not count."""
    path = PACKAGE / place.strip("`")
    return path.is_file() or any(path.rglob("*.py"))


def test_what_moved_is_where_the_table_says() -> None:
    assert [new for _, new in MOVED if not is_there(new)] == []


def test_nothing_stands_where_it_was_any_more() -> None:
    taken = {new for _, new in MOVED}  # by what came there from elsewhere
    assert [old for old, _ in MOVED if old not in taken and is_there(old)] == []


@pytest.mark.parametrize("word", [word for word, _ in WORDS])
def test_a_word_of_the_house_is_used_in_its_code(word: str) -> None:
    names = [one.strip(" `") for one in word.split(",")]
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    for name in names:
        assert any(re.search(rf"\b{re.escape(name)}", text, re.IGNORECASE) for text in texts), name


# Words that a newcomer has to be told, since they mean something of their own here.
OWN = ("fold", "lane", "house", "composition", "dispatch", "trail", "seam", "narrowing", "flight", "stamp", "room")


@pytest.mark.parametrize("word", OWN)
def test_what_is_called_otherwise_than_elsewhere_is_explained(word: str) -> None:
    assert any(word in [one.strip(" `") for one in said.split(",")] for said, _ in WORDS)
