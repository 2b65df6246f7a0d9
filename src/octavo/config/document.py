"""What stands in a configuration file, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from octavo.config.problems import KeyPath, Position


class TextFault(Struct, frozen=True):
    """Something wrong with the text itself. Never repeats a value of it."""

    path: KeyPath
    place: Position
    message: str


class ConfigText(Struct, frozen=True):
    """What stands in a file, and where. With `faults` the data is what could be read beside them."""

    data: Mapping[str, Any]
    places: Mapping[KeyPath, Position]
    faults: tuple[TextFault, ...] = ()

    def place(self, path: KeyPath) -> Position:
        """Of the nearest part of the path that stands in the file."""
        for length in range(len(path), 0, -1):
            if found := self.places.get(path[:length]):
                return found
        return self.places.get((), Position(1, 1))

    def only(self, *sections: str) -> ConfigText:
        """These alone, with the faults that stand in them, or with those for which nothing could be read."""
        data = {name: value for name, value in self.data.items() if name in sections}
        faults = tuple(one for one in self.faults if not one.path or one.path[0] in sections)
        return ConfigText(data, self.places, faults)


def broken(line: int, column: int, message: str) -> ConfigText:
    """Of text that could not be read at all."""
    return ConfigText({}, {}, (TextFault((), Position(line, column), message),))
