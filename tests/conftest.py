import hypothesis
import pytest

# A slow machine is no counterexample.
hypothesis.settings.register_profile("octavo", deadline=None)
hypothesis.settings.load_profile("octavo")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
