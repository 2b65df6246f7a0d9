"""Which programs a process and all its descendants start: asked of the kernel by ptrace, which needs no privilege for
one's own children and lets none slip through. For a process that has no other children: it waits for all of them.

    python -m tests.security.tracing COMMAND [ARGUMENT...]      prints each, as JSON
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from typing import NamedTuple

_CONT, _SEIZE, _LISTEN = 7, 0x4206, 0x4208
_FORK, _VFORK, _CLONE, _EXEC, _KILL_ON_EXIT = 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 20
_EXECUTED, _STOPPED = 4, 128
_ALL = 0x40000000  # __WALL


class Started(NamedTuple):
    program: str
    argv: tuple[str, ...]


class Trace:
    """Follows a child of this process from now on. `started` is complete once `ended` has returned."""

    def __init__(self, pid: int) -> None:
        self.started: list[Started] = []
        self._seized = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(pid,), daemon=True)
        self._thread.start()
        assert self._seized.wait(20)

    def ended(self) -> list[Started]:
        self._thread.join(60)
        assert not self._thread.is_alive(), "something that was started still runs"
        return self.started

    def _follow(self, pid: int) -> None:
        _ptrace(_SEIZE, pid, _FORK | _VFORK | _CLONE | _EXEC | _KILL_ON_EXIT)
        self._seized.set()
        alive = {pid}
        while alive:
            try:
                found, status = os.waitpid(-1, _ALL)
            except ChildProcessError:
                return
            if not os.WIFSTOPPED(status):
                alive.discard(found)
                continue
            alive.add(found)
            event, number = status >> 16, os.WSTOPSIG(status)
            if event == _EXECUTED:
                self.started.append(_described(found))
            if event == _STOPPED and number != signal.SIGTRAP:
                _resume(_LISTEN, found, 0)
            else:
                _resume(_CONT, found, 0 if event else number)


def _described(pid: int) -> Started:
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")[:-1]
    except OSError:  # killed meanwhile
        return Started("?", ())
    return Started(program, tuple(word.decode("utf-8", "surrogateescape") for word in words))


def _resume(how: int, pid: int, number: int) -> None:
    try:
        _ptrace(how, pid, number)
    except ProcessLookupError:  # killed meanwhile
        pass


def _ptrace(request: int, pid: int, data: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, pid, None, data) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def traced(command: list[str]) -> list[Started]:
    # It waits until it is followed.
    process = subprocess.Popen(["/bin/sh", "-c", 'read x; exec "$@"', "sh", *command], stdin=subprocess.PIPE)
    trace = Trace(process.pid)
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.close()  # and no wait: that would take its stops from the tracer
    return trace.ended()


if __name__ == "__main__":
    for one in traced(sys.argv[1:]):
        print(json.dumps(one))
