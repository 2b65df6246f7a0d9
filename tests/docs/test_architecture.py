"""docs/architecture.md and the tree: what it says is there is there, and what it says comes has not come yet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "octavo"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[tuple[str, str]]:
    _, _, below = PAGE.partition(f"\n## {heading}\n")
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert table is not None, f"there is no table below {heading!r}"
    cells = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in table[0].splitlines()]
    return [(one[0], one[1]) for one in cells[2:]]


def named(cell: str) -> list[str]:
    """The modules and folders in it; a name in capitals stands for any."""
    return [one.replace("NAME", "*") for one in re.findall(r"`([a-z][\w/]*(?:/NAME)?[\w/]*(?:\.py)?)`", cell)]


def is_there(place: str) -> bool:
    return any(one.suffix == ".py" or any(one.rglob("*.py")) for one in PACKAGE.glob(place))


THERE = [place for _, cell in rows("Where a thing is") for place in named(cell)]
COMING = ("sources/db", "sources/http", "sources/metrics", "sources/notion", "sources/drive", "feed/webhooks", "client",
          "gateway", "agent", "console")  # fmt: skip


@pytest.mark.parametrize("place", THERE)
def test_where_a_thing_is_said_to_be_it_is(place: str) -> None:
    assert is_there(place)


@pytest.mark.parametrize("place", COMING)
def test_what_is_said_to_come_is_not_there_yet(place: str) -> None:
    """Whoever builds it moves its row into the tables of what is there."""
    assert any(f"`{place}`" in cell for _, cell in rows("Where what comes will stand"))
    assert not is_there(place) and not is_there(f"{place}.py")


def test_every_room_is_named_for_something_in_it() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    said = {place.split("/")[0] for place in THERE}
    assert rooms - said == {"cli", "testing"}, "commands and suites have pages of their own"
