"""One entry of an outline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

_DEEPEST: Final = 32  # parents of a symbol; what is deeper is left out


class Symbol(NamedTuple):
    """`path` is the name with those of its parents before it; lines count from 1, `last` is included."""

    path: tuple[str, ...]
    kind: str
    line: int
    last: int

    @property
    def name(self) -> str:
        return self.path[-1]


class Opened(NamedTuple):
    """A symbol whose end is not known yet. `depth` says what it contains: whatever is deeper and follows."""

    name: str
    kind: str
    line: int
    depth: int


def nested(opened: Iterable[Opened], total: int) -> Sequence[Symbol]:
    """Symbols that last until the next of the same depth or less."""
    symbols: list[Symbol] = []
    parents: list[tuple[int, Opened]] = []  # place in `symbols`, and what stands there
    for one in opened:
        if len(parents) >= _DEEPEST and one.depth > parents[-1][1].depth:
            continue
        _close(symbols, parents, one.depth, one.line - 1)
        path = (*(parent.name for _, parent in parents), one.name)
        parents.append((len(symbols), one))
        symbols.append(Symbol(path, one.kind, one.line, total))
    return symbols


def _close(symbols: list[Symbol], parents: list[tuple[int, Opened]], depth: int, last: int) -> None:
    while parents and parents[-1][1].depth >= depth:
        place, _ = parents.pop()
        symbols[place] = symbols[place]._replace(last=last)
