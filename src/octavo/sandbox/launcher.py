"""Between the server and a program: makes the walls, starts the program inside them, and ends when it has ended.

Run by path, never imported by the server, since what is done here cannot be undone in a process. Arguments, with `--`
between them: numbers; grants for Landlock as `rights:path`; the root and the names of the working folder, each after a
slash; what may be opened there, as `rights:device:inode:names`; the environment; the program and its arguments. Says on
a descriptor of its own how it went, a word a line.

With namespaces there are three processes: this one, which the server knows; the first of the namespace, with whose end
the kernel kills all others in it; and the program. If the server dies, so do all of them.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

from octavo.sandbox import landlock

_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_DIE_WITH_PARENT, _ADOPT_ORPHANS = 1, 36  # of prctl
_BEAT: Final = 0.1  # seconds between two counts of processes
_LONG: Final = 3600.0
_OURS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # meant for the program: we end when it does
_PYTHONS: Final = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by this interpreter, and by no other program
_KILL: Final = signal.SIGUSR1  # by which the server says that all shall end at once
_FAILED: Final = 127


def descendants() -> set[int]:
    """As the machine numbers them, whose /proc this is. Empty where it cannot be seen; what has ended is none."""
    try:
        above = int(os.readlink("/proc/self"))
        parents = {int(name): parent for name in os.listdir("/proc") if name.isdigit() and (parent := _parent(name))}
    except OSError:
        return set()
    found = {above}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return found - {above}


def ever() -> float:
    """How many processes there have been in this namespace, for less than the price of counting them."""
    try:
        return int(_content("/proc/sys/kernel/ns_last_pid"))
    except (OSError, ValueError):
        return float("inf")


def _parent(name: str) -> int:
    """0 for one that is gone or has ended."""
    try:
        state, parent = _content(f"/proc/{name}/stat").rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return 0
    return 0 if state == b"Z" else int(parent)


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 512)
    finally:
        os.close(fd)


class LaunchOrder(NamedTuple):
    status: int  # the descriptor
    network: bool
    open: bool  # whether it may run where Landlock cannot hold it
    strict: bool  # rather fail than lack a wall
    cpu: int
    memory: int
    file: int
    files: int
    processes: int
    grants: list[landlock.Grant]
    place: list[str]
    openings: list[str]
    env: dict[str, str]
    argv: list[str]


def main() -> None:
    order = _ordered(sys.argv[1:])
    os.set_inheritable(order.status, False)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, _KILL})
    for number in _OURS:
        signal.signal(number, signal.SIG_IGN)
    _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    walls = _apart(order)
    if "processes" in walls:
        first = os.fork()
        if first:
            _let_go()
            _until_all_ended(first)
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    else:
        _prctl(_ADOPT_ORPHANS, 1)
    program = os.fork()
    if not program:
        _become(order, walls)
    _let_go()
    # Where the kernel cannot count them, we do: it never counts root's, nor in a namespace of others.
    counts = order.processes if "user" not in walls else 0
    _until_ended(program, order.status, counts, alone="processes" in walls)


def _ordered(words: list[str]) -> LaunchOrder:
    parts: list[list[str]] = [[]]
    for index, word in enumerate(words):
        if word == "--":
            parts.append([])
            if len(parts) == 6:
                parts[-1] = words[index + 1 :]
                break
        else:
            parts[-1].append(word)
    numbers, grants, place, openings, env, argv = parts
    status, network, unwalled, strict, cpu, memory, file, files, processes = map(int, numbers)
    split = [grant.partition(":") for grant in grants]
    return LaunchOrder(
        status, bool(network), bool(unwalled), bool(strict), cpu, memory, file, files, processes,
        [landlock.Grant(path, int(rights)) for rights, _, path in split],
        place,
        openings,
        {name: value for name, _, value in (pair.partition("=") for pair in env)},
        argv,
    )  # fmt: skip


def _apart(order: LaunchOrder) -> list[str]:
    """Namespaces of our own, as many as this user may make."""
    if sys.platform != "linux":
        return []
    user, group = os.geteuid(), os.getegid()
    own = 0 if user == 0 else _NEWUSER  # what is root's already needs none
    network = 0 if order.network else _NEWNET
    for flags in (own | _NEWPID | network, own | _NEWPID, own | network):
        if flags and _libc().unshare(ctypes.c_int(flags)) == 0:
            if flags & _NEWUSER:
                _keep_names(user, group)
            named = ((_NEWUSER, "user"), (_NEWPID, "processes"), (_NEWNET, "network"))
            return [name for flag, name in named if flags & flag]
    return []


def _keep_names(user: int, group: int) -> None:
    """Without it the program is nobody to itself, which is less convenient and not less safe."""
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
            try:
                os.write(fd, text.encode())
            finally:
                os.close(fd)
    except OSError:
        pass


def _become(order: LaunchOrder, walls: list[str]) -> NoReturn:
    """The program. Whatever fails before it runs is told."""
    _prctl(_DIE_WITH_PARENT, signal.SIGKILL)  # where it is in no namespace that would end
    step = "folder"
    try:
        folder = _entered(order.place)
        step = "limits"
        _limit(order, counted="user" in walls)
        step = "landlock"
        if landlock.version():
            opened = () if folder is None else _opened(folder, order.openings)
            landlock.restrict(order.grants, opened, alone=True, tcp=order.network)
            walls.append("landlock")
        elif not order.open and not order.strict:
            step = "open"
            raise OSError(0, "")
        step = "walls"
        needed = {"landlock", "processes", *(() if order.network else ("network",))}
        if order.strict and not needed.issubset(walls):
            raise OSError(0, "")
        step = "program"
        for number in (*_OURS, *_PYTHONS):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _tell(order.status, "walls " + " ".join(sorted(walls)))
        os.execve(order.argv[0], order.argv, order.env)  # noqa: S606  # a shell is what must not be
    except OSError as error:
        _tell(order.status, f"failed {step} {error.errno}")
    os._exit(_FAILED)


def _entered(place: list[str]) -> int | None:
    """The working folder, by its names one after the other, so that no link can lead elsewhere."""
    if not place:
        os.chdir("/")
        return None
    folder = os.open(place[0], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in place[1:]:
        folder = os.open(name[1:], os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    os.fchdir(folder)
    return folder


def _opened(folder: int, openings: list[str]) -> Iterator[tuple[int, int]]:
    """What is not any more what it was is left out."""
    for opening in openings:
        rights, device, inode, path = opening.split(":", 3)
        fd = os.dup(folder)
        try:
            for name in path.split("/") if path else ():
                above, fd = fd, os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                os.close(above)
            found = os.fstat(fd)
            if (found.st_dev, found.st_ino) == (int(device), int(inode)):
                yield fd, int(rights)
        except (FileNotFoundError, NotADirectoryError):
            continue
        finally:
            os.close(fd)


def _limit(order: LaunchOrder, *, counted: bool) -> None:
    """`counted`: the kernel counts processes in this namespace alone, not all that the user has."""
    for what, most in (
        (resource.RLIMIT_CPU, order.cpu),
        (resource.RLIMIT_AS, order.memory),
        (resource.RLIMIT_FSIZE, order.file),
        (resource.RLIMIT_NOFILE, order.files),
        (resource.RLIMIT_CORE, 0),
        *(((resource.RLIMIT_NPROC, order.processes),) if counted else ()),
    ):
        _, ceiling = resource.getrlimit(what)
        most = most if ceiling == resource.RLIM_INFINITY else min(most, ceiling)
        # Of processor time one second more: by then a program has been told that it is over.
        last = most + 1 if what == resource.RLIMIT_CPU and ceiling == resource.RLIM_INFINITY else most
        resource.setrlimit(what, (most, last))


def _until_all_ended(first: int) -> NoReturn:
    """The kernel lets the first of a namespace end when all others have."""
    while not os.waitpid(first, os.WNOHANG)[0]:
        if signal.sigwait({signal.SIGCHLD, _KILL}) == _KILL:
            os.kill(first, signal.SIGKILL)
    os._exit(0)


def _until_ended(program: int, status: int, most: int, *, alone: bool) -> NoReturn:
    if most:
        _come_first()
    ended: int | None = None
    while ended is None:
        while (found := _reaped()) is not None:
            if found[0] == program:
                ended = found[1]
        if ended is None:
            if most and (not alone or ever() > most) and len(descendants()) > most:
                _tell(status, "processes")
                break
            found_out = signal.sigtimedwait({signal.SIGCHLD, _KILL}, _BEAT if most else _LONG)
            if found_out is not None and found_out.si_signo == _KILL:
                break
    if not alone:
        _kill_all()
    if ended is not None:
        code = os.waitstatus_to_exitcode(ended)
        _tell(status, f"exit {code}" if code >= 0 else f"signal {-code}")
    os._exit(0)  # the first of a namespace takes all others along


def _come_first() -> None:
    """Before all that the program starts, however much that is, where this user may."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except (OSError, AttributeError):
        pass


def _reaped() -> tuple[int, int] | None:
    try:
        pid, state = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, state) if pid else None


def _kill_all() -> None:
    """Until none is left: what is started meanwhile is found the next time."""
    while below := descendants():
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        while _reaped() is not None:
            pass
        signal.sigtimedwait({signal.SIGCHLD}, _BEAT)


def _let_go() -> None:
    """Of what the program reads and writes: others must see when it closes that."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def _tell(status: int, words: str) -> None:
    os.write(status, f"{words}\n".encode())


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc().prctl(option, value, 0, 0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    main()
