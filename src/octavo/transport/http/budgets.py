"""Limits requests from unknown callers, by their network address."""

from __future__ import annotations

import ipaddress
from typing import Final

from octavo.core.clock import SystemClock
from octavo.core.errors import RateLimited
from octavo.core.memo import Bounded

ADDRESSES: Final = 4096  # that are remembered; the one that was heard of longest ago makes room


class Budgets:
    """One of a second for each route and address; what is not used is lost."""

    def __init__(self) -> None:
        # Requests, and when that was so.
        self._left = Bounded[tuple[str, str], tuple[float, float]](ADDRESSES, at_once=1)

    def take(self, path: str, address: str, rate: float) -> None:
        """Raises RateLimited where there is nothing left."""
        key, now = (path, network(address)), SystemClock.monotonic()
        most = max(1.0, rate)
        left, since = self._left.get(key, (most, now))
        left = min(most, left + (now - since) * rate)
        self._left.keep(key, ((left - 1 if left >= 1 else left), now))
        if left < 1:
            raise RateLimited(
                "Too many requests from your address: try again later", retry_after=(1 - left) / rate, limit="address"
            )


def network(address: str) -> str:
    """Of IPv6 the part that is given to one site: within it everybody has as many addresses as he likes."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.IPv6Network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
