"""What a ranked search answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from octavo.core.model import NOTHING
from octavo.core.ref import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One document that was found. `marks` are the places in the snippet at which it says what was asked."""

    ref: Ref
    title: str
    score: float
    snippet: str
    marks: tuple[tuple[int, int], ...] = ()
    version: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    partial: bool = False  # the document is longer than what is searched of it


@dataclass(frozen=True, slots=True)
class Findings:
    """One page, best first. There is no total: it is not known without looking at everything."""

    items: tuple[Finding, ...]
    cursor: str | None = None
    corrected: Mapping[str, str] = field(default_factory=lambda: NOTHING)  # words asked for, and what was meant
    ignored: int = 0  # words beyond those that one query may have
    building: bool = False  # not everything was looked at yet since the server started
    limited: bool = False  # there is more than may be searched at all
