"""One program that runs, seen from the server: what it prints, how it ends, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, Protocol, cast

from octavo.core.errors import InvalidParams, SourceUnavailable
from octavo.core.external import Ended, Opening, Program, RunLimits, WorkFolder
from octavo.core.version import PACKAGE
from octavo.sandbox.landlock import EXECUTE, READ, READ_FILE, WRITE_FILE

_LAUNCH: Final = os.path.join(PACKAGE, "sandbox", "launcher.py")
_MODULES: Final = os.path.dirname(PACKAGE)
_LINES: Final = 4096  # bytes that are read of how it went
_PATIENCE: Final = 5.0  # seconds that the launcher has to kill everything

# Libraries, languages, times, names of users and, where there is a network, of hosts; nothing of other processes.
_SYSTEM: Final = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share", "/usr/libexec", "/nix/store",
    "/gnu/store", "/etc/ld.so.cache", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/localtime",
    "/etc/timezone", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/hosts",
    "/dev/urandom", "/dev/random", "/dev/zero",
)  # fmt: skip
_LOADERS: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")  # in which the kernel looks for what loads programs

Printed = Callable[[int, bytes], None]  # which descriptor, and what


class _Pipe(Protocol):
    def write(self, data: bytes) -> None: ...
    def write_eof(self) -> None: ...
    def get_write_buffer_size(self) -> int: ...
    def is_closing(self) -> bool: ...


class RunningProgram(asyncio.SubprocessProtocol):
    """Whoever starts one waits for its end: `ended` returns when it is reaped and its pipes are closed."""

    def __init__(self, printed: Printed, told: int) -> None:
        """`told` is read when it has ended: how it went, in a few lines."""
        self._loop = asyncio.get_running_loop()
        self._printed = printed
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._told: int | None = told
        self._status = b""
        self._patience: asyncio.TimerHandle | None = None
        self._stdin: _Pipe | None = None
        self.because: Ended = ""

    @classmethod
    async def start(
        cls,
        program: Program,
        arguments: Sequence[str],
        limits: RunLimits,
        place: WorkFolder | None,
        printed: Printed,
        *,
        strict: bool,
    ) -> RunningProgram:
        """Raises InvalidParams for arguments that are too long, SourceUnavailable where no process can be started."""
        told, status = os.pipe()
        running = cls(printed, told)
        try:
            await running._loop.subprocess_exec(
                lambda: running,
                sys.executable, "-S", "-B", "-P", _LAUNCH,
                *_order(status, program, limits, place, strict=strict), program.path, *arguments,
                cwd="/",
                env={"PYTHONPATH": _MODULES, "LANG": "C.UTF-8"},  # of the launcher; the program has its own
                pass_fds=(status,),
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            running._hear()
            if error.errno == errno.E2BIG:
                raise InvalidParams("The arguments are longer than the system can give to a program") from None
            raise SourceUnavailable("No process could be started; try again when fewer are running") from None
        except BaseException:
            running._hear()
            raise
        finally:
            os.close(status)
        return running

    @property
    def alive(self) -> bool:
        return not self._gone.done()

    def type(self, data: bytes, *, end: bool) -> None:
        """Into its standard input, of which `end` says that no more will come. One that has closed it loses nothing."""
        if self.alive and self._stdin is not None and not self._stdin.is_closing():
            if data:
                self._stdin.write(data)
            if end:
                self._stdin.write_eof()
                self._stdin = None

    @property
    def untaken(self) -> int:
        """Bytes that were typed and not yet read."""
        return 0 if self._stdin is None else self._stdin.get_write_buffer_size()

    def ask_to_end(self) -> None:
        self._signal(os.killpg, signal.SIGTERM)

    def kill(self, because: Ended) -> None:
        """With all that it started. The first reason is the one that is told."""
        if self.alive:
            self.because = self.because or because
            self._signal(os.kill, signal.SIGUSR1)  # the launcher ends when nothing is left
            self._patience = self._patience or self._loop.call_later(_PATIENCE, self._signal, os.killpg, signal.SIGKILL)

    async def ended(self) -> None:
        await asyncio.shield(self._gone)

    async def surely_ended(self) -> None:
        """Also for whoever is cancelled meanwhile, who hears of it when it has ended."""
        cancelled: asyncio.CancelledError | None = None
        while self.alive:
            try:
                await self.ended()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def outcome(self) -> tuple[int | None, int, tuple[str, ...]]:
        """Exit code, signal and walls, of one that has ended. Raises SourceUnavailable for one that never ran."""
        code: int | None = None
        number, walls = 0, tuple[str, ...]()
        for line in self._status.decode("ascii", "replace").splitlines():
            match line.split():
                case ["walls", *names]:
                    walls = tuple(names)
                case ["exit", text]:
                    code = int(text)
                case ["signal", text]:
                    number = int(text)
                case ["processes"]:
                    self.because = self.because or "processes"
                case ["failed", step, _]:
                    raise SourceUnavailable(_FAULTS.get(step, "The program could not be started"))
                case _:
                    pass
        if code is None and not number:
            number = signal.SIGKILL
        return code, number, walls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(_Pipe, self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._printed(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._stdin = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport.close()
        if self._patience is not None:
            self._patience.cancel()
        self._hear()
        self._gone.set_result(None)

    def _hear(self) -> None:
        if self._told is not None:
            os.set_blocking(self._told, False)
            try:
                self._status = os.read(self._told, _LINES)
            except BlockingIOError:  # killed before it could say anything
                pass
            os.close(self._told)
            self._told = None

    def _signal(self, send: Callable[[int, int], None], number: int) -> None:
        if self.alive and self._transport.get_returncode() is None:
            try:
                send(self._transport.get_pid(), number)
            except ProcessLookupError:
                pass


_FAULTS: Final = {
    "folder": "The working folder is not there any more; list what is there and try again",
    "limits": "The limits of the program cannot be set on this machine; the operator can change commands.limits",
    "landlock": "The program cannot be confined on this machine; octavo doctor tells the operator why",
    "open": "The program cannot be confined to what you may read: this machine has no Landlock",
    "walls": "The program cannot be confined as commands.confine requires; octavo doctor tells the operator why",
    "program": "The program could not be started; octavo doctor tells the operator why",
}


def _order(status: int, program: Program, limits: RunLimits, place: WorkFolder | None, *, strict: bool) -> list[str]:
    """What `launch` is told, as its arguments."""
    unwalled = place is None or place.open
    numbers = (
        status, program.network, unwalled, strict, limits.cpu, limits.memory, limits.file, limits.files,
        limits.processes,
    )  # fmt: skip
    grants = [f"{READ}:{path}" for path in (*_SYSTEM, *program.reads)]
    grants += [f"{READ | EXECUTE}:{path}" for path in executed(program)]
    grants += [f"{READ_FILE | EXECUTE}:{path}" for path in loaders()]
    grants.append(f"{READ_FILE | WRITE_FILE}:/dev/null")
    where = [] if place is None else [place.root, *(f"/{name}" for name in place.names)]
    openings = [] if place is None else map(opening_word, place.openings)
    env = {"LANG": "C.UTF-8", **program.env}
    return [
        *(str(int(number)) for number in numbers), "--", *grants, "--", *where, "--", *openings, "--",
        *(f"{name}={value}" for name, value in env.items()), "--",
    ]  # fmt: skip


def executed(program: Program) -> list[str]:
    return [os.path.realpath(path) for path in (program.path, *program.runs)]


def readable(program: Program) -> list[str]:
    """All that it may read wherever it works, by the names that these have in truth."""
    return [*map(os.path.realpath, (*_SYSTEM, *program.reads)), *executed(program)]


def opening_word(opening: Opening) -> str:
    return f"{opening.rights}:{opening.device}:{opening.inode}:{'/'.join(opening.names)}"


@cache
def loaders() -> list[str]:
    """What the kernel starts to load a program's libraries."""
    folders = [folder for folder in _LOADERS if os.path.isdir(folder)]
    folders += [entry.path for folder in folders for entry in os.scandir(folder) if entry.name.endswith("-gnu")]
    found = (entry for folder in folders for entry in os.scandir(folder))
    return sorted({os.path.realpath(one.path) for one in found if one.name.startswith(("ld-linux", "ld-musl", "ld64"))})
