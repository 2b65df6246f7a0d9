"""Renderings that are kept.

What a prompt shows of resources is read anew each time, by the caller and through the whole pipeline, and a kept
rendering is used only where that gave the very values of which it was made. So nobody is shown what he may not read,
and nothing that has changed since.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from octavo.core.surface import Audio, Block, Embedded, Image, Link, PromptResult, Text
from octavo.prompts.template import Template

MAX_KEPT: Final = 256
MAX_WEIGHT: Final = 8 << 20  # bytes of all


class _Kept:
    __slots__ = ("blocks", "result", "template", "weight")

    def __init__(self, template: Template, blocks: Sequence[Block], result: PromptResult) -> None:
        self.template, self.blocks, self.result = template, blocks, result
        self.weight = sum(_weight(message.content) for message in result.messages)


class Renderings:
    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}  # the one that was used last is the last
        self._weight = 0
        self.hits = 0

    def find(self, key: Hashable, template: Template, blocks: Sequence[Block]) -> PromptResult | None:
        """`blocks` are what the resources of the prompt are to this caller now."""
        kept = self._kept.get(key)
        if kept is None or kept.template is not template or len(kept.blocks) != len(blocks):
            return None
        if not all(map(_same, kept.blocks, blocks)):
            return None
        self._kept[key] = self._kept.pop(key)
        self.hits += 1
        return kept.result

    def keep(self, key: Hashable, template: Template, blocks: Sequence[Block], result: PromptResult) -> None:
        kept = _Kept(template, blocks, result)
        if kept.weight > MAX_WEIGHT // 4:
            return
        self._drop(key)
        self._kept[key] = kept
        self._weight += kept.weight
        while len(self._kept) > MAX_KEPT or self._weight > MAX_WEIGHT:
            self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        self._kept.clear()
        self._weight = 0

    def _drop(self, key: Hashable) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            self._weight -= kept.weight


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
