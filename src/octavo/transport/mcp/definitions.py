"""A digest of the tools and prompts that a client sees: tells whether a change concerns it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator
from typing import Any, Final

from octavo.core.memo import Bounded
from octavo.core.ports.server import Server
from octavo.core.values import Principal
from octavo.transport.mcp import shapes

DEFINED: Final = frozenset(("tools", "prompts"))  # kinds of lists that are made of definitions
DIGESTS: Final = 1024  # principals whose digests are remembered


class Definitions:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._digests = Bounded[tuple[str, Principal], bytes](DIGESTS)
        self._encoded: dict[Hashable, bytes] = {}  # one definition, as somebody is told of it

    def forget(self) -> None:
        """They are not what they were, or other rules hold."""
        self._digests.clear()
        self._encoded.clear()

    def digest(self, kind: str, who: Principal) -> bytes:
        known = self._digests.get((kind, who))
        if known is None:
            digest = hashlib.blake2b(digest_size=16)
            for told in self._tools(who) if kind == "tools" else self._prompts(who):
                digest.update(told)
            known = self._digests.keep((kind, who), digest.digest())
        return known

    def _tools(self, who: Principal) -> Iterator[bytes]:
        composition, encoded = self._server.works, self._encoded
        for entry in composition.tools.entries:
            if composition.policy.shows(who, entry):
                if (told := encoded.get(entry.ref)) is None:
                    info = composition.tools.tool(entry.ref.name)
                    told = encoded[entry.ref] = b"" if info is None else _json(shapes.tool(info))
                yield told

    def _prompts(self, who: Principal) -> Iterator[bytes]:
        """With their versions: a prompt is another one, too, where it says something else."""
        composition, encoded = self._server.works, self._encoded
        sees = composition.sees_as(who)
        for entry in composition.prompts.entries:
            if composition.policy.shows(who, entry):
                if (told := encoded.get((entry.ref, sees))) is None:
                    info = composition.prompt_info(entry.ref.name, who)
                    told = b"" if info is None else _json((shapes.prompt(info), entry.version))
                    encoded[entry.ref, sees] = told
                yield told


def _json(value: Any) -> bytes:
    return json.dumps(value, default=repr).encode("ascii")  # whatever a plugin may have put into a schema
