"""A small file system that fills up for real: memory, mounted where nobody but the test sees it.

It is mounted in namespaces of its own, which needs no root where the kernel gives them to everybody. Programs are
started inside by `enter`; the test looks at the files by `seen`.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_MOUNT = 'mount -t tmpfs -o "size=$2,mode=700" tmpfs "$1" && echo mounted && read -r _'


class SmallDisk:
    def __init__(self, place: Path, keeper: subprocess.Popen[str]) -> None:
        self._place, self._keeper = place, keeper

    @property
    def enter(self) -> list[str]:
        """Before a command: where it runs."""
        return ["nsenter", f"--target={self._keeper.pid}", "--user", "--mount", "--preserve-credentials", "--"]

    def seen(self) -> Path:
        """The mounted folder, as it is seen from outside."""
        return Path(f"/proc/{self._keeper.pid}/root{self._place}")

    def fill(self, *, leave: int = 0) -> None:
        """Until nothing more fits, but for `leave` bytes."""
        ballast = self.seen() / "ballast"
        with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        if leave:
            with ballast.open("ab") as file:
                file.truncate(ballast.stat().st_size - leave)

    def empty(self) -> None:
        (self.seen() / "ballast").unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(place: Path, *, size: str = "2m") -> Iterator[SmallDisk]:
    place.mkdir(parents=True, exist_ok=True)
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        pytest.skip("there is no unshare or nsenter on this machine, with which a small file system is mounted")
    command = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c", _MOUNT, "bash", str(place), size]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdin is not None and keeper.stdout is not None and keeper.stderr is not None
        try:
            if keeper.stdout.readline() != "mounted\n":
                pytest.skip(f"this machine gives no namespaces to mount in: {keeper.stderr.read().strip()}")
            yield SmallDisk(place, keeper)
        finally:
            keeper.stdin.close()
            keeper.wait(30)
