"""Commits, trees and blobs by id. Of git's library only the object database is used, over one folder.

A repository can bring a configuration, hooks, filters, attributes, alternates and references that lead elsewhere. None
of them is ever looked at here: what they would make git do cannot happen.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Hashable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from octavo.core.errors import SourceUnavailable
from octavo.core.memo import Weighted
from octavo.core.sizes import MIB
from octavo.sources._shared.fs.confine import OpenedRoot

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ObjectCache(Weighted[K, V]):
    """The last ones that were asked for, up to a weight of `room` together. For several threads."""

    __slots__ = ("_lock",)

    def __init__(self, room: int) -> None:
        super().__init__(room)
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            return super().get(key)

    def put(self, key: K, value: V, weight: int = 1) -> None:
        with self._lock:
            if key not in self:
                self.keep(key, value, weight)


Id: TypeAlias = bytes
Kind: TypeAlias = Literal["commit", "tree", "blob", "tag"]

ID_BYTES: Final = 20
_END_OF_TIME: Final = 253_402_300_799  # the last second of the year 9999: more can be no date
_NUMBERS: Final[dict[Kind, int]] = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_LARGEST: Final[dict[Kind, int]] = {"commit": MIB, "tree": 32 * MIB, "blob": 64 * MIB, "tag": MIB}
_TAGS: Final = 5  # that stand for each other before one stands for a commit


class Commit(NamedTuple):
    tree: Id
    parents: tuple[Id, ...]
    time: float  # seconds since 1970, as its committer said


class TreeItem(NamedTuple):
    mode: bytes
    name: bytes
    id: Id


class Objects:
    """For one thread: the library's objects are not for several. Every method raises SourceUnavailable for an object
    that is missing, damaged, of another kind or larger than anything of its kind should be."""

    def __init__(self, root: OpenedRoot, git_dir: Path) -> None:
        """`root` is the opened `git_dir`."""
        git: Any = library()
        self._root = root
        self._id, self._errors = git.Oid, (git.GitError, KeyError, ValueError, OSError)
        # An empty database with two backends: one that is opened as a whole would follow alternates.
        self._database = git.Odb()
        objects = str(git_dir / "objects")
        try:
            self._database.add_backend(git.OdbBackendPack(objects), 1)
            self._database.add_backend(git.OdbBackendLoose(objects, 0, False), 2)
        except self._errors:
            raise SourceUnavailable("The objects of the repository cannot be opened") from None

    def commit(self, id: Id) -> Commit:
        tree, parents, time = b"", list[Id](), 0.0
        header, _, _ = self.read(id, "commit").partition(b"\n\n")
        try:
            for line in header.split(b"\n"):
                key, _, value = line.partition(b" ")
                if key == b"tree" and not tree:
                    tree = _id(value)
                elif key == b"parent":
                    parents.append(_id(value))
                elif key == b"committer":
                    time = float(min(max(int(value.rsplit(b" ", 2)[1]), 0), _END_OF_TIME))
        except (ValueError, IndexError, OverflowError):
            raise _damaged() from None
        if not tree:
            raise _damaged()
        return Commit(tree, tuple(parents), time)

    def committed(self, id: Id) -> Id | None:
        """The commit that an object is, or that a tag stands for. None for any other."""
        for _ in range(_TAGS):
            number, _ = self._found(id)
            if number != _NUMBERS["tag"]:
                return id if number == _NUMBERS["commit"] else None
            key, _, value = self.read(id, "tag").partition(b"\n")[0].partition(b" ")
            try:
                id = _id(value) if key == b"object" else b""
            except ValueError:
                raise _damaged() from None
        return None

    def tree(self, id: Id) -> list[TreeItem]:
        data, at = self.read(id, "tree"), 0
        items: list[TreeItem] = []
        try:
            while at < len(data):
                space = data.index(b" ", at)
                end = data.index(b"\0", space)
                item = TreeItem(data[at:space], data[space + 1 : end], data[end + 1 : end + 1 + ID_BYTES])
                at = end + 1 + ID_BYTES
                items.append(item)
        except ValueError:
            raise _damaged() from None
        if at > len(data):
            raise _damaged()
        return items

    def size(self, id: Id) -> int:
        """Of a blob, without reading it."""
        return self._header(id, "blob")

    def read(self, id: Id, kind: Kind) -> bytes:
        if self._header(id, kind) > _LARGEST[kind]:
            raise SourceUnavailable(f"The repository has a {kind} that is too large to be read")
        try:
            found: int
            data: bytes
            found, data = self._database.read(self._id(raw=id))
        except self._errors:
            raise _damaged() from None
        if found != _NUMBERS[kind]:
            raise _damaged()
        return data

    def _found(self, id: Id) -> tuple[int, int]:
        """The number of its kind, and its size."""
        self._refuse_links(id)
        try:
            found: tuple[int, int] = self._database.read_header(self._id(raw=id))
        except self._errors:
            raise _damaged() from None
        return found

    def _header(self, id: Id, kind: Kind) -> int:
        found, size = self._found(id)
        if found != _NUMBERS[kind]:
            raise _damaged()
        return size

    def _refuse_links(self, id: Id) -> None:
        """An object in a file of its own must be in that file: a link could lead to objects of others, and opening a
        FIFO would wait for ever. One that is not there stands in a pack; those are looked at by `Repository`."""
        name = id.hex()
        try:
            mode = self._root.stat(("objects", name[:2], name[2:])).st_mode
        except FileNotFoundError:
            return
        except OSError:
            raise _damaged() from None
        if not stat.S_ISREG(mode):
            raise _damaged()


def library() -> ModuleType:
    """Raises SourceUnavailable where it is not installed, and says what to do."""
    try:
        return import_module("pygit2")  # an extra, and few servers need it
    except ImportError:
        raise SourceUnavailable("A git repository needs pygit2: install Octavo with its extra git") from None


def _id(text: bytes) -> Id:
    id = bytes.fromhex(text.decode("ascii"))
    if len(id) != ID_BYTES:
        raise ValueError
    return id


def _damaged() -> SourceUnavailable:
    return SourceUnavailable("An object of the repository is missing or damaged; git fsck tells which")
