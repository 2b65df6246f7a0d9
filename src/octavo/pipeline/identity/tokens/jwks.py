"""Where the key set of an issuer is: said by the operator, or found by the documents in which it describes itself."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from octavo.core.errors import SourceUnavailable
from octavo.core.issuers import may_be_fetched, metadata_of, on_this_machine

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]  # raises SourceUnavailable


class JwksOf:
    """The key set of an issuer, found by its metadata unless the operator says where it is."""

    def __init__(self, issuer: str, jwks: str, fetch: Fetch) -> None:
        self._issuer, self._given, self._fetch = issuer, jwks, fetch
        self._found = ""

    async def __call__(self) -> bytes:
        place, self._found = self._given or self._found, ""
        if not place:
            place = await self._discovered()
        body = await self._fetch(place)
        self._found = place  # until it fails
        return body

    async def _discovered(self) -> str:
        """Raises SourceUnavailable where no document describes exactly this issuer."""
        problem = SourceUnavailable(f"{self._issuer} does not describe itself")
        for place in metadata_of(self._issuer):
            try:
                document: Any = json.loads(await self._fetch(place))
            except SourceUnavailable as error:
                problem = error
                continue
            except (ValueError, RecursionError):
                continue
            if not isinstance(document, dict) or document.get("issuer") != self._issuer:
                continue
            jwks = document.get("jwks_uri")
            if isinstance(jwks, str) and may_be_fetched(jwks, loopback=on_this_machine(self._issuer)):
                return jwks
        raise problem
