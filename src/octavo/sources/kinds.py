"""The kinds of sources: the only place that names them. What a kind is, its record says, in a folder of its own.

A record is loaded when somebody asks for it by name: a configuration with files alone loads no other kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from octavo.core.kinds import SourceKind
from octavo.core.values import NOTHING

# In the order in which they are documented. Each module has its records in KINDS.
_MODULES: Final[Mapping[str, str]] = {
    "file": "octavo.sources.file.kind",
    "git": "octavo.sources.git.kind",
    "memory": "octavo.sources.memory.kind",
    "sop": "octavo.sources.catalog.kind",
    "doc": "octavo.sources.catalog.kind",
    "skill": "octavo.sources.catalog.kind",
    "agent": "octavo.sources.catalog.kind",
    "org": "octavo.sources.catalog.kind",
    "catalog": "octavo.sources.catalog.kind",
}
# Whoever means one of them says it by these.
FOLDERS: Final = "file"  # that serves folders as they lie there, also where there is no configuration
SOP: Final = "sop"
DOC: Final = "doc"
SKILL: Final = "skill"
AGENT: Final = "agent"
ORG: Final = "org"
BEGUN: Final = (SOP, DOC, SKILL, AGENT)  # of which `octavo new` begins a file


class Registry:
    """Those that come with Octavo, and those that plugins bring."""

    def __init__(self, further: Mapping[str, SourceKind[Any]] = NOTHING) -> None:
        self._further = further

    @property
    def names(self) -> tuple[str, ...]:
        return (*_MODULES, *self._further)

    def kind(self, name: str) -> SourceKind[Any] | None:
        if name in _MODULES:
            found: Iterable[SourceKind[Any]] = import_module(_MODULES[name]).KINDS
            return next(one for one in found if one.name == name)
        return self._further.get(name)

    def is_foreign(self, name: str) -> bool:
        """Whether a plugin brings it."""
        return name in self._further

    @property
    def of_folders(self) -> str:
        return FOLDERS

    def __iter__(self) -> Iterator[SourceKind[Any]]:
        """All of them, loaded."""
        for name in self.names:
            found = self.kind(name)
            if found is not None:
                yield found
