"""Repositories for one test."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.git.clones import Clone


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


@pytest.fixture
def cloned(tmp_path: Path) -> Callable[..., Clone]:
    return lambda name, *options: Clone(tmp_path / name, *options)
