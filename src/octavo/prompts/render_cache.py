"""Renderings that are kept.

What a prompt shows of resources is read anew each time, by the caller and through the whole pipeline, and a kept
rendering is used only where that gave the very values of which it was made. So nobody is shown what he may not read,
and nothing that has changed since.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from octavo.core.memo import Weighted
from octavo.core.sizes import MIB
from octavo.core.tools import Audio, Block, Embedded, Image, Link, PromptResult, Text
from octavo.prompts.template import PromptTemplate

MAX_KEPT: Final = 256
MAX_WEIGHT: Final = 8 * MIB  # bytes of all


class _CachedRendering(NamedTuple):
    template: PromptTemplate
    blocks: Sequence[Block]
    result: PromptResult


class Renderings:
    def __init__(self) -> None:
        self._kept: Weighted[Hashable, _CachedRendering] = Weighted(MAX_WEIGHT, MAX_KEPT)
        self.hits = 0

    def find(self, key: Hashable, template: PromptTemplate, blocks: Sequence[Block]) -> PromptResult | None:
        """`blocks` are what the resources of the prompt are to this caller now."""
        kept = self._kept.get(key)
        if kept is None or kept.template is not template or len(kept.blocks) != len(blocks):
            return None
        if not all(map(_same, kept.blocks, blocks)):
            return None
        self.hits += 1
        return kept.result

    def keep(self, key: Hashable, template: PromptTemplate, blocks: Sequence[Block], result: PromptResult) -> None:
        weight = sum(_weight(message.content) for message in result.messages)
        self._kept.keep(key, _CachedRendering(template, blocks, result), weight)

    def clear(self) -> None:
        self._kept.clear()


def _same(kept: Block, now: Block) -> bool:
    """The very content, not an equal one: the cache gives the same object for as long as it holds."""
    match kept, now:
        case Embedded(content=before, uri=uri), Embedded(content=after, uri=again):
            return before is after and uri == again
        case Link(entry=old, uri=uri), Link(entry=new, uri=again):
            return old == new and uri == again
        case _:
            return False


def _weight(block: Block) -> int:
    match block:
        case Text():
            return 2 * len(block.text)
        case Embedded():
            return block.content.size
        case Image() | Audio():
            return len(block.data)
        case Link():
            return 1024
