"""Bodies of answers, in bounds: how much travels, how much comes out of it, and in which ratio."""

from __future__ import annotations

import zlib
from typing import Final

from octavo.core.errors import SourceUnavailable, TooLarge
from octavo.core.sizes import KIB

_RATIO: Final = 100
_FIRST: Final = 64 * KIB  # bytes of which any may come out before the ratio counts


class Body:
    """Taken piece by piece. Raises TooLarge above the limit, SourceUnavailable for what cannot be read."""

    def __init__(self, encoding: str, limit: int, host: str) -> None:
        self._limit, self._host = limit, host
        self._taken = 0
        self._made = bytearray()
        self._decoder = None
        match encoding.strip().lower():
            case "" | "identity":
                pass
            case "gzip" | "x-gzip":
                self._decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
            case "deflate":
                self._decoder = zlib.decompressobj()
            case _:
                raise SourceUnavailable(f"{host} answers in an encoding that was not asked for")

    def take(self, data: bytes) -> None:
        self._taken += len(data)
        if self._taken > self._limit:
            raise self._too_large()
        if self._decoder is None:
            self._made += data
            return
        while data:
            try:
                self._made += self._decoder.decompress(data, self._limit + 1 - len(self._made))
            except zlib.error:
                raise SourceUnavailable(f"{self._host} answers with a body that cannot be decoded") from None
            if len(self._made) > max(_FIRST, _RATIO * self._taken) or len(self._made) > self._limit:
                raise self._too_large()
            data = self._decoder.unconsumed_tail

    def whole(self) -> bytes:
        if self._decoder is not None and self._taken and not self._decoder.eof:
            raise SourceUnavailable(f"{self._host} ended in the middle of its answer")
        return bytes(self._made)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"The answer of {self._host} is larger than {self._limit:,} bytes", limit=self._limit)
