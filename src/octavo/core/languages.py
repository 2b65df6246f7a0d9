"""Chooses the language of a prompt that is nearest to what the client asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_MAX_ACCEPTED = 10
_LONGEST = 35  # characters of a tag that are looked at, as the standard recommends


def is_tag(text: str) -> bool:
    return _TAG.fullmatch(text) is not None


def chosen(offered: Sequence[str], wanted: Sequence[str], preferred: Sequence[str]) -> str:
    """One of `offered`: the nearest to the first of `wanted` that has one, then of `preferred`, then the first.

    `ko-KR` is answered with `ko-KR`, else with `ko`, else with any other Korean.
    """
    for tag in (*wanted, *preferred):
        found = _nearest(offered, tag[:_LONGEST].lower())
        if found is not None:
            return found
    return offered[0]


def accepted(header: str) -> list[str]:
    """The languages of an Accept-Language header, the most wanted first."""
    weighed: list[tuple[float, str]] = []
    for part in header.split(",")[:_MAX_ACCEPTED]:
        tag, _, parameter = part.strip().partition(";")
        weight = parameter.strip().removeprefix("q=")
        try:
            value = float(weight) if parameter else 1.0
        except ValueError:
            continue
        if value > 0 and is_tag(tag.strip()):
            weighed.append((-value, tag.strip()))
    return [tag for _, tag in sorted(weighed, key=lambda one: one[0])]


def _nearest(offered: Sequence[str], tag: str) -> str | None:
    known = {one.lower(): one for one in offered if one}
    while tag:
        if tag in known:
            return known[tag]
        if "-" not in tag:
            return next((one for low, one in known.items() if low.startswith(f"{tag}-")), None)
        tag = tag.rpartition("-")[0]
    return None
