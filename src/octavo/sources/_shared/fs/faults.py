"""From OSError to our errors. No text of the operating system leaves: it holds paths of the server."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Final

from octavo.core.errors import (
    Conflict,
    Forbidden,
    InvalidParams,
    NotFound,
    OctavoError,
    SourceUnavailable,
    TooLarge,
    through_a_link,
)
from octavo.core.ref import Ref

# A link that leads nowhere, in circles or out of the root is absent, and so is what stands below a file.
ABSENT: Final = frozenset(
    (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EXDEV, errno.ENAMETOOLONG, errno.EINVAL,
     errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP, errno.ESTALE)
)  # fmt: skip
_SHOWN: Final = 12  # extensions that are named
DENIED: Final = frozenset((errno.EACCES, errno.EPERM))


class StoodOn(FileNotFoundError):
    """The server stands on what would be changed. To whoever only looks whether something is there, it is not."""

    def __init__(self) -> None:
        super().__init__(errno.ENOENT, os.strerror(errno.ENOENT))


class Starts(StoodOn):
    """A client starts what the file says that would be changed."""


def not_found(ref: Ref) -> NotFound:
    uri = str(ref)
    return NotFound(f"Resource not found: {uri}", uri=uri)


def forbidden(ref: Ref) -> Forbidden:
    uri = str(ref)
    return Forbidden(f"Access denied to resource: {uri}", uri=uri)


def unserved(ref: Ref, extension: str, served: Sequence[str]) -> Forbidden:
    """By the name alone: whether there is such a file is not told."""
    what = f"The extension {extension} is not served here" if extension else "A name without an extension is not served"
    some = f"{', '.join(served[:_SHOWN])}{', …' if len(served) > _SHOWN else ''}"
    return Forbidden(f"{what}; served are {some}", uri=str(ref), extension=extension)


def outside(ref: Ref) -> Forbidden:
    return Forbidden("It is outside the folders to which the client has narrowed this server", uri=str(ref))


def fault(error: OSError, ref: Ref) -> OctavoError:
    if error.errno in ABSENT:
        return not_found(ref)
    if error.errno in DENIED:
        return forbidden(ref)
    uri = str(ref)
    if error.errno == errno.EEXIST:
        return Conflict(f"Ambiguous name: several files differ only in Unicode form: {uri}", uri=uri)
    if error.errno == errno.EBADF:
        return SourceUnavailable(
            f"The folder of this source is not there any more, or another stands in its place: {uri}; try again soon",
            retry_after=1.0,
            telling=False,  # it answers as soon as there is a folder again
            uri=uri,
        )
    code = errno.errorcode.get(error.errno or 0, type(error).__name__)  # for the log: the cause is not carried on
    return SourceUnavailable(f"The file system did not answer for {uri} ({code})", retry_after=1.0, uri=uri)


def fault_of_change(error: OSError, ref: Ref) -> OctavoError:
    """For something that should have been written, moved or deleted. Nothing is half done by then."""
    uri = str(ref)
    if isinstance(error, Starts):
        return Forbidden(
            f"{uri} is, holds or would become a file in which an MCP client finds the programs that it starts, so it "
            "is never changed through this server; a person may change it by hand",
            uri=uri,
        )
    if isinstance(error, StoodOn):
        return Forbidden(
            f"{uri} is, holds or would become something that this server stands on, such as its configuration or its "
            "keys; it is changed only by whoever runs the server",
            uri=uri,
        )
    if error.errno == errno.ENOMEDIUM:
        return SourceUnavailable(
            f"Another folder stands in the place of a root, and this process may not write to it: {uri}; nothing was "
            "changed, and the server must be started again",
            telling=False,
            uri=uri,
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SourceUnavailable(f"No space is left for {uri}; nothing was changed. Free some and try again", uri=uri)
    if error.errno == errno.EFBIG:
        return TooLarge(f"The file system does not take a file this large; nothing was changed: {uri}", uri=uri)
    if error.errno == errno.EROFS:
        return Forbidden(f"The file system is read-only: {uri}", uri=uri)
    if error.errno == errno.ELOOP:
        return through_a_link(uri)
    if error.errno == errno.ENOTDIR:
        return Conflict(f"A file stands where {uri} needs a directory; choose another place", uri=uri)
    if error.errno == errno.ESTALE:
        return Conflict(f"Changed by somebody else meanwhile: {uri}; read it again", uri=uri)
    if error.errno == errno.EEXIST:
        return Conflict(f"Something else has this name, or one that looks the same: {uri}; choose another", uri=uri)
    if error.errno in (errno.ENAMETOOLONG, errno.EINVAL):
        return InvalidParams(f"The file system does not take this name: {uri}", uri=uri)
    return fault(error, ref)
