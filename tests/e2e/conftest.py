from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.harness import Place, node_clients


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder to serve, with one Korean name in it, and a home and a state directory of its own."""
    made = Place(tmp_path)
    made.edit("docs/guide.md", "# Guide\n")
    made.edit("docs/한국/소개.md", "안녕하세요, 옥타보입니다.\n")
    made.edit("notes/plan.txt", "plan\n")
    return made


@pytest.fixture(scope="session")
def clients() -> Path:
    """The folder with the Node clients of conformance/node/clients installed."""
    return node_clients()
