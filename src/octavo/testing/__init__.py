"""What our tests and those of a plugin's author share. The only room that imports pytest; shipped.

from octavo.testing import SourceSuite

class TestMySource(SourceSuite):
    @pytest.fixture
    def source(self):
        return MySource(...)        # holding exactly SourceSuite.TREE
"""

# ruff: noqa: E402  (the registration comes first)

import pytest

# Before the suites are imported, or their assertions explain nothing.
pytest.register_assert_rewrite(
    "octavo.testing.base", "octavo.testing.source_suite", "octavo.testing.fault_suite", "octavo.testing.tool_suite",
    "octavo.testing.store_suite", "octavo.testing.store_fault_suite",
)  # fmt: skip

from octavo.core.clock import FrozenClock
from octavo.testing.base import Suite, Watched
from octavo.testing.fault_suite import FaultSuite
from octavo.testing.faults import FAULTS, Fault, broken_calls, garbled, misbehave
from octavo.testing.proxy import Proxy
from octavo.testing.source_suite import SourceSuite
from octavo.testing.store_fault_suite import StoreFaultSuite
from octavo.testing.store_suite import StoreSuite
from octavo.testing.tool_suite import ToolSuite

__all__ = [
    "FAULTS",
    "Fault",
    "FaultSuite",
    "FrozenClock",
    "Proxy",
    "SourceSuite",
    "StoreFaultSuite",
    "StoreSuite",
    "Suite",
    "ToolSuite",
    "Watched",
    "broken_calls",
    "garbled",
    "misbehave",
]
