"""Sources that are open. One that a reload does not change goes on, with its watch and all that it has learned.

What a source was made of says whether it is the same: its options, what it asked the house for, and the folders that
it stands on. A folder that was
put in the place of another is another folder, whatever its name.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from octavo.core.ports.source import Source

if TYPE_CHECKING:
    from octavo.app.catalogs import Catalogs
    from octavo.app.host import SourceHost
    from octavo.config.sections.source import Options


@runtime_checkable
class Stands(Protocol):
    """A source over folders, which may go away while it is open."""

    @property
    def trouble(self) -> str: ...


class _Open:
    """`users` are the configurations that use it: for a while after a reload there are two."""

    def __init__(self, host: SourceHost, source: Source, made_of: object) -> None:
        self.host, self.source, self.made_of = host, source, made_of
        self.users = 0
        self.closes = AsyncExitStack()


class OpenSources:
    """`catalogs` are those of the configuration that holds now."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self.catalogs: Catalogs | None = None

    async def take(self, options: Options, host: SourceHost, stack: AsyncExitStack) -> Source:
        """The source of these options, open until `stack` and every other that took it are closed.

        Raises what making or opening it raises.
        """
        made_of = (host.name, options, [_folder(one.path) for one in options.folders])
        alike = (one for one in self._open if one.made_of == made_of)
        known = next((one for one in alike if host.gives_the_same(one.host)), None)
        if known is None:
            known = _Open(host, await options.record.open(options, host), made_of)
            if hasattr(known.source, "__aenter__"):
                await known.closes.enter_async_context(cast("Any", known.source))
            self._open.append(known)
        known.users += 1
        stack.push_async_callback(self._leave, known)
        return known.source

    def troubles(self) -> dict[str, str]:
        """What is wrong with their folders now, by the names of the sources."""
        return {one.host.name: one.source.trouble for one in self._open if isinstance(one.source, Stands)}

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
