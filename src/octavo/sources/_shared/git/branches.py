"""Which names a branch can have."""

from __future__ import annotations

import re
from typing import Final

_SEGMENT: Final = re.compile(r"(?!\.|-)(?!.*(?:\.\.|@\{|\.lock\Z|\.\Z))[^\x00-\x20\x7f~^:?*\[\\/]{1,200}\Z")


def is_branch(name: str) -> bool:
    """Whether a branch may have this name, as git sees it, or a bit more strictly."""
    return len(name) <= 500 and name != "@" and all(_SEGMENT.match(part) for part in name.split("/"))
