"""Labels on a resource: how far it may be passed on, and how far it may be trusted.

An operator labels by pattern, an author in the document; of several words for one label the strictest holds, so that
no document makes itself less confidential, or more trusted, than the operator says it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.core.values import Entry

# By label, the strictest word last.
LEVELS: Final[Mapping[str, tuple[str, ...]]] = {
    "confidentiality": ("public", "internal", "confidential", "secret"),
    "integrity": ("trusted", "untrusted"),
}


class Label(NamedTuple):
    what: tuple[Glob, ...]
    words: Mapping[str, str]


class Labels:
    def __init__(self, labels: Sequence[Label] = ()) -> None:
        self._labels = labels

    def __bool__(self) -> bool:
        return bool(self._labels)

    def on(self, entry: Entry, spellings: Sequence[Ref]) -> Entry:
        """The entry with its labels; itself where it has them already."""
        found: dict[str, Any] = {}
        for label in self._labels:
            if any(glob.matches(ref.bare) for glob in label.what for ref in spellings):
                for key, word in label.words.items():
                    found[key] = _stricter(LEVELS[key], found.get(key, entry.metadata.get(key)), word)
        if all(entry.metadata.get(key) == word for key, word in found.items()):
            return entry
        return replace(entry, metadata={**entry.metadata, **found})

    def weakened(self, before: Sequence[Ref], after: Sequence[Ref]) -> str | None:
        """Which label of the operator's would be less strict, in words, if something went from one address to another,
        each given by all its spellings. What a document says of itself goes along."""
        was, will = (self.on(Entry(ref=one[0], name=""), one).metadata for one in (before, after))
        for key, levels in LEVELS.items():
            old, new = was.get(key, levels[0]), will.get(key, levels[0])
            if levels.index(new) < levels.index(old):
                return f"it would lose a label: {key} is {old} where it stands, and {will.get(key, 'unlabelled')} there"
        return None


def _stricter(levels: Sequence[str], said: Any, word: str) -> Any:
    """A word that nobody knows may be stricter than all of them: it stays, and counts as the strictest beside."""
    known, strange = [word], list[Any]()
    for one in said if isinstance(said, list) else [] if said is None else [said]:
        plain = one.strip().casefold() if isinstance(one, str) else one
        if plain in levels:
            known.append(plain)
        else:
            strange.append(one)
    return [*strange, levels[-1]] if strange else max(known, key=levels.index)
