"""What every test over the world of `world.py` stands on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gate.world import frozen_time, lay_out

from octavo.core.clock import FrozenClock


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("world"))


@pytest.fixture
def clock() -> Iterator[FrozenClock]:
    with frozen_time() as clock:
        yield clock


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": True}  # as in production
