"""What this machine gives to one configuration, and what to do where it gives too little. Changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import stat
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from octavo.app import confinement as wall
from octavo.app.stores import looked_at
from octavo.config.load import Loaded, state_directory
from octavo.config.sections.source import Kinds
from octavo.config.sections.stores import Postgres, Shared
from octavo.core.clock import SystemClock, iso
from octavo.core.errors import OctavoError, SourceUnavailable
from octavo.core.ports.stores import STORE_FILE, Opens
from octavo.ops.lint import Diagnosis, programs, smells, synchronised
from octavo.sandbox import landlock
from octavo.sources._shared.fs.confine import confinement, has_tmpfile, inotify_limit
from octavo.stores.audit.growth import growth
from octavo.stores.state import StateDirectory

LEAST_PYTHON = (3, 11)
MANY_FOLDERS = 100_000  # where counting ends
EXTRAS = {
    "pdf": "pypdfium2",
    "sheets": "python_calamine",
    "images": "PIL",
    "data": "pyarrow",
    "otel": "opentelemetry.sdk",
    "redis": "redis",
    "postgres": "asyncpg",
}
BEGINNING = 1_735_689_600  # of 2025: no clock that is right shows less


def examine(loaded: Loaded) -> Iterator[Diagnosis]:
    yield _python()
    yield _loop()
    yield _clock()
    yield _kernel()
    yield _landlock(loaded)
    folders = [folder for source in loaded.config.sources.values() for folder in source.folders]
    yield from (_root(one.path) for one in folders)
    yield from (_tmpfile(one.path) for one in folders if one.write)
    roots = [one.path for one in folders if one.files]
    if roots and sys.platform == "linux":
        yield from _inotify(roots)
    yield _state(state_directory(loaded), loaded.config.audit.fail_closed)
    yield _store(loaded)
    if loaded.config.shared is not None:
        yield _shared(loaded.config.shared)
    yield from _audit(loaded)
    if loaded.config.audit.checkpoints is not None:
        yield _checkpoints(loaded.config.audit.checkpoints.path, state_directory(loaded))
    if loaded.config.commands.programs:
        yield from programs(loaded)
    yield from smells(loaded)
    yield from (_extra(name, module) for name, module in (*EXTRAS.items(), *_extras(loaded.kinds)))


def _python() -> Diagnosis:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < LEAST_PYTHON:
        return Diagnosis("python", "problem", found, "use Python 3.11 or later")
    if sys.platform not in ("linux", "darwin"):
        return Diagnosis(
            "python", "less", found, "this system is served read-only, with fewer guarantees: platforms.md"
        )
    return Diagnosis("python", "ok", found)


def _loop() -> Diagnosis:
    if sys.platform != "win32" and not _installed("uvloop"):
        return Diagnosis("loop", "less", "uvloop is not installed", "requests take longer; pip install uvloop")
    return Diagnosis("loop", "ok", "Python's own" if sys.platform == "win32" else "uvloop")


def _clock() -> Diagnosis:
    now = SystemClock().wall()
    if now < BEGINNING:
        return Diagnosis("clock", "problem", iso(now), "set the clock: the audit log and the cache need it")
    if synchronised() is False:
        advice = "let the system keep it right (NTP): tokens, keys and the audit log go by it"
        return Diagnosis("clock", "less", f"{iso(now)}, and nothing keeps it right", advice)
    return Diagnosis("clock", "ok", iso(now))


def _kernel() -> Diagnosis:
    kind = confinement()
    advice = "files are opened part by part, which is slower; Linux 5.6 and later do better" if kind == "walk" else ""
    return Diagnosis("kernel", "less" if kind == "walk" else "ok", f"{platform.release()}, files by {kind}", advice)


def _landlock(loaded: Loaded) -> Diagnosis:
    version, missing = landlock.version(), wall.lacking(loaded)
    if not missing:
        return Diagnosis("landlock", "ok", f"version {version}, applied by octavo serve")
    required = loaded.config.serve.landlock == "require"
    found = f"version {version}, not applied" if version else "not there"
    return Diagnosis("landlock", "problem" if required else "less", found, missing)


def _root(path: Path) -> Diagnosis:
    if not os.access(path, os.R_OK | os.X_OK):
        return Diagnosis(
            "root", "problem", f"{path} cannot be read", "give the user of this process the right to read it"
        )
    return Diagnosis("root", "ok", f"{path} can be read")


def _tmpfile(path: Path) -> Diagnosis:
    if not os.access(path, os.W_OK):
        advice = "give the user of this process the right to write it, or take write: true away"
        return Diagnosis("writing", "problem", f"{path} cannot be written", advice)
    if not has_tmpfile(path):
        advice = "new content stands under a hidden name until it is whole; a crash can leave one behind for a while"
        return Diagnosis("writing", "less", f"{path} has no unnamed files (O_TMPFILE)", advice)
    return Diagnosis("writing", "ok", f"{path} has unnamed files (O_TMPFILE)")


def _inotify(roots: list[Path]) -> Iterator[Diagnosis]:
    folders = _folders(roots)
    told = f"{folders} folders" if folders < MANY_FOLDERS else f"{folders} folders or more"
    watches, queue = inotify_limit("max_user_watches"), inotify_limit("max_queued_events")
    if watches is not None and folders > watches:
        advice = f"changes are found late; as root: sysctl fs.inotify.max_user_watches={max(2 * folders, 524_288)}"
        yield Diagnosis("changes", "less", f"{told}, and {watches} of all users' may be followed", advice)
    elif watches is not None:
        yield Diagnosis("changes", "ok", f"{told}, of {watches} that may be followed")
    if queue is not None:
        short = queue < 16_384
        advice = "after many changes at once everything is looked at again; sysctl fs.inotify.max_queued_events=16384"
        yield Diagnosis("queue", "less" if short else "ok", f"{queue} changes may wait", advice if short else "")


def _folders(roots: list[Path]) -> int:
    count = 0
    for root in roots:
        for _ in os.walk(root):
            count += 1
            if count >= MANY_FOLDERS:
                return count
    return count


def _state(path: Path, closed: bool) -> Diagnosis:
    looks = (StateDirectory.fault, StateDirectory.audit_fault, StateDirectory.lost_secret)
    fault = next(filter(None, (look(path, fail_closed=closed) for look in looks)), None)
    if fault is not None:
        return Diagnosis("state", "problem", fault.found, fault.advice)
    if not path.exists():
        return Diagnosis("state", "ok", f"{path} will be made")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Diagnosis("state", "less", f"{path} has mode {mode:04o}", "octavo serve will make it private (0700)")
    return Diagnosis("state", "ok", f"{path} has mode {mode:04o}")


def _store(loaded: Loaded) -> Diagnosis:
    """Which one it is, and whether it can be used. None is made."""
    section = loaded.config.store
    if isinstance(section, Postgres):
        found = f"PostgreSQL, in the schema {section.tables}"
        if not _installed(EXTRAS["postgres"]):
            return Diagnosis("store", "problem", found, "install Octavo with its extra postgres: docs/install.md")
        return _usable(loaded, found)
    file = state_directory(loaded) / STORE_FILE
    try:
        size = file.lstat().st_size
    except OSError:  # none yet; a folder that cannot be used is said of the state
        return Diagnosis("store", "ok", f"{file} will be made")
    if not os.access(file, os.R_OK | os.W_OK):
        return Diagnosis("store", "problem", f"{file} cannot be written", "give it to the user of this process")
    return _usable(loaded, f"{file} has {size:,} bytes")


def _usable(loaded: Loaded, found: str) -> Diagnosis:
    async def opened(opens: Opens) -> None:
        await (await opens()).keys.get("store")

    try:
        looked_at(loaded, opened)
    except OctavoError as error:
        return Diagnosis("store", "problem", f"{found}: {error.message}", "docs/stores.md says what it needs")
    return Diagnosis("store", "ok", found)


def _shared(section: Shared) -> Diagnosis:
    """Whether it answers: that changes nothing there."""
    if not _installed(EXTRAS["redis"]):
        found = f"a Redis or Valkey, under the name {section.name}"
        return Diagnosis("shared", "problem", found, "install Octavo with its extra redis: docs/install.md")
    from octavo.stores.redis import RedisShared

    async def ask() -> None:
        async with RedisShared(section.url.get_secret_value(), name=section.name, patience=section.time):
            pass

    try:
        asyncio.run(ask())
    except SourceUnavailable as why:
        advice = "servers on one store look by themselves for what others have stored, which is later"
        return Diagnosis("shared", "less", why.message, advice)
    return Diagnosis("shared", "ok", f"a Redis or Valkey that answers, under the name {section.name}")


def _audit(loaded: Loaded) -> Iterator[Diagnosis]:
    """How large the log is and how fast it grows, once there is one."""
    place, options = state_directory(loaded) / "audit", loaded.config.audit
    try:
        found = growth(place, SystemClock().wall())
    except OSError:  # none yet, or none that can be read, which is said of the state
        return
    with contextlib.suppress(SourceUnavailable):  # without a secret, which is said of the state
        strange = StateDirectory.known(state_directory(loaded)).strange_chains()
        if strange:
            advice = "bring the secret back from a backup, or move them elsewhere: nothing vouches for them any more"
            yield Diagnosis("audit log", "less", f"{strange} chain(s) were sealed with another secret", advice)
    days = options.least_age / 86_400
    if (found.per_day or 0) * days > found.free:
        advice = f"nothing is deleted before it is {days:g} days old (audit.min_age): give it more room, or less time"
        yield Diagnosis("audit log", "less", str(found), advice)
    else:
        yield Diagnosis("audit log", "ok", str(found))


def _checkpoints(file: Path, state: Path) -> Diagnosis:
    folder = file.parent
    written = file if file.exists() else folder
    if not folder.is_dir() or not os.access(written, os.W_OK):
        advice = "make or mount it: meanwhile nothing vouches for the audit log, and none of its files is deleted"
        return Diagnosis("checkpoints", "problem", f"{written} cannot be written", advice)
    if state.exists() and folder.stat().st_dev == state.stat().st_dev:
        advice = "whoever can change one can often change the other; name a file on another disk or machine"
        return Diagnosis("checkpoints", "less", f"{file} is on the disk of the audit log", advice)
    return Diagnosis("checkpoints", "ok", f"{file} is on another disk than the audit log")


def _extras(kinds: Kinds) -> list[tuple[str, str]]:
    """That kinds of sources need."""
    records = filter(None, map(kinds.kind, kinds.names))
    return [(record.extra, record.module) for record in records if record.extra]


def _extra(name: str, module: str) -> Diagnosis:
    if not _installed(module):
        advice = f"install Octavo with its extra {name}: docs/install.md"
        return Diagnosis(f"extra {name}", "less", "not installed", advice)
    return Diagnosis(f"extra {name}", "ok", "installed")


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what it is a part of
        return False
