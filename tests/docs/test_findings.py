"""What was found in earlier versions: each line of the page says what closes it and which test holds it closed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE, TITLE = "docs/security-model.md", "What was found, and what closes it"
_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")

Row = tuple[str, ...]


@pytest.fixture(scope="module")
def rows(book: Any) -> list[Row]:
    section = book.prose(PAGE).partition(f"## {TITLE}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:]]


def test_each_finding_says_what_held_it_open_and_what_closes_it(rows: list[Row]) -> None:
    assert len(rows) > 30
    assert [row for row in rows if len(row) != 4 or not all(row)] == []
    assert len({row[0] for row in rows}) == len(rows)


def test_each_finding_has_tests_and_each_of_them_is_there(rows: list[Row], root: Path) -> None:
    for what, *_, tests in rows:
        named = _TEST.findall(tests)
        assert named and ", ".join(f"`{file}::{name}`" for file, name in named) == tests, what
        for file, name in named:
            text = (root / "tests" / file).read_text(encoding="utf-8")
            assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{file}::{name}"
