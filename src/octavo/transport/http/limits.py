"""What is limited at the door of HTTP: requests from one network address, and the bytes of request bodies in memory.

The limits of a principal are a fold, `pipeline/quota.py`.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from octavo.core.clock import SystemClock
from octavo.core.errors import RateLimited
from octavo.core.memo import Bounded
from octavo.core.sizes import MIB

OF_ONE = 64 * MIB  # bytes of one caller's
OF_ALL = 256 * MIB


class Bodies:
    """Bytes of each caller: one has a bound, and all have one together, of which nobody may have more than is left."""

    def __init__(self) -> None:
        self._free = OF_ALL
        self._of: dict[str, int] = {}

    def take(self, who: str, size: int) -> None:
        """Raises RateLimited where they would weigh too much; a caller who has none yet may have one."""
        mine = self._of.get(who, 0)
        if mine and mine + size > min(OF_ONE, self._free):
            message = "Too much of what you have sent waits already: try again when some of it is answered"
            raise RateLimited(message, retry_after=1.0, limit="bodies", allowed=OF_ONE)
        self._of[who] = mine + size
        self._free -= size

    def leave(self, who: str, size: int) -> None:
        self._free += size
        if left := self._of.get(who, 0) - size:
            self._of[who] = left
        else:
            self._of.pop(who, None)


ADDRESSES: Final = 4096  # that are remembered; the one that was heard of longest ago makes room


class AddressRates:
    """Requests of unknown callers: so many a second for each route and address; what is not used is lost."""

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
