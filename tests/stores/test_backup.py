"""A backup beside writers: what it has of the audit log verifies, wherever its files were being written."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from octavo.stores.audit.ledger import FileLedger, verify
from octavo.stores.backup.pack import pack
from octavo.stores.backup.unpack import opened, staged
from octavo.stores.memory import MemoryStore
from octavo.stores.state import StateDirectory

pytestmark = pytest.mark.anyio


class Writing:
    """A chain that grows, goes on in other files and loses its oldest, in a thread of its own."""

    def __init__(self, ledger: FileLedger) -> None:
        self._ledger, self._ends = ledger, threading.Event()
        self._turned = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def wait(self) -> None:
        assert self._turned.acquire(timeout=60)

    def end(self) -> None:
        self._ends.set()
        self._thread.join(60)

    def _write(self) -> None:
        while not self._ends.is_set():
            for _ in range(3):
                self._ledger.append(b'{"op":"read","text":"%b"}' % (b"x" * 200))
            self._ledger.flush()
            self._turned.release()


async def test_the_log_of_a_backup_beside_writers_verifies(tmp_path: Path) -> None:
    state = StateDirectory.open(tmp_path / "state")
    assert state.path is not None and state.audit is not None
    ledgers = [FileLedger(state.audit, state.key("audit"), max_bytes=4_096, keep=3) for _ in range(2)]
    writers = [Writing(ledger) for ledger in ledgers]
    try:
        for turn in range(30):
            for writer in writers:
                writer.wait()
            if turn == 20:
                writers[0].end()
                ledgers[0].close()
            file = tmp_path / f"{turn}.tar"
            await pack(file, MemoryStore(), state.path, replace=False)
            with opened(file) as backup, staged(tmp_path / f"{turn}") as staging:
                backup.copy_to(staging)
            report = verify(tmp_path / f"{turn}/audit", state.key("audit"))
            assert report.ok, report
            assert len(report.chains) == 2 and all(chain.records for chain in report.chains)
            if turn == 20:
                del writers[0]
    finally:
        for writer in writers:
            writer.end()
        for ledger in ledgers:
            ledger.close()
