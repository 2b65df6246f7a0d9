"""Where a branch is: HEAD, a file below refs/heads, or a line of packed-refs. Read by ourselves, through the same
confinement as files, and looked at again only when one of these files has changed."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final, NamedTuple, TypeAlias

from octavo.core.clock import Clock
from octavo.core.errors import SourceUnavailable
from octavo.core.sizes import MIB
from octavo.sources._shared.fs.confine import OpenedRoot
from octavo.sources._shared.fs.reading import contents
from octavo.sources._shared.fs.stats import identity, is_settled
from octavo.sources._shared.git.branches import is_branch
from octavo.sources._shared.git.objects import ID_BYTES, Id

Names: TypeAlias = tuple[str, ...]

_HEAD: Final = ("HEAD",)
_PACKED: Final = ("packed-refs",)
_STEPS: Final = 5  # from one symbolic reference to the next
_SMALL: Final = 4096  # bytes of a file with one reference
_LARGE: Final = 64 * MIB  # of one with all of them
_ABSENT: Final = (errno.ENOENT, errno.ENOTDIR)


class _RefFile(NamedTuple):
    names: Names
    identity: object | None  # None: it is not there
    settled: bool
    data: bytes = b""


class _RefLook(NamedTuple):
    files: tuple[_RefFile, ...]
    commit: Id | None


class Refs:
    """One branch; `branch` None is the one that HEAD names, or the commit that it is detached at."""

    def __init__(self, root: OpenedRoot, branch: str | None, clock: Clock) -> None:
        self._root, self._clock = root, clock
        self._begin: Names = _HEAD if branch is None else ("refs", "heads", *branch.split("/"))
        self._look: _RefLook | None = None

    def commit(self, *, wait: bool = True) -> Id | None:
        """None while there is no such branch. Raises SourceUnavailable for what is no reference; with `wait=False`
        BlockingIOError when only the disk can tell."""
        try:
            look = self._look
            if look is None or not all(self._is_same(file, wait) for file in look.files):
                look = self._look = self._looked(wait)
        except BlockingIOError:
            raise
        except OSError as error:
            raise _unreadable(error) from None
        return look.commit

    def tag(self, name: str) -> Id | None:
        """What a tag stands for: a commit, or an object that names one. Raises SourceUnavailable for a damaged one."""
        if not is_branch(name):
            return None
        names = ("refs", "tags", *name.split("/"))
        try:
            file = self._read(names, _SMALL, wait=True)
            data = self._read(_PACKED, _LARGE, wait=True).data if file.identity is None else b""
        except OSError as error:
            raise _unreadable(error) from None
        return _in_packed(data, "/".join(names)) if file.identity is None else _parsed(file.data.strip())

    def folders(self) -> list[Names]:
        """Those in which a file appears, goes or changes when the branch moves."""
        files = (self._begin, _PACKED) if self._look is None else [file.names for file in self._look.files]
        return sorted({names[:length] for names in files for length in range(len(names))})

    def _is_same(self, file: _RefFile, wait: bool) -> bool:
        return file.settled and self._identity(file.names, wait) == file.identity

    def _identity(self, names: Names, wait: bool) -> object | None:
        try:
            found = self._root.stat(names, wait=wait)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise
        return None if stat.S_ISDIR(found.st_mode) else identity(found)

    def _looked(self, wait: bool) -> _RefLook:
        """A branch that stands in both places is where its own file says."""
        files: list[_RefFile] = []
        names = self._begin
        for _ in range(_STEPS):
            file = self._read(names, _SMALL, wait)
            files.append(file)
            if file.identity is None:
                packed = self._read(_PACKED, _LARGE, wait)
                return _RefLook((*files, packed._replace(data=b"")), _in_packed(packed.data, "/".join(names)))
            text = file.data.strip()
            if not text.startswith(b"ref:"):
                return _RefLook(tuple(files), _parsed(text))
            names = _symbolic(text)
        raise _no_reference()

    def _read(self, names: Names, largest: int, wait: bool) -> _RefFile:
        try:
            fd = self._root.open(names, "read", wait=wait)
        except OSError as error:
            if error.errno in _ABSENT:
                return _RefFile(names, None, settled=True)
            raise
        try:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                return _RefFile(names, None, settled=True)  # a folder of branches, and no branch
            if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
                raise _no_reference()
            data = bytes(contents(fd, found.st_size, wait=wait))
            settled = is_settled(found, self._clock.wall()) and identity(os.fstat(fd)) == identity(found)
        finally:
            os.close(fd)
        return _RefFile(names, identity(found), settled, data)


def _symbolic(text: bytes) -> Names:
    name = text.removeprefix(b"ref:").strip().decode("utf-8", "replace")
    if name == "refs/heads/.invalid":
        raise SourceUnavailable(
            "The repository keeps its references as a reftable, which is not supported: "
            "git refs migrate --ref-format=files changes that"
        )
    branch = name.removeprefix("refs/heads/")
    if branch == name or not is_branch(branch):
        raise _no_reference()
    return ("refs", "heads", *branch.split("/"))


def _in_packed(data: bytes, name: str) -> Id | None:
    at = data.find(b" %s\n" % name.encode("utf-8"))
    return None if at < 0 else _parsed(data[data.rfind(b"\n", 0, at) + 1 : at])


def _parsed(text: bytes) -> Id:
    try:
        id = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise _no_reference() from None
    if len(id) == 32:
        raise SourceUnavailable("The repository uses SHA-256 ids, which are not supported")
    if len(id) != ID_BYTES:
        raise _no_reference()
    return id


def _unreadable(error: OSError) -> SourceUnavailable:
    code = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return SourceUnavailable(f"The references of the repository cannot be read ({code})")


def _no_reference() -> SourceUnavailable:
    return SourceUnavailable("A reference of the repository is damaged, or leads where none should")
