"""The audit ledger of a process, and whoever looks after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.config.model import Audit
from octavo.core.clock import SystemClock
from octavo.stores.audit.growth import Growth, growth
from octavo.stores.audit.ledger import FileLedger, MemoryLedger, Told
from octavo.stores.state import StateDirectory

if TYPE_CHECKING:
    from octavo.stores.audit.keeper import Keeper

LOOK = 60.0  # seconds between two looks at how large the log is


class Books:
    """Opened once, closed once; closing without opening is fine."""

    def __init__(self, options: Audit, state: StateDirectory, told: Told | None = None) -> None:
        self._keeper: Keeper | None = None
        self._state, self._place, self._planned = state, state.audit, options.keep * options.rotate
        self._held: Growth | None = None
        self._strange = 0
        self._looks_at = 0.0
        if state.audit is None:
            self.ledger: FileLedger | MemoryLedger = MemoryLedger(told=told)
            return
        second = options.checkpoints
        self.ledger = FileLedger(
            state.audit,
            state.key("audit"),
            sync=options.sync,
            max_bytes=options.rotate,
            keep=options.keep,
            fail_closed=options.fail_closed,
            max_age=options.max_age,
            min_age=options.least_age,
            kept=second is not None,
            told=told,
        )
        if second is None and options.max_age is None:
            return
        from octavo.stores.audit.checkpoints import CheckpointFile  # here: a server that needs neither starts sooner
        from octavo.stores.audit.keeper import HOUR, Keeper

        signed = None if second is None else CheckpointFile(second.path, state.key("checkpoint"), self.ledger.chain)
        self._keeper = Keeper(
            self.ledger,
            state.audit,
            every=HOUR if second is None else second.every,
            max_bytes=options.keep * options.rotate,
            max_age=options.max_age,
            min_age=options.least_age,
            checkpoints=signed,
        )

    def held(self) -> Growth | None:
        """Where the log is larger than `keep` files because they are too young to be deleted. Looked at rarely."""
        self._look()
        return self._held

    def strange(self) -> int:
        """How many chains there are that were sealed with a secret which is lost. Looked at rarely."""
        self._look()
        return self._strange

    def _look(self) -> None:
        now = SystemClock.wall()
        if self._place is not None and now >= self._looks_at:
            self._looks_at = now + LOOK
            try:
                found = growth(self._place, now)
                self._held = found if found.size > self._planned else None
            except OSError:  # what is wrong with it is said elsewhere
                self._held = None
            self._strange = self._state.strange_chains()

    def open(self) -> None:
        if self._keeper is not None:
            self._keeper.start()

    def close(self) -> None:
        try:
            self.ledger.close()
        finally:
            if self._keeper is not None:
                self._keeper.close()
