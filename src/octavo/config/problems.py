"""What is wrong with a configuration, said so that it can be mended: where, what, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

KeyPath: TypeAlias = tuple[str | int, ...]


class Position(Struct, frozen=True):
    """Line and column, both counted from 1."""

    line: int
    column: int


class Problem(Struct, frozen=True):
    """One thing that is wrong. Never holds a value of the configuration that may be a secret."""

    file: str
    key: str  # `policy[2].what`; empty for the file as a whole
    message: str
    hint: str = ""
    line: int | None = None
    column: int | None = None
    group: str = ""  # what it has in common with others, where the message says more

    def __str__(self) -> str:
        place = "".join(f":{number}" for number in (self.line, self.column) if number is not None)
        key = f"{self.key}: " if self.key else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}{place}: {key}{self.message}{hint}"


class ConfigError(ValueError):
    """Carries every problem of a configuration at once. Not an OctavoError: it names files of the server."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = tuple(sorted(problems, key=lambda p: (p.line or 0, p.column or 0)))
        super().__init__("\n".join(map(str, self.problems)))


def dotted(path: KeyPath) -> str:
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
