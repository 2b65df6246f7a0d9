"""Real clients by the command of `make clients`, which judges what they did: three of them here, all of them there."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.e2e.harness import LIMIT, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.seed("B11")]


@pytest.mark.parametrize("client", ("fastmcp", "TypeScript SDK", "mcp-use"))
def test_a_client_does_over_both_transports_what_it_can(client: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "conformance" / "run_clients.py", "--only", client],
        capture_output=True,
        encoding="utf-8",
        timeout=10 * LIMIT,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
