"""How far long work is, on one line of a terminal that is gone when the work is done. Nobody else sees any of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final
from unicodedata import east_asian_width

from octavo.cli._words import said
from octavo.core.clock import SystemClock

PAUSE: Final = 0.2  # seconds: quick work shows nothing at all, and slow work not more than anybody reads
_BEGIN: Final = "\r\x1b[K"
_USUAL: Final = 80  # columns of a terminal that does not say

Shows = Callable[..., None]


@contextmanager
def progress(key: str) -> Generator[Shows]:
    """What it gives is called with the placeholders of the sentence, as often as there is news."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _unseen
        return
    last, shown = SystemClock.monotonic(), False

    def show(**values: Any) -> None:
        nonlocal last, shown
        now = SystemClock.monotonic()
        if now - last >= PAUSE:
            last, shown = now, True
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL
            sys.stderr.write(_BEGIN + fitting(said(f"progress.{key}", **values), columns))
            sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write(_BEGIN)
            sys.stderr.flush()


def fitting(text: str, columns: int) -> str:
    """As much as stands on one line: a character of Hangul takes two columns."""
    width = 0
    for at, character in enumerate(text):
        width += 2 if east_asian_width(character) in "WF" else 1
        if width >= columns:
            return text[:at]
    return text


def _unseen(**_: Any) -> None:
    """Nobody sits at a terminal."""
