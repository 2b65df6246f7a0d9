"""What is told adds up to what is there, whatever happens to the tree and to the kernel's queue."""

import shutil
from pathlib import Path

import pytest
from tests.sources.file.mutations import Wrong, prove

from octavo.sources._shared.fs import syscalls

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O10", "B3")]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.skipif(not Path("/proc/sys/fs/inotify").is_dir(), reason="the queue that overflows is inotify's")
async def test_random_mutations_and_an_overflow_lose_nothing(tmp_path: Path) -> None:
    figures = await prove(tmp_path, mutations=1_500, seed=7, overflows=1)
    assert figures.overflows == 1
    assert figures.quiet_points > 1
    assert min(figures.told[kind] for kind in ("created", "updated", "deleted", "renamed")) > 0


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.skipif(not Path("/proc/sys/fs/inotify").is_dir(), reason="the queue that overflows is inotify's")
async def test_the_proof_bites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that does not hear of the overflow loses changes, and that is seen."""
    monkeypatch.setattr(syscalls, "IN_Q_OVERFLOW", 0)
    with pytest.raises(Wrong):
        await prove(tmp_path, mutations=200, seed=7, overflows=1)
