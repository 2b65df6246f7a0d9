"""How much an answer may hold: nothing that is put into one goes past this."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from octavo.core.tools import Block, Link, Text
from octavo.text.tokens import fit, tokens

_FRAME: Final = 512  # bytes and a quarter as many tokens, for what stands around the content
_LINK: Final = 200  # bytes of a link beside its address and its name


class Budget(NamedTuple):
    max_bytes: int
    max_tokens: int

    @property
    def any_text(self) -> int:
        """Bytes that fit whatever they say: no byte costs more than three quarters of a token."""
        return max(min(self.max_bytes, self.max_tokens * 4 // 3) - _FRAME, 1)

    @property
    def told_twice(self) -> Budget:
        """For a text that is a block and structured content as well: the message has both, the model sees one."""
        return Budget(self.max_bytes // 2, self.max_tokens)

    def beside(self, *texts: str) -> Budget:
        """What is left beside a frame and these texts."""
        size = _FRAME + sum(map(_size, texts))
        return Budget(max(self.max_bytes - size, 1), max(self.max_tokens - size // 4, 1))


class Media(NamedTuple):
    """How many bytes of pictures and sound an answer may hold: base64 makes four of three."""

    max_bytes: int


class Room:
    """What is left of a budget while an answer grows."""

    def __init__(self, budget: Budget) -> None:
        self._bytes = budget.max_bytes - _FRAME
        self._tokens = budget.max_tokens - _FRAME // 4

    def take(self, *texts: str) -> bool:
        """Whether all of them still fit; if not, nothing is taken."""
        size = sum(map(_size, texts))
        cost = sum(map(tokens, texts))
        if size > self._bytes or cost > self._tokens:
            return False
        self._bytes, self._tokens = self._bytes - size, self._tokens - cost
        return True


class Shares:
    """A budget for several parts of an answer, one after the other: what one does not need is for the rest."""

    def __init__(self, budget: Budget, count: int) -> None:
        self._bytes, self._tokens = budget
        self._count = count

    def next(self) -> Budget:
        share = Budget(self._bytes // max(self._count, 1), self._tokens // max(self._count, 1))
        self._count -= 1
        return share

    def spend(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self._bytes -= weight(block)
            self._tokens -= tokens(block.text) if isinstance(block, Text) else weight(block) // 4


def weight(block: Block) -> int:
    """Bytes of a text or a link; pictures and sound have a budget of their own."""
    if isinstance(block, Text):
        return _size(block.text) + sum(_LINK for _ in block.meta or ()) // 4
    if isinstance(block, Link):
        return _size(block.uri) + _size(block.entry.name) + _LINK
    return 0


def first_lines(lines: Iterable[str], budget: Budget, rest: str) -> str:
    """As many lines as fit, and where some do not `rest`, in which {} stands for how many."""
    room, taken, left = Room(budget.beside(rest)), list[str](), 0
    for line in lines:
        if left or not room.take(line, "\n"):
            left += 1
        else:
            taken.append(line)
    return "\n".join([*taken, rest.format(f"{left:,}")] if left else taken)


def shortened(text: str, budget: Budget) -> str:
    """For what a caller or a system wrote and may be of any length."""
    fitted = fit(text, *budget)
    return text if fitted.cut_at_line is None else f"{fitted.text}…"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
