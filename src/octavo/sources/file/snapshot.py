"""What a listing would show, remembered, and brought up to date where a hint says so.

The kind of an event is never believed: each named place is looked at again and compared with what was
known, so that an atomic replace is one update and a lost event costs time, not truth. Blocking, and
used by one thread at a time.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from octavo.sources._shared.fs.faults import ABSENT, DENIED
from octavo.sources._shared.fs.names import canonical_name
from octavo.sources._shared.fs.notify import Batch, FileHints
from octavo.sources._shared.places import Place
from octavo.sources.file.diff_events import ToldChange, tell
from octavo.sources.file.entries import FileFacts
from octavo.sources.file.etags import Etags
from octavo.sources.file.root import Child, Names
from octavo.sources.file.roots import Forest

if TYPE_CHECKING:
    from octavo.sources.file.search.index import FileIndex

_FILES_A_STEP: Final = 256
_FEW: Final = 4  # names beyond ASCII that are cheaper to find one by one than by reading their directory


class _Folder(Struct, eq=False):
    place: Place
    disk: Names
    identity: tuple[int, int]
    handle: int | None = None
    files: dict[str, FileFacts] = field(default_factory=dict[str, FileFacts])
    folders: dict[str, _Folder] = field(default_factory=dict[str, "_Folder"])


class FileSnapshot:
    def __init__(self, forest: Forest, hints: FileHints, wall: Callable[[], float], stop: Callable[[], bool]) -> None:
        self._forest = forest
        self._etags = Etags(forest)
        self._hints = hints
        self._wall = wall
        self._stop = stop
        self._folders: dict[Place, _Folder] = {}
        self._by_handle: dict[int, _Folder] = {}
        self._links: dict[Place, set[Place]] = {}  # from a file to the links that lead to it
        self._loose: set[Place] = set()  # links that lead nowhere yet
        self._postponed: dict[_Folder, set[str]] = {}  # names in directories that are not where they were
        self._touched: set[Place] = set()  # plain files that this batch has looked at
        self._rerouted = False  # it has looked at something else, through which links may lead
        self._before: dict[Place, FileFacts | None] = {}  # of every place that this batch has changed
        self.unfollowed = False  # a directory exists that gives no hints
        self._index: FileIndex | None = None
        self._lock = threading.Lock()  # between the one thread and whoever asks for an index

    def fill(self) -> Iterator[None]:
        """The first look, in small steps."""
        for k in range(len(self._forest.trees)):
            yield from self._visit(Place((), k), ())
        self._follow_links(every=True)
        self._before.clear()

    def feed(self, index: FileIndex) -> None:
        """Fills the index with what is known, and from now on with what changes."""
        with self._lock:
            index.fill(
                Place((*at.names, name), at.root) for at, folder in self._folders.items() for name in folder.files
            )
            self._index = index

    def reconcile(self, batch: Batch) -> list[ToldChange]:
        with self._lock:
            before = self._reconciled(batch)
            if self._index is not None:
                self._index.update((place, self.known(place) is not None) for place in before)
            self._etags.begin()
            return tell(self._forest, before, self.known, self._etags, self._wall())

    @property
    def is_behind(self) -> bool:
        """Whether hints could not be followed up yet, since their directory was moved meanwhile."""
        return bool(self._postponed)

    def known(self, place: Place) -> FileFacts | None:
        folder = self._folders.get(Place(place.names[:-1], place.root))
        return None if folder is None else folder.files.get(place.names[-1])

    def _reconciled(self, batch: Batch) -> dict[Place, FileFacts | None]:
        """What was known before of every place that has changed."""
        if batch.everything:
            self.unfollowed = False
            self._postponed.clear()
            for k, tree in enumerate(self._forest.trees):
                if tree.is_there:  # else nothing is told until it is there again, and then what is different
                    _exhaust(self._visit(Place((), k), (), deep=True))
        else:
            self._look_at(batch)
        self._follow_links(every=batch.everything)
        before, self._before = self._before, {}
        return before

    def _look_at(self, batch: Batch) -> None:
        for handle in batch.folders:
            folder = self._by_handle.get(handle)
            if folder is not None:
                _exhaust(self._visit(folder.place, folder.disk))
        # Parents first: a directory that was moved away takes what is below it along.
        dirty, self._postponed = self._postponed, {}
        for handle, names in batch.names.items():
            folder = self._by_handle.get(handle)
            if folder is not None:
                dirty.setdefault(folder, set()).update(names)
        for folder, names in sorted(dirty.items(), key=lambda pair: len(pair[0].place.names)):
            if self._folders.get(folder.place) is folder and not self._stop():
                self._look_in(folder, names)

    def _look_in(self, folder: _Folder, disk_names: set[str]) -> None:
        place = folder.place
        tree = self._forest.trees[place.root]
        names = {name for disk in disk_names if (name := canonical_name(disk)) is not None}
        try:
            fd = tree.open_directory(folder.disk)
        except OSError as error:
            if error.errno not in ABSENT and error.errno not in DENIED:
                raise
            self._postpone(folder, disk_names)
            return
        try:
            if _identity(fd) != folder.identity:
                self._postpone(folder, disk_names)
                return
            if sum(not name.isascii() for name in names) > _FEW:
                every = {child.name: child for child in tree.children(fd, place.names)}
                found = {name: every.get(name) for name in names}
            else:
                found = {name: tree.child(fd, place.names, name) for name in names}
        finally:
            os.close(fd)
        for name, child in found.items():
            self._take_in(folder, name, child)

    def _postpone(self, folder: _Folder, disk_names: set[str]) -> None:
        """The directory was moved after these hints: its parents' hints come next, and it may be moved back."""
        self._postponed.setdefault(folder, set()).update(disk_names)

    def _follow_links(self, *, every: bool) -> None:
        """Looks again at links whose way or end this batch has looked at: that happens elsewhere than they are."""
        every = every or self._rerouted
        again = [links for file, links in self._links.items() if every or file in self._touched or file in self._before]
        if every or any(facts is None for facts in self._before.values()):
            again.append(self._loose)
        for place in [place for links in again for place in links]:
            self._look_again(place)
        self._touched.clear()
        self._rerouted = False

    def _take_in(self, folder: _Folder, name: str, child: Child | None) -> None:
        place = Place((*folder.place.names, name), folder.place.root)
        known = folder.folders.get(name)
        old = folder.files.get(name)
        if (child is None or child.kind == "file") and (old is None or old.own == place.names) and known is None:
            self._rerouted |= child is None and old is None  # not for callers to see, but links may lead through it
            self._touched.add(place)
        else:
            self._rerouted = True
        if child is not None and child.kind == "directory":
            self._set(folder, name, None)
            _exhaust(self._visit(place, (*folder.disk, child.disk), deep=False))
            return
        if known is not None:
            self._drop(known)
        self._set(folder, name, None if child is None else self._forest.facts(place))
        if child is not None and child.kind == "link" and name not in folder.files:
            self._loose.add(place)
        else:
            self._loose.discard(place)

    def _visit(self, place: Place, disk: Names, *, deep: bool | None = None) -> Iterator[None]:
        """Compares a directory with what is known of it. New ones below are always visited; known ones too if
        `deep`; and with `deep=False` a known directory that is still the same is not read at all."""
        stack = [(place, disk, deep)]
        while stack and not self._stop():
            place, disk, deep = stack.pop()
            yield
            tree = self._forest.trees[place.root]
            known = self._folders.get(place)
            try:
                fd = tree.open_directory(disk)
            except OSError as error:
                if error.errno not in ABSENT and error.errno not in DENIED:
                    raise
                if known is not None:
                    self._drop(known)
                continue
            try:
                identity = _identity(fd)
                if known is not None and known.identity != identity:
                    self._drop(known)
                    known = None
                if known is not None and self._has_lost_its_handle(known):
                    deep = True
                elif known is not None and deep is False:
                    continue
                folder = known or self._added(place, disk, identity)
                folder.disk = disk
                self._follow(folder, fd)  # before reading: what comes after is told
                children = tree.children(fd, place.names)
            finally:
                os.close(fd)
            self._forget_all_but(folder, children)
            for number, child in enumerate(children):
                if child.kind == "directory":
                    if deep or child.name not in folder.folders:
                        stack.append((Place((*place.names, child.name), place.root), (*disk, child.disk), deep))
                else:
                    self._take_in(folder, child.name, child)
                    if number % _FILES_A_STEP == _FILES_A_STEP - 1:
                        yield

    def _forget_all_but(self, folder: _Folder, children: Sequence[Child]) -> None:
        below = {child.name for child in children if child.kind == "directory"}
        for name in [name for name in folder.folders if name not in below]:
            self._drop(folder.folders[name])
        files = {child.name for child in children if child.kind != "directory"}
        for name in [name for name in folder.files if name not in files]:
            self._set(folder, name, None)

    def _added(self, place: Place, disk: Names, identity: tuple[int, int]) -> _Folder:
        folder = self._folders[place] = _Folder(place, disk, identity)
        above = self._folders.get(Place(place.names[:-1], place.root)) if place.names else None
        if above is not None:
            above.folders[place.names[-1]] = folder
        return folder

    def _follow(self, folder: _Folder, fd: int) -> None:
        try:
            handle = self._hints.follow(fd)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.ENOMEM, errno.EACCES, errno.ENOENT):
                raise
            self.unfollowed = True
            return
        if handle is not None:
            if folder.handle is not None and folder.handle != handle:
                self._by_handle.pop(folder.handle, None)  # of a directory that had this name and inode before
            folder.handle = handle
            self._by_handle[handle] = folder  # a moved directory keeps its handle: the new place takes it over

    def _has_lost_its_handle(self, folder: _Folder) -> bool:
        """It was moved away and back, and found in the other place between: that one took its handles over."""
        return folder.handle is not None and self._by_handle.get(folder.handle) is not folder

    def _drop(self, folder: _Folder) -> None:
        above = self._folders.get(Place(folder.place.names[:-1], folder.place.root)) if folder.place.names else None
        if above is not None and above.folders.get(folder.place.names[-1]) is folder:
            del above.folders[folder.place.names[-1]]
        stack = [folder]
        while stack:
            gone = stack.pop()
            for name in list(gone.files):
                self._set(gone, name, None)
            if gone.handle is not None and self._by_handle.get(gone.handle) is gone:
                del self._by_handle[gone.handle]
                self._hints.forget(gone.handle)
            if self._folders.get(gone.place) is gone:
                del self._folders[gone.place]
            stack += gone.folders.values()

    def _set(self, folder: _Folder, name: str, facts: FileFacts | None) -> None:
        place = Place((*folder.place.names, name), folder.place.root)
        old = folder.files.get(name)
        if old == facts:
            return
        self._before.setdefault(place, old)
        if old is not None and old.own != place.names:
            self._links.get(Place(old.own, place.root), set()).discard(place)
        if facts is None:
            del folder.files[name]
            return
        folder.files[name] = facts
        if facts.own != place.names:
            self._links.setdefault(Place(facts.own, place.root), set()).add(place)

    def _look_again(self, place: Place) -> None:
        folder = self._folders.get(Place(place.names[:-1], place.root))
        if folder is None:
            self._loose.discard(place)
        else:
            self._look_in(folder, {place.names[-1]})


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _exhaust(steps: Iterator[None]) -> None:
    for _ in steps:
        pass
