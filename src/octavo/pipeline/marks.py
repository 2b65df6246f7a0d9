"""The marks that stand for what is hidden, where others have to know one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from octavo.core.model import Entry

HIDDEN: Final = r"\[redacted:[a-z0-9_-]+:[0-9a-f]{8}\]"
_HIDDEN: Final = re.compile(HIDDEN)


def hides(entry: Entry, keys: Iterable[str]) -> bool:
    """Whether something is hidden in these metadata; for a key that is none of them, anywhere in the entry."""
    facts = entry.metadata
    everything = (entry.title, entry.description, facts)
    return any(_HIDDEN.search(str(facts.get(key, everything))) for key in keys)
