"""Confines the server process by Landlock to the files that it needs.

The first wall is our own code. If it is wrong, or a decoder is taken over by a document, this one still stands.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from octavo.config.load import Loaded, prompt_directories
from octavo.config.reference import interpreters
from octavo.core.errors import InvalidParams, SourceUnavailable
from octavo.core.version import PACKAGE
from octavo.sandbox import landlock
from octavo.sandbox.landlock import EXECUTE, MAKE_REG, READ, READ_FILE, WRITE, WRITE_FILE, Grant
from octavo.stores.state import StateDirectory

logger = logging.getLogger(__name__)

_RUN = READ | EXECUTE
_MOVING = 2  # the first version that lets files be moved from one folder to another
# Modules and libraries that are loaded late, names of hosts, certificates, languages, times, and our own process:
# what /proc tells of others the kernel refuses to whoever is walled in.
_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share", "/nix/store", "/gnu/store", "/proc",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ssl", "/etc/pki", "/etc/ca-certificates",
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/passwd",
    "/etc/group", "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/services", "/etc/protocols",
    "/dev/urandom", "/dev/random",
)  # fmt: skip


class Wall:
    """Stands once it is made. A configuration that needs more is for another process."""

    def __init__(self, loaded: Loaded, state: StateDirectory) -> None:
        """Raises OSError where the kernel cannot."""
        needed = [*_needed(loaded)]
        if state.path is not None:
            needed.append(Grant(str(state.path), WRITE))
        landlock.restrict([*needed, *_second_place(loaded), *_of_python(), *(Grant(path, READ) for path in _SYSTEM)])
        # By what they are: another folder in the same place is not the one that was granted.
        self._granted = {
            rights: {found for grant in needed if grant.rights == rights and (found := _identity(grant.path))}
            for rights in (READ, WRITE, _RUN)
        }
        self._granted[READ] |= self._granted[WRITE] | self._granted[_RUN]

    def admit(self, loaded: Loaded) -> None:
        """Raises InvalidParams if this process cannot serve that configuration any more."""
        for path, rights in _needed(loaded):
            above = (Path(os.path.realpath(path)), *Path(os.path.realpath(path)).parents)
            if os.path.exists(path) and not any(_identity(str(one)) in self._granted[rights] for one in above):
                verb = {WRITE: "write to", _RUN: "run"}.get(rights, "read")
                raise InvalidParams(
                    f"restart needed: when it started, this process gave up the right to {verb} {path}; "
                    "serve.landlock: off would keep such rights"
                )


def raise_wall(loaded: Loaded, state: StateDirectory) -> Wall | None:
    """To be called before there is a second thread. Raises SourceUnavailable where a wall is required and cannot be."""
    wanted = loaded.config.serve.landlock
    if wanted == "off":
        return None
    missing = lacking(loaded)
    if not missing:
        threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
        try:
            wall = Wall(loaded, state)
        except OSError as error:
            missing = f"the kernel refuses it: {os.strerror(error.errno or 0)}"
        else:
            if threads > 1:
                logger.warning("Landlock does not hold for %d threads that were running before it", threads - 1)
            return wall
    if wanted == "require":
        raise SourceUnavailable(f"serve.landlock is require, and Landlock cannot be used: {missing}")
    logger.info("without Landlock: %s", missing)
    return None


def lacking(loaded: Loaded) -> str:
    """Why there would be no wall; empty where there would be one."""
    version, wanted = landlock.version(), loaded.config.serve.landlock
    if wanted == "off":
        return "serve.landlock is off"
    if not version:
        return "this kernel has none, or it is switched off (Linux 5.13 and later, with landlock among lsm=)"
    if version < _MOVING and any(_writable(loaded)):
        return "this kernel's is too old for folders that may be written (Linux 5.19 and later)"
    if (loaded.config.plugins or loaded.config.tools.dirs) and wanted == "auto":
        return "there is code of your own, and what it needs is not known (serve.landlock: require confines it too)"
    return ""


def _needed(loaded: Loaded) -> Iterator[Grant]:
    """What one configuration needs, and another may not."""
    for source in loaded.config.sources.values():
        needs = source.record.needs(source)
        for folder in needs.folders:
            places = _places(folder.path) if folder.files else (folder.path,)
            yield from (Grant(str(place), WRITE if folder.write else READ) for place in places)
        yield from (Grant(str(place), READ) for place in needs.reads)
        yield from (Grant(os.path.realpath(program), _RUN) for program in needs.programs)
    if loaded.config.commands.programs:
        yield from _of_programs(loaded)
    yield from (Grant(str(folder), READ) for folder in prompt_directories(loaded))
    yield from (Grant(str(folder), READ) for folder in loaded.config.tools.dirs)
    yield from (Grant(str(plugin.path.parent), READ) for plugin in loaded.config.plugins if plugin.path is not None)
    yield from (Grant(str(file), READ) for file in loaded.secret_files)
    if (tls := loaded.config.serve.http.tls) is not None:
        yield from (Grant(str(file.parent), READ) for file in (tls.cert, tls.key))  # a renewed one is a new file
    if loaded.file is not None:
        yield Grant(str(loaded.file.parent), READ)  # the folder: editors put a new file in place of the old one


def _places(root: Path) -> Iterator[Path]:
    """A root that is a link is made to lead to another folder beside the one that it leads to now: such as one release
    after the other."""
    yield root
    if root.is_symlink():
        yield Path(os.path.realpath(root)).parent


def _of_programs(loaded: Loaded) -> Iterator[Grant]:
    """What the launcher, which is inside the wall too, can pass on to a program."""
    for program in loaded.config.commands.programs.values():
        path = program.run[0]
        for runs in (path, *interpreters(path), *map(str, program.runs)):
            yield Grant(os.path.realpath(runs), _RUN)
        yield from (Grant(str(reads), READ) for reads in program.reads)
    yield from (Grant(path, READ) for path in ("/usr/libexec", "/dev/zero"))


def _second_place(loaded: Loaded) -> Iterator[Grant]:
    """Where checkpoints are appended. What stands there already cannot be shortened or deleted."""
    checkpoints = loaded.config.audit.checkpoints
    if checkpoints is not None:
        yield Grant(str(checkpoints.path.parent), WRITE_FILE | MAKE_REG)


def _of_python() -> Iterator[Grant]:
    """Where modules are, and the one program that is always needed: this interpreter, to read documents."""
    here = os.path.realpath(".")
    modules = [path for path in sys.path if path and os.path.realpath(path) != here]
    for path in {sys.prefix, sys.base_prefix, sys.exec_prefix, PACKAGE, *modules}:
        yield Grant(path, READ)
    yield Grant(os.path.realpath(sys.executable), READ_FILE | EXECUTE)
    for path in landlock.mapped_files():
        loads_programs = os.path.basename(path).startswith(("ld-", "ld.", "ld64"))
        yield Grant(path, READ_FILE | EXECUTE) if loads_programs else Grant(os.path.dirname(path), READ)
    yield Grant("/dev/null", READ_FILE | WRITE_FILE)


def _writable(loaded: Loaded) -> Iterator[bool]:
    return (folder.write for source in loaded.config.sources.values() for folder in source.folders)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
