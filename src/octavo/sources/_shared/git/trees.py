"""Folders of a commit as callers may see them: regular files under names that can be addresses, and nothing else.

A symbolic link or a submodule is no file. Names that no checkout would accept (`..`, `.git`, one with a slash) can
stand in a tree all the same; they are left out before anything is made of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from octavo.core.errors import SourceUnavailable
from octavo.core.ref import MAX_SEGMENT_BYTES
from octavo.sources._shared.fs.confine import MAX_DEPTH
from octavo.sources._shared.fs.names import Rules, canonical_name
from octavo.sources._shared.git.objects import Commit, Id, ObjectCache, Objects
from octavo.sources._shared.git.refs import Names

MAX_FILES: Final = 1_000_000  # below one folder. A few small trees that hold each other can have billions of paths
NOTHING: Final[Id] = b""  # stands for a tree with nothing in it
_KEPT_ITEMS: Final = 400_000
_KEPT_COUNTS: Final = 200_000
_FILES: Final = frozenset((b"100644", b"100755", b"100664"))
FOLDERS: Final = frozenset((b"40000", b"040000"))


class Item(NamedTuple):
    id: Id
    folder: bool


class ChangedFile(NamedTuple):
    """A file that has come (`was` is None), gone (`now` is None) or changed."""

    names: Names
    was: Id | None
    now: Id | None


class Trees:
    """Names begin at the folder `below`, whatever the rules say of its own names: the operator named it. Every method
    takes the objects of its thread, and raises SourceUnavailable as they do."""

    def __init__(self, rules: Rules, below: Names = ()) -> None:
        self._rules, self._above = rules, below
        self._tops: ObjectCache[Id, Id] = ObjectCache(_KEPT_COUNTS)
        self._items: ObjectCache[Id, Mapping[str, Item]] = ObjectCache(_KEPT_ITEMS)
        self._counts: ObjectCache[tuple[int, Id], int] = ObjectCache(_KEPT_COUNTS)

    def top(self, objects: Objects, commit: Commit) -> Id:
        """The tree of the folder in a commit; that of an empty one where it was not there."""
        if not self._above:
            return commit.tree
        known = self._tops.get(commit.tree)
        if known is None:
            found = self.find(objects, commit.tree, self._above)
            known = NOTHING if found is None or not found.folder else found.id
            self._tops.put(commit.tree, known)
        return known

    def find(self, objects: Objects, tree: Id, names: Names) -> Item | None:
        """What stands at a path, whether or not it is served."""
        item = Item(tree, True)
        for name in names:
            found = self._folder(objects, item.id).get(name) if item.folder else None
            if found is None:
                return None
            item = found
        return item

    def files(self, objects: Objects, tree: Id, scope: Names, after: Names = ()) -> Iterator[tuple[Names, Id]]:
        """Everything that is served at or below a path, ordered by names, behind those of `after`."""
        start = self.find(objects, tree, scope)
        if start is None or not self._is_open(scope):
            return
        if not start.folder:
            if scope > after and self._rules.verdict(scope) == "served":
                yield scope, start.id
            return
        if self._count(objects, start.id, len(scope)) > MAX_FILES:
            raise SourceUnavailable(f"The folder has more than {MAX_FILES} files")
        yield from self._below(objects, start.id, scope, after)

    def differences(self, objects: Objects, old: Id, new: Id, above: Names = ()) -> Iterator[ChangedFile]:
        """Between two folders; what is the same in both is not looked into."""
        before = self._folder(objects, old) if old else {}
        after = self._folder(objects, new) if new else {}
        for name in sorted({*before, *after}):
            was, now = before.get(name), after.get(name)
            names = (*above, name)
            if was == now or self._rules.hides(names, folder=True):
                continue
            folders = [one.id if one is not None and one.folder else b"" for one in (was, now)]
            if any(folder and self._count(objects, folder, len(names)) for folder in folders):
                yield from self.differences(objects, folders[0], folders[1], names)
            files = [one.id if one is not None and not one.folder else None for one in (was, now)]
            if files[0] != files[1] and self._rules.verdict(names) == "served":
                yield ChangedFile(names, files[0], files[1])

    def _below(self, objects: Objects, tree: Id, above: Names, after: Names) -> Iterator[tuple[Names, Id]]:
        for name, item in self._folder(objects, tree).items():
            names = (*above, name)
            if item.folder:
                past = names < after[: len(names)]
                if not past and not self._rules.hides(names, folder=True) and self._count(objects, item.id, len(names)):
                    yield from self._below(objects, item.id, names, after)
            elif names > after and self._rules.verdict(names) == "served":
                yield names, item.id

    def _count(self, objects: Objects, tree: Id, depth: int) -> int:
        """Files at any depth that is served, each tree looked at once however often it stands somewhere."""
        if depth >= MAX_DEPTH:
            return 0
        count = self._counts.get((depth, tree))
        if count is None:
            items = self._folder(objects, tree).values()
            count = sum(self._count(objects, item.id, depth + 1) if item.folder else 1 for item in items)
            self._counts.put((depth, tree), count)
        return count

    def _folder(self, objects: Objects, tree: Id) -> Mapping[str, Item]:
        """By name, in order."""
        if tree == NOTHING:
            return {}
        known = self._items.get(tree)
        if known is not None:
            return known
        found: dict[str, Item] = {}
        for mode, raw, id in objects.tree(tree):
            name = name_of(raw) if mode in _FILES or mode in FOLDERS else None
            # Of two names that are one in Unicode's normal form, the one that is written so is served.
            if name is not None and (name not in found or name.encode("utf-8") == raw):
                found[name] = Item(id, mode in FOLDERS)
        items = dict(sorted(found.items()))
        self._items.put(tree, items, 1 + len(items))
        return items

    def _is_open(self, names: Names) -> bool:
        return len(names) <= MAX_DEPTH and not self._rules.hides_on_the_way(names, folder=True)


def name_of(raw: bytes) -> str | None:
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if name in ("", ".", "..") or "/" in name or len(raw) > MAX_SEGMENT_BYTES:
        return None
    return canonical_name(name)
