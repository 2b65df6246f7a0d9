"""Where changes may be: inotify on Linux, watchfiles elsewhere. Hints only; the snapshot looks for itself."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct, field

from octavo.core.sizes import KIB
from octavo.sources._shared.fs import syscalls

log = logging.getLogger(__name__)

_EVENT: Final = struct.Struct("iIII")
_MASK: Final = (
    syscalls.IN_MODIFY | syscalls.IN_ATTRIB | syscalls.IN_CLOSE_WRITE | syscalls.IN_CREATE | syscalls.IN_DELETE
    | syscalls.IN_MOVED_FROM | syscalls.IN_MOVED_TO | syscalls.IN_DELETE_SELF | syscalls.IN_MOVE_SELF
    | syscalls.IN_ONLYDIR | syscalls.IN_EXCL_UNLINK
)  # fmt: skip
_READS: Final = 4  # at a time: a storm of events must not hold the loop
_SELF: Final = syscalls.IN_DELETE_SELF | syscalls.IN_MOVE_SELF | syscalls.IN_IGNORED


class Batch(Struct):
    """What to look at: names in followed directories, whole directories, or everything."""

    names: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    folders: set[int] = field(default_factory=set[int])
    everything: bool = False

    def __bool__(self) -> bool:
        return bool(self.names or self.folders or self.everything)


class FileHints(Protocol):
    instant: bool  # whether a change can be seen with `pending` as soon as it has happened

    def follow(self, fd: int) -> int | None:
        """Begins to follow an open directory. The handle names it in batches; following twice is harmless.
        None: such a directory needs no following. Raises OSError when it cannot be followed."""
        ...

    def forget(self, handle: int) -> None: ...

    def listen(self, ready: Callable[[], object]) -> None:
        """Calls `ready` on the running loop whenever `take` has something to give."""
        ...

    def take(self, batch: Batch) -> bool:
        """Whether that was everything there was to take, at some moment since the call."""
        ...

    def pending(self) -> bool: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class Inotify:
    """One watch a directory, set through a descriptor: a name could lead elsewhere by the time it is set."""

    instant = True

    def __init__(self) -> None:
        self._fd = syscalls.inotify_init()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._loop: asyncio.AbstractEventLoop | None = None

    def follow(self, fd: int) -> int | None:
        return syscalls.inotify_add_watch(self._fd, b"/proc/self/fd/%d" % fd, _MASK)

    def forget(self, handle: int) -> None:
        try:
            syscalls.inotify_rm_watch(self._fd, handle)
        except OSError:  # the kernel has forgotten it with the directory
            pass

    def listen(self, ready: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, ready)

    def take(self, batch: Batch) -> bool:
        for _ in range(_READS):
            try:
                data = os.read(self._fd, 256 * KIB)
            except BlockingIOError:
                return True
            at = 0
            while at < len(data):
                handle, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                if mask & syscalls.IN_Q_OVERFLOW:
                    batch.everything = True
                elif mask & _SELF:
                    batch.folders.add(handle)
                elif length:
                    name = data[at - length : at].rstrip(b"\0")
                    batch.names.setdefault(handle, set()).add(os.fsdecode(name))
        return False

    def pending(self) -> bool:
        return bool(self._poll.poll(0))

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class NoHints:
    """Nothing is told: everything is looked at from time to time."""

    instant = False

    def follow(self, fd: int) -> int | None:
        return None

    def forget(self, handle: int) -> None: ...
    def listen(self, ready: Callable[[], object]) -> None: ...

    def take(self, batch: Batch) -> bool:
        batch.everything = True
        return True

    def pending(self) -> bool:
        return False

    def stop(self) -> None: ...
    def close(self) -> None: ...


class Watchfiles(NoHints):
    """Says only that something happened somewhere: the kinds that it tells are not to be trusted."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._task: asyncio.Task[None] | None = None

    def listen(self, ready: Callable[[], object]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(ready))

    async def _run(self, ready: Callable[[], object]) -> None:
        from watchfiles import awatch  # not installed on Linux, which has inotify

        try:
            async for _ in awatch(*self._paths, step=5, debounce=20):
                ready()
        except (OSError, RuntimeError) as error:
            log.warning("Changes are found by looking from time to time: %s", type(error).__name__)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


def hints(paths: Sequence[Path]) -> Callable[[], FileHints]:
    """What the platform offers; made when somebody begins to watch."""

    def make() -> FileHints:
        if sys.platform != "linux":
            return Watchfiles(paths)
        try:
            return Inotify()
        except OSError as error:  # too many instances, or a sandbox without inotify
            log.warning("No inotify here: %s", os.strerror(error.errno or 0))
            return NoHints()

    return make
