"""What .gitignore files say, each for its own folder and below; a deeper one overrules the ones above it."""

from __future__ import annotations

import os
from typing import Final

from octavo.core.memo import Bounded
from octavo.core.sizes import KIB
from octavo.sources._shared.fs.faults import ABSENT, DENIED
from octavo.sources._shared.fs.reading import contents
from octavo.sources._shared.fs.stats import identity
from octavo.sources._shared.places import Place
from octavo.sources.file.root import Names
from octavo.sources.file.roots import Forest
from octavo.sources.file.search.gitignore import Gitignore

_FILE: Final = ".gitignore"
_MAX_BYTES: Final = 64 * KIB  # a larger one is no list that somebody wrote
_KEPT: Final = 8192  # folders with a .gitignore whose patterns are kept


class Ignores:
    """Patterns, kept for as long as their file is the same."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._kept: Bounded[Place, tuple[object, Gitignore]] = Bounded(_KEPT)

    def rules(self, folder: Place) -> Gitignore | None:
        tree = self._forest.trees[folder.root]
        names = (*folder.names, _FILE)
        try:
            stamp = identity(tree.look(names).stat)
            kept = self._kept.get(folder)
            if kept is not None and kept[0] == stamp:
                return kept[1]
            fd, seen = tree.open(names)
            try:
                size = seen.stat.st_size
                raw = contents(fd, size, wait=True) if size <= _MAX_BYTES else bytearray()
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno in ABSENT or error.errno in DENIED:
                return None
            raise
        rules = Gitignore(raw.decode("utf-8", "replace"))
        self._kept.keep(folder, (identity(seen.stat), rules))
        return rules


class Ignored:
    """The view of one search: each folder is looked at once."""

    def __init__(self, ignores: Ignores) -> None:
        self._ignores = ignores
        self._rules: dict[Place, Gitignore | None] = {}
        self._folders: dict[Place, bool] = {}

    def folder(self, place: Place) -> bool:
        """Nothing below an ignored folder can be taken back."""
        if not place.names:
            return False
        known = self._folders.get(place)
        if known is None:
            known = self.folder(Place(place.names[:-1], place.root)) or self._decided(place, is_folder=True)
            self._folders[place] = known
        return known

    def file(self, place: Place) -> bool:
        return self.folder(Place(place.names[:-1], place.root)) or self._decided(place, is_folder=False)

    def _decided(self, place: Place, *, is_folder: bool) -> bool:
        names, root = place
        for depth in range(len(names) - 1, -1, -1):
            rules = self._rules_of(names[:depth], root)
            if rules is not None:
                verdict = rules.verdict("/".join(names[depth:]), is_folder=is_folder)
                if verdict is not None:
                    return verdict
        return False

    def _rules_of(self, names: Names, root: int) -> Gitignore | None:
        folder = Place(names, root)
        if folder not in self._rules:
            self._rules[folder] = self._ignores.rules(folder)
        return self._rules[folder]
