"""Embeds texts for the search, by an HTTP endpoint that the operator names."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, cast
from urllib.parse import urlsplit

from octavo.config.sections.search import Embedder as Options
from octavo.core.errors import SourceUnavailable
from octavo.core.external import Fetcher, HttpRequest
from octavo.core.sizes import MIB
from octavo.net.addresses import network
from octavo.net.client import GuardedClient, HostRule, HttpLimits
from octavo.net.dial import VettedNetwork

MAX_DIMENSIONS: Final = 8192
_ANSWER: Final = 32 * MIB  # bytes
_OK: Final = 200


class HttpEmbedder:
    """See `core.ports.Embedder`. `shown` redacts: nothing leaves that nobody would be shown."""

    def __init__(self, options: Options, client: Fetcher, shown: Callable[[str], str]) -> None:
        told = f"{options.url}\0{options.model}".encode()
        self.name = f"{options.model[:40]}-{hashlib.blake2b(told, digest_size=6).hexdigest()}"
        self._url, self._model = options.url, options.model
        self._client, self._shown = client, shown

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        asked = {"model": self._model, "input": [self._shown(text) for text in texts]}
        body = json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"content-type": "application/json", "accept": "application/json"}
        reply = await self._client.fetch(HttpRequest(url=self._url, method="POST", headers=headers, body=body))
        if reply.status != _OK:
            raise SourceUnavailable(f"The embedder answered with status {reply.status}")
        return _vectors(reply.body, len(texts))


def client_for(options: Options) -> GuardedClient:
    """Connects to that host and to nothing else."""
    parts = urlsplit(options.url)
    host, plain = (parts.hostname or "").lower(), parts.scheme == "http"
    headers = {} if options.key is None else {"authorization": f"Bearer {options.key.get_secret_value()}"}
    rule = HostRule(
        host=host,
        methods=frozenset(("POST",)),
        ports=frozenset((parts.port or (80 if plain else 443),)),
        plain=plain,
        headers=headers,
    )
    inside = VettedNetwork([network(text) for text in options.inside], named=rule.covers)
    return GuardedClient([rule], inside, HttpLimits(seconds=options.time, answer=_ANSWER, redirects=0, connections=2))


def _vectors(body: bytes, wanted: int) -> list[list[float]]:
    """Of an answer that may be anything. Raises SourceUnavailable."""
    try:
        listed: Any = json.loads(body)["data"]
        rows = sorted(cast("list[dict[str, Any]]", listed), key=lambda one: int(one.get("index", 0)))
        found = [[float(value) for value in row["embedding"]] for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise SourceUnavailable("The embedder's answer is no list of embeddings") from None
    sizes = {len(vector) for vector in found}
    if len(found) != wanted or len(sizes) != 1 or not 0 < max(sizes) <= MAX_DIMENSIONS:
        raise SourceUnavailable("The embedder did not give one vector of one size for each text")
    if not all(math.isfinite(value) for vector in found for value in vector):
        raise SourceUnavailable("The embedder gave a vector with something that is no number")
    return found
