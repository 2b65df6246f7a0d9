"""Without its extra a store says which one it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("driver", "made", "extra"),
    [
        ("asyncpg", "from octavo.stores.postgres import PostgresStore as Store", "octavo[postgres]"),
        ("redis", "from octavo.stores.redis import RedisShared as Store", "octavo[redis]"),
    ],
)
def test_a_store_without_its_driver_names_the_extra(driver: str, made: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{driver!r}] = None
{made}
from octavo.core.errors import SourceUnavailable
try:
    Store("unix://user:password@host")
except SourceUnavailable as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", timeout=60, check=False
    )
    assert extra in done.stdout, done.stderr
    assert "password" not in done.stdout
