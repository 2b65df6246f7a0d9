"""What somebody sees of the tools and prompts, as one digest: whether a change of them is a change for him."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

from octavo.core.house import House
from octavo.core.model import Principal
from octavo.transport.mcp import shapes

DEFINED: Final = frozenset(("tools", "prompts"))  # kinds of lists that are made of definitions
DIGESTS: Final = 1024  # principals whose digests are remembered


class Definitions:
    def __init__(self, house: House) -> None:
        self._house = house
        self._known: dict[tuple[str, Principal], bytes] = {}

    def forget(self) -> None:
        """They are not what they were, or other rules hold."""
        self._known.clear()

    def digest(self, kind: str, who: Principal) -> bytes:
        known = self._known.get((kind, who))
        if known is None:
            if len(self._known) >= DIGESTS:
                self._known.clear()
            digest = hashlib.blake2b(digest_size=16)
            for told in self._tools(who) if kind == "tools" else self._prompts(who):
                digest.update(told)
            known = self._known[kind, who] = digest.digest()
        return known

    def _tools(self, who: Principal) -> Iterator[bytes]:
        works = self._house.works
        for entry in works.tools.entries:
            info = works.tools.tool(entry.ref.name) if works.policy.shows(who, entry) else None
            if info is not None:
                yield _encoded(shapes.tool(info))

    def _prompts(self, who: Principal) -> Iterator[bytes]:
        """With their versions: a prompt is another one, too, where it says something else."""
        works = self._house.works
        for entry in works.prompts.entries:
            info = works.prompt_info(entry.ref.name, who) if works.policy.shows(who, entry) else None
            if info is not None:
                yield _encoded((shapes.prompt(info), entry.version))


def _encoded(value: Any) -> bytes:
    return json.dumps(value, default=repr).encode("ascii")  # whatever a plugin may have put into a schema
