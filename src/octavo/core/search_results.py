"""The results of a ranked search, as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from octavo.core.ref import Ref
from octavo.core.values import NOTHING


class Finding(Struct, frozen=True, kw_only=True):
    """One document that was found. `marks` are the places in the snippet at which it says what was asked."""

    ref: Ref
    title: str
    score: float
    snippet: str
    marks: tuple[tuple[int, int], ...] = ()
    version: str = ""
    metadata: Mapping[str, Any] = NOTHING
    partial: bool = False  # the document is longer than what is searched of it


class Findings(Struct, frozen=True):
    """One page, best first. There is no total: it is not known without looking at everything."""

    items: tuple[Finding, ...]
    cursor: str | None = None
    corrected: Mapping[str, str] = NOTHING  # words asked for, and what was meant
    ignored: int = 0  # words beyond those that one query may have
    building: bool = False  # not everything was looked at yet since the server started
    seen: int = 0  # documents that may be seen and were asked about, as far as they are indexed
    limited: bool = False  # there is more than may be searched at all
    partial: int = 0  # documents that may be seen and were asked about, of which not all of the text is indexed
    unread: int = 0  # the same, of which none is: they are called texts, and their bytes are none
    unlisted: tuple[str, ...] = ()  # schemes of which nothing is indexed, for they could not be listed yet
    cut: bool = False  # time was up before everything that the index named was looked at
