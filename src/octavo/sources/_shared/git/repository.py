"""A repository on this machine, opened so that nothing in it can lead out of it or make anything run."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Final, Literal, TypeAlias

from octavo.core.clock import Clock
from octavo.core.errors import SourceUnavailable
from octavo.sources._shared.fs.confine import OpenedRoot
from octavo.sources._shared.git.objects import Id, Objects, library
from octavo.sources._shared.git.refs import Names, Refs

Owner: TypeAlias = Literal["self", "any"]

_ABSENT: Final = (errno.ENOENT, errno.ENOTDIR)


class Foreign(SourceUnavailable):
    """Nobody said that its owner is trusted."""


class Repository:
    """A bare repository, or the `.git` folder of a clone. `owner="self"` wants it to belong to the user of this
    process, or to root: whoever can write its files can make the library that maps them fail.

    Raises SourceUnavailable for what is none, and for one that borrows from elsewhere: a linked work tree, a
    repository with alternates, or with links in place of its folders.
    """

    def __init__(self, path: Path, branch: str | None, *, owner: Owner, clock: Clock) -> None:
        library()
        self._path, self._branch, self._owner, self._clock = path, branch, owner, clock
        self._opening = threading.Lock()
        self._open()

    def close(self) -> None:
        self.root.close()

    @property
    def is_there(self) -> bool:
        return os.path.isdir(self._git_dir)

    @property
    def objects(self) -> Objects:
        """Of the thread that asks."""
        found: Objects | None = getattr(self._local, "objects", None)
        if found is None:
            found = self._local.objects = Objects(self.root, self._git_dir)
        return found

    def find_tip(self) -> Id | None:
        """The commit that the branch is at; None while there is no such branch."""
        with self._opening:
            if self._is_replaced():
                self._open()
        return self.refs.commit()

    def tip(self) -> Id:
        """As `find_tip`; raises SourceUnavailable while there is no such branch."""
        commit = self.find_tip()
        if commit is None:
            named = "that HEAD names" if self._branch is None else self._branch
            raise SourceUnavailable(f"The repository has no branch {named}, or nothing was committed to it yet")
        return commit

    def refuse_links(self) -> None:
        """Packs are found by the library itself: it must find none that leads elsewhere."""
        _refuse_links(self.root)

    def _open(self) -> None:
        git_dir = _git_dir(self._path)
        root = _opened(git_dir)
        try:
            self._examine(root)
        except BaseException:
            root.close()
            raise
        self.root, self.refs = root, Refs(root, self._branch, self._clock)
        self._git_dir, self._local = git_dir, threading.local()

    def _is_replaced(self) -> bool:
        """Whether another folder stands in its place: a fresh clone, or a link that leads elsewhere now."""
        try:
            found = os.stat(self._git_dir)
        except OSError:
            raise SourceUnavailable("The repository is not there any more; try again soon", retry_after=1.0) from None
        return (found.st_dev, found.st_ino) != (self.root.stat_of_root.st_dev, self.root.stat_of_root.st_ino)

    def _examine(self, root: OpenedRoot) -> None:
        if _stat(root, ("HEAD",)) is None or _stat(root, ("objects",)) is None:
            raise SourceUnavailable("It is no git repository: there is no HEAD, or no folder of objects")
        if _stat(root, ("commondir",)) is not None:
            raise _elsewhere("commondir")
        borrowed = _stat(root, ("objects", "info", "alternates"))
        if borrowed is not None and borrowed.st_size > 0:
            raise SourceUnavailable(
                "The repository borrows objects of another one (objects/info/alternates), which are not read: "
                "git repack -a -d and removing that file make it whole"
            )
        _refuse_links(root)
        for names in ((), ("objects",)) if self._owner == "self" and hasattr(os, "geteuid") else ():
            found = _stat(root, names)
            if found is None or found.st_uid not in (os.geteuid(), 0):
                raise Foreign("The repository belongs to another user, who could change it under the server")


def _stat(root: OpenedRoot, names: Names) -> os.stat_result | None:
    """None for what is not there."""
    try:
        return root.stat(names)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise _elsewhere("/".join(names)) from None


def _refuse_links(root: OpenedRoot) -> None:
    for folder in (("objects",), ("objects", "pack")):
        try:
            fd = root.open(folder, "directory")
        except OSError as error:
            if error.errno in _ABSENT and len(folder) > 1:
                return  # no packs
            raise _elsewhere("/".join(folder)) from None
        try:
            with os.scandir(fd) as found:
                linked = next((one.name for one in found if one.is_symlink()), None)
        except OSError:
            raise _elsewhere("/".join(folder)) from None
        finally:
            os.close(fd)
        if linked is not None:
            raise _elsewhere("/".join(folder))


def _git_dir(path: Path) -> Path:
    """Where a clone has its repository; a bare one is one itself."""
    root = _opened(path)
    try:
        mode = root.stat((".git",)).st_mode
    except OSError as error:
        if error.errno in _ABSENT:
            return path
        raise _elsewhere(".git") from None
    finally:
        root.close()
    if not stat.S_ISDIR(mode):
        raise SourceUnavailable(
            "Its .git is a file that names a repository elsewhere (a linked work tree or a submodule): "
            "name that repository instead, or a clone"
        )
    return path / ".git"


def _opened(path: Path) -> OpenedRoot:
    try:
        return OpenedRoot(path, "auto")
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise SourceUnavailable(f"The repository cannot be opened: {reason}") from None


def _elsewhere(what: str) -> SourceUnavailable:
    return SourceUnavailable(f"The repository leads elsewhere, or cannot be read, at {what}; this is not followed")
