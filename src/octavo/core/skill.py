"""A skill as the protocol's extension knows it: a folder with a SKILL.md, and every file in it with its digest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from octavo.core.ref import Ref
from octavo.core.sizes import MIB

MANIFEST: Final = "SKILL.md"
MAX_FILES: Final = 512  # of one skill: what every client must be able to take
MAX_BYTES: Final = 16 * MIB
DIRECTORY: Final = "inode/directory"  # the media type of what has entries in it

_NAME: Final = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?\Z")


class SkillFile(Struct, frozen=True):
    ref: Ref
    digest: str  # of what a read gives: `sha256:` and 64 hexadecimal digits
    size: int  # in bytes


class Skill(Struct, frozen=True):
    ref: Ref  # of its SKILL.md
    front_matter: Mapping[str, Any]
    files: tuple[SkillFile, ...]  # all of them, the SKILL.md first


def usability(readable: bool, missing: Sequence[str]) -> dict[str, Any]:
    """What is told of a skill beside its name: whether somebody can use it, and else why not."""
    if readable and not missing:
        return {"usable": True}
    why = [] if readable else ["it may not be read"]
    why += [f"tools are missing: {', '.join(missing)}"] if missing else []
    return {"usable": False, **({"missing_tools": [*missing]} if missing else {}), "why": "; ".join(why)}


def is_skill_name(name: str) -> bool:
    """Whether clients accept it as the name of a skill, which is the name of its folder."""
    return _NAME.match(name) is not None
