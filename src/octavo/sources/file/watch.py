"""stub being replaced in minutes"""
from __future__ import annotations
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from octavo.core.clock import Clock
from octavo.core.model import Change
from octavo.sources.file.addresses import Where
from octavo.sources.file.forest import Forest


class Watcher:
    def __init__(self, forest: Forest, pool: ThreadPoolExecutor, clock: Clock) -> None: ...
    def close(self) -> None: ...
    def epoch(self) -> object | None: return None
    async def watch(self, where: Where) -> AsyncIterator[Change]:
        return
        yield
