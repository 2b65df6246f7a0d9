"""The audit ledger of a process, and whoever looks after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.config.model import Audit
from octavo.stores.ledger import FileLedger, MemoryLedger, Told
from octavo.stores.state import StateDirectory

if TYPE_CHECKING:
    from octavo.stores.keeper import Keeper


class Books:
    """Opened once, closed once; closing without opening is fine."""

    def __init__(self, options: Audit, state: StateDirectory, told: Told | None = None) -> None:
        self._keeper: Keeper | None = None
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
            kept=second is not None,
            told=told,
        )
        if second is None and options.max_age is None:
            return
        from octavo.stores.checkpoints import CheckpointFile  # here: a server that needs neither starts sooner
        from octavo.stores.keeper import HOUR, Keeper

        signed = None if second is None else CheckpointFile(second.path, state.key("checkpoint"), self.ledger.chain)
        self._keeper = Keeper(
            self.ledger,
            state.audit,
            every=HOUR if second is None else second.every,
            max_bytes=options.keep * options.rotate,
            max_age=options.max_age,
            checkpoints=signed,
        )

    def open(self) -> None:
        if self._keeper is not None:
            self._keeper.start()

    def close(self) -> None:
        try:
            self.ledger.close()
        finally:
            if self._keeper is not None:
                self._keeper.close()
