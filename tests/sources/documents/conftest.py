"""A converter for the documents of a test, and what its processes look like from outside."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from octavo.sources._shared.documents.converter import Converter


@pytest.fixture
async def converter() -> AsyncIterator[Converter]:
    async with Converter() as opened:
        yield opened
    assert workers() == []


def workers() -> list[int]:
    """The processes that this one started to read documents, dead and unreaped ones too."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        for pid in map(int, _said(task / "children").split()):
            if not (said := _said(Path(f"/proc/{pid}/cmdline"))) or b"documents.worker" in said:
                found.append(pid)
    return found


def _said(file: Path) -> bytes:
    """Of a thread that ended while it was looked for, or a process that somebody else reaped, nothing is said."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


async def ended(pid: int) -> None:
    """Waits for the process to end."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(descriptor, over.set)
    try:
        async with asyncio.timeout(10):
            await over.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
