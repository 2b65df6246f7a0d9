"""How much an answer may hold: nothing that is put into one goes past this."""

from __future__ import annotations

from typing import Final, NamedTuple

from octavo.text.budget import tokens

_FRAME: Final = 512  # bytes and a quarter as many tokens, for what stands around the content


class Budget(NamedTuple):
    max_bytes: int
    max_tokens: int

    @property
    def any_text(self) -> int:
        """Bytes that fit whatever they say: no byte costs more than three quarters of a token."""
        return max(min(self.max_bytes, self.max_tokens * 4 // 3) - _FRAME, 1)

    def share(self, of: int) -> Budget:
        return Budget(self.max_bytes // of, self.max_tokens // of)


class Room:
    """What is left of a budget while an answer grows."""

    def __init__(self, budget: Budget) -> None:
        self._bytes = budget.max_bytes - _FRAME
        self._tokens = budget.max_tokens - _FRAME // 4

    def take(self, *texts: str) -> bool:
        """Whether all of them still fit; if not, nothing is taken."""
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        cost = sum(map(tokens, texts))
        if size > self._bytes or cost > self._tokens:
            return False
        self._bytes, self._tokens = self._bytes - size, self._tokens - cost
        return True
