"""In the place of a source that could not be made: its door lets nobody through, and says why to the operator."""

from __future__ import annotations

from typing import NoReturn

from octavo.core.errors import SourceUnavailable
from octavo.core.ref import Ref


class Unopened:
    def __init__(self, scheme: str) -> None:
        self.scheme = scheme

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> NoReturn:
        raise self._unavailable()

    async def stat(self, ref: Ref) -> NoReturn:
        raise self._unavailable()

    async def read(self, ref: Ref, *, max_bytes: int) -> NoReturn:
        raise self._unavailable()

    def _unavailable(self) -> SourceUnavailable:
        return SourceUnavailable(f"Source unavailable: {self.scheme}", source=self.scheme)
