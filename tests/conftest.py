import os

import hypothesis
import pytest

os.environ["LC_ALL"] = "C.UTF-8"  # messages in English, wherever the tests run

# A slow machine is no counterexample.
hypothesis.settings.register_profile("octavo", deadline=None)
hypothesis.settings.load_profile("octavo")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
