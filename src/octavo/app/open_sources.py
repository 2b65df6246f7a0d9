"""Sources that are open. One that a reload does not change goes on, with its watch and all that it has learned.

What a source was made of says whether it is the same: its options, and the folders that it stands on. A folder that was
put in the place of another is another folder, whatever its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from octavo.core.ports import Source

if TYPE_CHECKING:
    from octavo.app.catalogs import Catalogs

S = TypeVar("S", bound=Source)


@runtime_checkable
class Stands(Protocol):
    """A source over folders, which may go away while it is open."""

    @property
    def trouble(self) -> str: ...


class _Open:
    """`users` are the configurations that use it: for a while after a reload there are two."""

    def __init__(self, name: str, source: Source, made_of: object) -> None:
        self.name, self.source, self.made_of = name, source, made_of
        self.users = 0
        self.closes = AsyncExitStack()


class OpenSources:
    """`catalogs` are those of the configuration that holds now."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self.catalogs: Catalogs | None = None

    async def take(self, name: str, make: partial[S], stands_on: Iterable[Path], stack: AsyncExitStack) -> Source:
        """The source of that name, open until `stack` and every other that took it are closed.

        Raises what making or opening it raises.
        """
        made_of = (name, make.func, make.args, make.keywords, [*map(_folder, stands_on)])
        known = next((one for one in self._open if one.made_of == made_of), None)
        if known is None:
            known = _Open(name, make(), made_of)
            if hasattr(known.source, "__aenter__"):
                await known.closes.enter_async_context(cast("Any", known.source))
            self._open.append(known)
        known.users += 1
        stack.push_async_callback(self._leave, known)
        return known.source

    def troubles(self) -> dict[str, str]:
        """What is wrong with their folders now, by the names of the sources."""
        return {one.name: one.source.trouble for one in self._open if isinstance(one.source, Stands)}

    async def _leave(self, one: _Open) -> None:
        one.users -= 1
        if not one.users:
            self._open.remove(one)
            await one.closes.aclose()


def _folder(path: Path) -> tuple[int, int] | None:
    """Which folder stands at that path now; None for none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
