"""Files of tasks that are closed when their test ends, whatever it did to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from octavo.stores.tasks import TaskFile

_files: list[TaskFile] = []


def task_file(state: Path | None, **options: Any) -> TaskFile:
    _files.append(TaskFile(state, **options))
    return _files[-1]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while _files:
        _files.pop().close()
