"""How log lines are written: a secret that a source or a library put into one does not get out by it either."""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import TYPE_CHECKING

from octavo.core.clock import iso

if TYPE_CHECKING:
    from octavo.pipeline.veil import Veil


def configure(level: str, shape: str) -> None:
    """Log lines on stderr: as text, or one JSON object each."""
    handler = logging.StreamHandler(sys.stderr)
    layout = "octavo: %(levelname)s: %(name)s: %(message)s"
    handler.setFormatter(Structured(layout) if shape == "json" else Discreet(layout))
    logging.basicConfig(level=level.upper(), handlers=[handler])


class Discreet(logging.Formatter):
    """Redacts the whole line, its traceback included. The rules are loaded with the first line."""

    def __init__(self, layout: str) -> None:
        super().__init__(layout)
        self._veil: Veil | None = None

    def format(self, record: logging.LogRecord) -> str:
        return self._hidden(super().format(record))

    def _hidden(self, text: str) -> str:
        if self._veil is None:
            from octavo.pipeline.veil import Veil

            self._veil = Veil(os.urandom(32), personal=("identity",))
        return self._veil.text(text)


class Structured(Discreet):
    """One JSON object a line: time, level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        facts = {
            "time": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._hidden(record.getMessage()),
        }
        if record.exc_info:
            facts["traceback"] = self._hidden(self.formatException(record.exc_info))
        return json.dumps(facts, ensure_ascii=False)
