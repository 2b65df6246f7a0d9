"""What is done for an audit chain beside its writing, now and then, in a thread of its own: checkpoints to a
second place, and deleting what is too old.

The second place may be slow, or away for a while; no request ever waits for it. While it is away nothing is
deleted, because a deletion that no checkpoint announces looks like tampering.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from pathlib import Path

from octavo.core.clock import Clock, SystemClock
from octavo.stores.audit.checkpoints import CheckpointFile
from octavo.stores.audit.ledger import FileLedger, Head
from octavo.stores.audit.retention import forget_chains, settled_before

logger = logging.getLogger(__name__)

DAY, HOUR = 86_400.0, 3_600.0
PATIENCE = 5.0  # seconds that the end of the process waits for the last checkpoint


class Keeper:
    """Begins with `start`, ends with `close` after the ledger was closed."""

    def __init__(
        self,
        ledger: FileLedger,
        directory: Path,
        *,
        every: float,
        max_bytes: int,
        max_age: float | None = None,
        min_age: float = 0.0,
        checkpoints: CheckpointFile | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._ledger, self._directory, self._checkpoints = ledger, directory, checkpoints
        self._every, self._max_bytes, self._max_age, self._min_age = every, max_bytes, max_age, min_age
        self._clock = clock or SystemClock()
        self._forgets_at = self._clock.monotonic()
        self._signed: Head | None = None
        self._away = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="octavo-audit", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """The last checkpoint is of the closed chain."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self.look()
        self.look()

    def look(self) -> None:
        """One round. What fails is tried again in the next."""
        if self._max_age is not None:
            self._ledger.rotate(older=min(DAY, self._max_age))
        head = self._ledger.head()
        if head is None:
            return
        try:
            if self._checkpoints is not None and head != self._signed:
                self._sync(head)
                self._checkpoints.head(head)
            self._signed, self._away = head, False
            self._ledger.prune(head.first)
            if not head.closed:
                self._forget()
        except OSError as error:
            if not self._away:
                logger.warning("The audit log has no new checkpoint: %s", error.strerror or error)
            self._away = True

    def _sync(self, head: Head) -> None:
        """A checkpoint vouches for what a power cut leaves: otherwise it would accuse the power cut."""
        for part in range(head.first if self._signed is None else self._signed.part, head.part + 1):
            with contextlib.suppress(FileNotFoundError):
                file = os.open(self._directory / self._ledger.file_name(part), os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(file)
                finally:
                    os.close(file)

    def _forget(self) -> None:
        if self._clock.monotonic() < self._forgets_at:
            return
        now = self._clock.wall()
        before = None if self._max_age is None else now - self._max_age
        settled = settled_before(now, self._min_age)
        forget_chains(self._directory, max_bytes=self._max_bytes, settled=settled, before=before, tell=self._forgot)
        self._forgets_at = self._clock.monotonic() + HOUR

    def _forgot(self, chain: str, written: float) -> None:
        if self._checkpoints is not None:
            self._checkpoints.forgot(chain)
        self._ledger.forgot(chain, written)
