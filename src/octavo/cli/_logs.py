"""How log lines are written: a secret that a source or a library put into one does not get out by it either."""

from __future__ import annotations

import json
import logging
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

from octavo.cli._screen import laid_out
from octavo.core.clock import iso
from octavo.core.printable import visible

if TYPE_CHECKING:
    from types import TracebackType

    from octavo.pipeline.redact.redactor import Redactor


logger = logging.getLogger(__name__)


def configure(level: str = "warning", shape: str = "text") -> None:
    """Log lines on stderr, as text or one JSON object each; and what nobody caught as one of them. Every command
    begins with it; one that has options for it calls it again. Whoever has set up logging before keeps it."""
    layout = "octavo: %(levelname)s: %(name)s: %(message)s"
    formatter = Structured(layout) if shape == "json" else Discreet(layout)
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler(sys.stderr))
        root.handlers[0].setFormatter(formatter)
        sys.excepthook = _uncaught
    for handler in root.handlers:
        if isinstance(handler.formatter, Discreet):
            handler.setFormatter(formatter)
            root.setLevel(level.upper())


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logger.critical("An error that nobody caught", exc_info=(kind, error, trace))


def hidden(text: str) -> str:
    """Without secrets. The rules are loaded with the first text."""
    return _redactor().text(text)


@cache
def _redactor() -> Redactor:
    from octavo.pipeline.redact.redactor import Redactor

    return Redactor(os.urandom(32), personal=("identity",))


class Discreet(logging.Formatter):
    """Redacts the whole line, its traceback included."""

    def format(self, record: logging.LogRecord) -> str:
        return laid_out(hidden(super().format(record)))


class Structured(Discreet):
    """One JSON object a line: time, level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        facts = {
            "time": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": hidden(record.getMessage()),
        }
        if record.exc_info:
            facts["traceback"] = hidden(self.formatException(record.exc_info))
        return visible(json.dumps(facts, ensure_ascii=False))
