"""How log lines are written: a secret that a source or a library put into one does not get out by it either."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from octavo.pipeline.veil import Veil


class Discreet(logging.Formatter):
    """Redacts the whole line, its traceback included. The rules are loaded with the first line."""

    def __init__(self, layout: str) -> None:
        super().__init__(layout)
        self._veil: Veil | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._veil is None:
            from octavo.pipeline.veil import Veil

            self._veil = Veil(os.urandom(32), personal=("identity",))
        return self._veil.text(super().format(record))
