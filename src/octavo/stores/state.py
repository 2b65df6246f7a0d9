"""The state directory: one home for what must survive a restart, and for nothing else.

    .octavo/            0700
      lock              held while the directory is prepared
      version           the layout, "1"
      secret            32 random bytes; cursors, etags, marks and the audit use keys derived from it
      audit/            see `stores.ledger`
      store.db          the store, unless it is elsewhere: what changed, approvals, tasks, hashes of keys …
      serving.lock      shared by whoever uses the state, see `stores.in_use`
      process-*.lock    held by a process for as long as it lives, see `stores.presence`

Losing the secret costs open cursors, equality of redaction marks across the loss, and the means to verify
older audit chains; it never costs data. So a damaged file is set aside and said. A secret that is gone while there
are chains which it sealed stops the start where records must be kept, until somebody has decided. A directory that
cannot be used is fatal where records must be kept (`audit.fail_closed`), and else replaced by memory with a warning.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import SourceUnavailable
from octavo.core.private_folders import check_private, make_private
from octavo.stores.audit.verify import fingerprint

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger(__name__)

VERSION = 1
SECRET_BYTES = 32
UNSERVED = "nothing is served without its record"
LOOK = 0.01  # seconds between two looks whether a lock is free
Purpose = Literal["cursor", "etag", "mark", "audit", "checkpoint", "request-state", "approval", "feed"]

NOT_THROUGH_LINKS = 0 if sys.platform == "win32" else os.O_NOFOLLOW | os.O_NONBLOCK

# Step n brings a directory of version n to n + 1. Each must be repeatable: a kill may come before the
# version file says so.
Migration: TypeAlias = Callable[[Path], None]
MIGRATIONS: Mapping[int, Migration] = MappingProxyType({})


class Fault(NamedTuple):
    """Why something cannot be used, and what that means or what to do."""

    found: str
    advice: str


class StateDirectory:
    """Holds the secret; hands out a key per purpose and the places of files."""

    def __init__(self, path: Path | None, secret: bytes) -> None:
        """Use `open` or `in_memory`. `path` is None in memory."""
        self.path = path
        self._secret = secret

    @classmethod
    def open(cls, path: Path, *, clock: Clock | None = None, fail_closed: bool = False) -> StateDirectory:
        """Prepares `path` and reads its secret. Where that cannot be: with `fail_closed` raises SourceUnavailable, else
        memory takes its place, with a warning. The same where the audit log has no place, but then the rest is kept.

        Safe for several processes at once: they take turns, and all see the same secret.
        """
        fault = cls.fault(path, fail_closed=fail_closed)
        if fault is None:
            try:
                make_private(path)
                status = path.stat()
                _refuse_strangers(status)
                if _shared(status):
                    path.chmod(0o700)
                with turn(path / "lock"):
                    stamp = f"{(clock or SystemClock()).wall():.0f}"
                    lost = cls.lost_secret(path, fail_closed=fail_closed)
                    if lost is not None:
                        _tell(lost, fail_closed)
                    _prepare_layout(path, stamp)
                    state = cls(path, _secret(path, stamp))
            except (OSError, _Newer) as error:
                fault = _unusable(path, error, fail_closed)
            else:
                fault = cls.audit_fault(path, fail_closed=fail_closed)
                if fault is not None:
                    _tell(fault, fail_closed)
                return state
        _tell(fault, fail_closed)
        return cls.in_memory()

    @classmethod
    def fault(cls, path: Path, *, fail_closed: bool) -> Fault | None:
        """Why `open` could not use the folder, as far as a look tells: nothing is made, locked or mended."""
        try:
            check_private(path)
            if path.exists():
                _refuse_strangers(path.stat())
                with contextlib.suppress(FileNotFoundError):
                    os.close(os.open(path / "lock", os.O_RDWR | os.O_CLOEXEC | NOT_THROUGH_LINKS))
                _layout(path)
                _read(path / "secret")
        except (OSError, _Newer) as error:
            return _unusable(path, error, fail_closed)
        return None

    @classmethod
    def audit_fault(cls, path: Path, *, fail_closed: bool) -> Fault | None:
        """Why no record could be kept in a state folder that can be used, as far as a look tells."""
        try:
            check_private(path / "audit", parents=not path.exists())
        except OSError as error:
            found = f"The audit log {path / 'audit'} cannot be used: {error.strerror or error}"
            mend = f"{UNSERVED}. Mend it, or say audit.fail_closed: false"
            return Fault(found, mend if fail_closed else "No request is on record.")
        return None

    @classmethod
    def lost_secret(cls, path: Path, *, fail_closed: bool) -> Fault | None:
        """That the secret is gone, and chains are there which were sealed with it. A new one would verify none of
        them, and once it is in use the old one, brought back, would verify none of those that follow."""
        if _read(path / "secret") is not None:
            return None
        chains = {file.name.partition(".")[0] for file in (path / "audit").glob("*.jsonl")}
        if not chains:
            return None
        found = f"The secret of {path} is gone, with which {len(chains)} audit chain(s) in it are sealed"
        mend = (
            "bring it back from a backup, or move the folder audit elsewhere: its records can still be read, and "
            "nothing vouches for them any more"
        )
        return Fault(found, mend if fail_closed else f"A new one is made, and they no longer verify: {mend}")

    def strange_chains(self) -> int:
        """How many audit chains are there that were sealed with another secret than this one: nothing vouches for them.
        One look at their first lines."""
        if self.path is None:
            return 0
        mine = b'"key":"%b"' % fingerprint(self.key("audit"))
        strange = set[str]()
        for file in (self.path / "audit").glob("*.jsonl"):
            with contextlib.suppress(OSError), file.open("rb") as lines:
                opening = lines.readline(1024)
                if opening.startswith(b'{"chain":"open"') and mine not in opening:
                    strange.add(file.name.partition(".")[0])
        return len(strange)

    @classmethod
    def known(cls, path: Path) -> StateDirectory:
        """What is there, to look at: nothing is made, locked or mended. Raises SourceUnavailable."""
        try:
            secret = _read(path / "secret")
        except OSError as error:
            raise SourceUnavailable(f"The secret of {path} cannot be read: {error.strerror or error}") from None
        if secret is None or len(secret) != SECRET_BYTES:
            raise SourceUnavailable(
                f"There is no secret in {path}, or it is damaged: without it nothing can be verified"
            )
        return cls(path, secret)

    @classmethod
    def in_memory(cls) -> StateDirectory:
        return cls(None, os.urandom(SECRET_BYTES))

    @property
    def audit(self) -> Path | None:
        """Where the audit chains belong; None in memory."""
        return None if self.path is None else self.path / "audit"

    def key(self, purpose: Purpose) -> bytes:
        """32 bytes that reveal neither the secret nor the key of another purpose."""
        return hashlib.blake2b(purpose.encode("ascii"), key=self._secret, person=b"octavo", digest_size=32).digest()

    def __repr__(self) -> str:
        return f"StateDirectory({str(self.path) if self.path else 'in memory'})"


def _unusable(path: Path, error: Exception, fail_closed: bool) -> Fault:
    why = getattr(error, "strerror", None) or error
    mend = f"{UNSERVED}. Mend it, name another one in state.path, or say audit.fail_closed: false"
    lost = "Nothing is kept: the audit log, undo and cursors end with this process."
    return Fault(f"The state folder {path} cannot be used: {why}", mend if fail_closed else lost)


def _tell(fault: Fault, fail_closed: bool) -> None:
    if fail_closed:
        raise SourceUnavailable(f"{fault.found}; {fault.advice}")
    logger.warning("%s. %s", fault.found, fault.advice)


class _Newer(Exception):
    """The layout has a version that this code does not know."""


def _refuse_strangers(status: os.stat_result) -> None:
    """Whoever owns a folder can change what is in it, and what another user makes there its owner may not be able to
    read: nobody keeps state in a folder of somebody else's, not even root."""
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        raise PermissionError(f"it belongs to another user (uid {status.st_uid})")


@contextlib.contextmanager
def turn(lock: Path, *, seconds: float | None = None) -> Generator[None]:
    """One process at a time. The kernel ends the turn of a process that dies. Raises TimeoutError when another has its
    turn for longer than `seconds`, as one that was stopped has."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOT_THROUGH_LINKS, 0o600)
    try:
        if sys.platform != "win32":
            if seconds is None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            else:
                _take(descriptor, SystemClock.monotonic() + seconds)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, until: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if SystemClock.monotonic() >= until:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock") from None
        time.sleep(LOOK)


def _prepare_layout(path: Path, stamp: str) -> None:
    for left_over in path.glob("*.new-*"):  # of a process that was killed in `write_whole`
        left_over.unlink(missing_ok=True)
    found = _layout(path)
    if found is None:
        if os.path.lexists(path / "version"):
            _set_aside(path / "version", "corrupt", stamp)
        write_whole(path / "version", b"%d\n" % VERSION)
        return
    for step in range(found, VERSION):
        MIGRATIONS[step](path)
        write_whole(path / "version", b"%d\n" % (step + 1))


def _layout(path: Path) -> int | None:
    """None where there is none, or one that is damaged. Raises _Newer."""
    text = _read(path / "version") or b""
    found = int(text) if text.strip().isdigit() and len(text) < 8 else 0
    if found > VERSION:
        raise _Newer(f"it was written by a newer Octavo (layout {found})")
    return found or None


def _secret(path: Path, stamp: str) -> bytes:
    file = path / "secret"
    secret = _read(file)
    if secret is not None and len(secret) != SECRET_BYTES:
        _set_aside(file, "corrupt", stamp)
        secret = None
    if secret is not None and _exposed(file):
        _set_aside(file, "exposed", stamp)
        secret = None
    if secret is None:
        secret = os.urandom(SECRET_BYTES)
        write_whole(file, secret)
    return secret


def _exposed(file: Path) -> bool:
    """Whether others could read the secret: it may then be known, for instance from a cloned repository.

    Where the mode cannot be changed the file system has none, and the secret is used as it is.
    """
    if sys.platform == "win32" or not _shared(file.stat()):
        return False
    file.chmod(0o600)
    return not _shared(file.stat())


def _shared(status: os.stat_result) -> bool:
    return bool(stat.S_IMODE(status.st_mode) & 0o077)


def _read(file: Path) -> bytes | None:
    """The first bytes of a small file; None where there is none. A link or a device reads as corrupt."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | NOT_THROUGH_LINKS)
    except FileNotFoundError:
        return None
    except OSError:
        if file.is_symlink():
            return b""
        raise
    try:
        return os.read(descriptor, 4096) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    finally:
        os.close(descriptor)


def read_whole(file: Path, most: int) -> bytes | None:
    """None where there is none. Of a file that is too large one byte too many, which nobody takes for a document."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | NOT_THROUGH_LINKS)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as opened:
        return opened.read(most + 1)


def write_whole(file: Path, body: bytes) -> None:
    """Whole or not at all, also when the process or the machine dies."""
    fresh = file.with_name(f"{file.name}.new-{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            write_all(descriptor, body)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(fresh, file)
    except OSError:
        with contextlib.suppress(OSError):  # the next process that prepares the directory will try again
            os.unlink(fresh)
        raise


def write_all(descriptor: int, body: bytes) -> None:
    """The system may take less than it was given."""
    written = os.write(descriptor, body)
    while written < len(body):
        written += os.write(descriptor, body[written:])


def _set_aside(file: Path, why: str, stamp: str) -> None:
    aside = file.with_name(f"{file.name}.{why}-{stamp}")
    while aside.exists():
        aside = aside.with_name(f"{aside.name}-{os.urandom(2).hex()}")
    os.replace(file, aside)
    reason = "could be read by others" if why == "exposed" else "is damaged"
    logger.warning("The state file %s %s; it is now %s and a new one was made.", file, reason, aside.name)
