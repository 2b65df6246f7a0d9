"""Writes one line to the log for each request."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("octavo.requests")


def told(*others: Callable[[bytes], None] | None) -> Callable[[bytes], None] | None:
    """Whoever hears of every record: the log too where it is told of requests. None where nobody does."""
    hear = [*filter(None, others), *([_log] if logger.isEnabledFor(logging.INFO) else [])]
    if len(hear) < 2:
        return hear[0] if hear else None

    def tell(record: bytes) -> None:
        for one in hear:
            one(record)

    return tell


def _log(record: bytes) -> None:
    """What a request was made of has records below its own, and no lines."""
    facts: dict[str, Any] = json.loads(record)
    if "parent" in facts:
        return
    words = [facts.get("who"), facts.get("op"), facts.get("uri"), facts.get("outcome")]
    took = f" {facts['us'] / 1000:.1f} ms" if "us" in facts else ""
    logger.info("%s%s", " ".join(_printable(str(word)) for word in words if word), took)


def _printable(text: str) -> str:
    """A client chooses addresses, and none begins a line of its own."""
    return text if text.isprintable() else json.dumps(text)
