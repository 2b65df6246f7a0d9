"""The audit ledger: JSON lines, one chain of files per process, one keyed hash per batch.

    {"chain":"open","version":1,"id":…,"part":0,"key":…,"first":0,"prev":…,"mac":…}
    {…}                                                      records, as they were appended
    {"chain":"batch","number":1,"records":2,"mac":…}         seals every byte since the previous mac
    …
    {"chain":"next","number":7,"file":…,"mac":…}             the chain goes on in that file
    {"chain":"close","number":9,"mac":…}                     or it ended in good order

Each mac is an HMAC-SHA256 over the previous mac and all bytes since, the line's own beginning included.
A new part carries the last mac of the part before it, and `first`, the oldest part that retention kept.
At a clean close `<chain>.head` keeps the last number and mac outside the file.

What `verify` finds, without the key being known to the forger: every edited, deleted, added or swapped
line, batch or part; a file that was renamed or moved to another chain; truncation of a part that has a
successor and of a chain that was closed; a first part that was emptied. The process that writes a chain
looks at its size too: what is cut off meanwhile it marks in the chain.

What it cannot find: a chain that never closed (the process was killed, or still runs) and was cut off
exactly behind a batch line looks like one that was killed earlier, so it is reported as `open`; a last part
that was emptied, but for the first, looks like one that was about to be written; a closed chain whose file
was cut and whose head was deleted looks the same; a chain whose files were all deleted is not seen at all;
whoever has the key can write what he likes. Checkpoints at a place that the server cannot rewrite are the
answer to these: see `stores.checkpoints`.

Records behind the last batch line are what a kill in mid-write leaves. They are a warning ("incomplete
tail"): no answer left for them, and nothing vouches for them.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from octavo.core.clock import Clock, SystemClock, iso
from octavo.core.errors import Unrecorded
from octavo.core.private_folders import check_private, make_private
from octavo.core.sizes import MIB
from octavo.stores.audit.growth import growth
from octavo.stores.audit.reserve import Reserve
from octavo.stores.audit.retention import forget_chains, settled_before
from octavo.stores.audit.summaries import Kind, Summaries
from octavo.stores.audit.verify import Report, fingerprint, seal, verify
from octavo.stores.state import write_all

__all__ = ["FileLedger", "MemoryLedger", "Report", "verify"]

logger = logging.getLogger(__name__)

CANNOT = "The audit log cannot be written"
CUT = "something was cut off its file; a restart begins a new chain"
UNNAMED = ".new"
MAX_PENDING = 65_536  # records that wait for a disk that refuses them
DAY = 86_400.0
LOOK = 1.0  # seconds after which it is looked whether the file still stands where it was made


class Head(NamedTuple):
    """Where a chain stands: its last number and mac commit to everything before them."""

    part: int  # in which the number stands
    first: int  # the oldest part that retention keeps
    number: int
    mac: bytes
    closed: bool


Told: TypeAlias = Callable[[bytes], None]  # hears of every record as it comes in


class MemoryLedger:
    """Keeps the last `keep` flushed records. For tests, and for a state directory that cannot be written."""

    def __init__(self, *, keep: int = 10_000, told: Told | None = None) -> None:
        self._pending: list[bytes] = []
        self._records: deque[bytes] = deque(maxlen=keep)
        self.append = _intake(self._pending, told)

    def flush(self) -> None:
        if self._pending:
            self._records.extend(self._pending)
            self._pending.clear()

    def intend(self, record: bytes) -> None:
        self.append(record)
        self.flush()

    def settle(self, record: bytes, *, now: bool) -> bool:
        self.append(record)
        if now:
            self.flush()
        return now

    def crowd(self, record: bytes, who: str, op: str, outcome: str) -> None:
        self.append(record)

    def check(self) -> None:
        self.flush()

    def close(self) -> None:
        self.flush()

    @property
    def records(self) -> Sequence[bytes]:
        """What was flushed, oldest first."""
        return tuple(self._records)


class FileLedger:
    """One process's chain of audit files.

    `append` may be called from the event loop and `flush` from any thread. A flush that returns promises
    that everything appended before it was called is in the file (`sync="batch"`: handed to the operating
    system, safe from a kill) or on the disk (`sync="always"`: safe from a power cut).

    When a write fails the records stay and go out with the next flush that succeeds, so none is lost or
    doubled; `fail_closed=False` gives them up instead, warns once, and the next batch line says how many
    are `lost`. No file is made before there is a record.

    What is changed has two records: `intend` stores the first, or nothing begins; `settle` takes the second, for
    which room is held, so that a disk that fills up in between can still take it.

    Of the parts whose last record is older than `min_age` seconds those beyond `keep` are deleted, and those that are
    older than `max_age`; with `kept=True` only when `prune` says so, and older chains are then somebody else's business
    too.
    """

    def __init__(
        self,
        directory: Path,
        key: bytes,
        *,
        sync: Literal["batch", "always"] = "batch",
        max_bytes: int = 64 * MIB,
        keep: int = 16,
        clock: Clock | None = None,
        fail_closed: bool = True,
        max_age: float | None = None,
        min_age: float = 0.0,
        kept: bool = False,
        told: Told | None = None,
    ) -> None:
        if keep < 2:
            raise ValueError("keep must be at least 2: the part that is written and the one before")
        clock = clock or SystemClock()
        self._wall, self._monotonic = clock.wall, clock.monotonic
        moment = datetime.fromtimestamp(self._wall(), UTC)
        self.chain = f"{moment:%Y%m%dT%H%M%SZ}-{os.getpid()}-{os.urandom(4).hex()}"
        self._directory, self._key = directory, key
        self._always, self._max_bytes, self._keep, self._fail_closed = sync == "always", max_bytes, keep, fail_closed
        self._max_age, self._min_age, self._kept = max_age, min_age, kept
        self._summaries = Summaries(self.chain.rpartition("-")[2])
        self._counts: int | None = None  # the file in which they stand until they are in the chain
        self._counted = 0  # bytes that it has
        self._pending: list[bytes] = []
        self._owed: list[bytes] = []  # outcomes of what was intended
        self._reserve = Reserve(directory)
        self._looks_at = 0.0
        self._told = told
        self._turn = threading.Lock()
        self._file: int | None = None
        self._part = self._first = self._oldest = self._number = self._size = self._lost = 0
        self._begun = 0.0  # when the part at hand was made
        self._ends: list[float] = []  # when each part before it was left
        self._warns_at = 0.0  # when it may be said again that nothing is old enough to be deleted
        self._declared = 0  # what the last opening line that is stored says of `first`
        self._mac: bytes = bytes(32)
        self._closed = self._closing = self._warned = self._torn = self._cut = False
        self._named = True  # whether the first part stands under its own name, which it gets with its first batch
        self.append = _intake(self._pending, told)

    def flush(self) -> None:
        """Writes what is pending and its chain line with one system call. Raises Unrecorded: see the class."""
        if not (self._pending or self._owed or self._summaries.fresh):
            return
        with self._turn:
            self._flush()

    def crowd(self, record: bytes, who: str, op: str, outcome: str) -> None:
        now = self._wall()
        if self._summaries.over(now):
            self._sum_up()
        if not self._summaries.counts(Kind(who, op, outcome), now):
            self.append(record)
        elif self._told is not None:
            self._told(record)

    def forgot(self, chain: str, written: float) -> None:
        """An older chain is deleted, whose last record was written then. That is on record as well."""
        now = self._wall()
        facts = {"chain": chain, "last": iso(written), "age": round(now - written)}
        said = {"time": iso(now), "id": f"{chain.rpartition('-')[2]}-gone", "who": "octavo", "op": "retention"}
        self._pending.append(json.dumps({**said, "outcome": "ok", **facts}, separators=(",", ":")).encode())

    def intend(self, record: bytes) -> None:
        with self._turn:
            try:
                if self._fail_closed:
                    self._reserve.hold()
                self._looks_at = 0.0  # whatever the hour: a change is worth a look
                self._store(record)
            except OSError as error:
                self._refused(error, further=1)
        if self._told is not None:
            self._told(record)

    def settle(self, record: bytes, *, now: bool) -> bool:
        self._owed.append(record)
        if self._told is not None:
            self._told(record)
        if not now:
            return False
        with self._turn, contextlib.suppress(Unrecorded):
            self._flush()
        return record not in self._owed

    def check(self) -> None:
        with self._turn:
            self._flush()
            try:
                if self._file is not None:
                    self._look()
                check_private(self._directory, parents=False)
            except OSError as error:
                self._refused(error)

    def close(self) -> None:
        """Flushes, seals the chain and notes its head. What is appended afterwards makes `flush` fail."""
        with self._turn:
            if self._closed:
                return
            self._closing = True
            try:
                self._flush()
            finally:
                self._closed = True
                self._finish()

    def head(self) -> Head | None:
        """None before the first record."""
        with self._turn:
            if not self._number:
                return None
            part = self._part if self._size else self._part - 1
            return Head(part, self._first, self._number, self._mac, self._closed)

    def rotate(self, *, older: float) -> None:
        """Goes on in a new part if the one at hand was begun more than `older` seconds ago and has records."""
        with self._turn:
            if self._file is not None and self._size and self._wall() - self._begun > older:
                self._rotate()

    def prune(self, first: int) -> None:
        """Deletes parts before `first`, if the chain itself has said that they go."""
        with self._turn:
            self._prune(min(first, self._declared))

    def _finish(self) -> None:
        if self._file is None:
            return
        try:
            self._write(b'{"chain":"close","number":%d' % (self._number + 1))
            self._write_head()
        except OSError as error:  # the chain will verify as `open`
            logger.warning("The audit log was not closed in good order: %s", error.strerror or error)
        os.close(self._file)
        self._file = None
        self._reserve.release()
        if self._counts is not None:
            os.close(self._counts)
            self._counts = None

    def _flush(self) -> None:
        if not (self._pending or self._owed or self._summaries.fresh or self._closing):
            return
        try:
            if self._reserve.spent:
                self._reserve.hold()  # what room there is belongs to outcomes first
            self._store()
        except OSError as error:
            if self._owed and self._fail_closed:
                self._settle()
            self._refused(error)

    def _settle(self) -> None:
        """Outcomes alone, into the room that was held for them. What still does not fit waits."""
        self._reserve.release()
        with contextlib.suppress(OSError):
            count = len(self._owed)
            self._batch(self._owed[:count])
            del self._owed[:count]

    def _store(self, *last: bytes) -> None:
        """All that waits, and then `last`. Raises OSError, and then everything waits as before."""
        # Records leave the lists only after they are stored: another thread's flush must not see empty lists while
        # they are still on their way.
        if self._closing or (self._summaries.until and self._summaries.over(self._wall())):
            self._sum_up()
        owed, pending = len(self._owed), len(self._pending)
        records = [*self._owed[:owed], *self._pending[:pending], *last] if owed or last else self._pending[:pending]
        if records:
            self._batch(records)
            del self._owed[:owed], self._pending[:pending]
        if self._summaries.fresh:
            self._write_counts()
        if self._size >= self._max_bytes:
            self._rotate()

    def _batch(self, records: list[bytes]) -> None:
        body = b"\n".join(records)
        if b"\n" in b"".join(records) or body.startswith(b'{"chain"') or b'\n{"chain"' in body:
            body = b"\n".join(map(_one_line, records))
        lost = b',"lost":%d' % self._lost if self._lost else b""
        self._write(b'%b\n{"chain":"batch","number":%d,"records":%d%b' % (body, self._number + 1, len(records), lost))
        self._lost = 0

    def _sum_up(self) -> None:
        self._pending.extend(self._summaries.records())
        self._summaries.begin_anew()

    def _write_counts(self) -> None:
        """In the place of what was counted before: what is counted grows in number, not in room."""
        if self._counts is None:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
            self._counts = os.open(self._directory / f"{self.chain}.counts", flags, 0o600)
        text = b"\n".join((*self._summaries.records(), b'{"chain":"counts","id":"%b"' % self.chain.encode("ascii")))
        line = b'%b,"mac":"%b"}\n' % (text, seal(self._key, bytes(32), text).hex().encode("ascii"))
        if len(line) < self._counted:
            os.ftruncate(self._counts, 0)
        if os.pwrite(self._counts, line, 0) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._always:
            os.fdatasync(self._counts)
        self._counted, self._summaries.fresh = len(line), False

    def _refused(self, error: OSError, *, further: int = 0) -> None:
        """`further` records are given up as well, where records are given up."""
        self._looks_at = 0.0  # whatever it was, the next write looks first
        if not self._warned:
            logger.error("%s: %s", CANNOT, error.strerror or error)
            self._warned = True
        count, owed = len(self._pending), len(self._owed)
        given_up = max(0, count - MAX_PENDING) if self._fail_closed else count
        del self._pending[:given_up]
        self._lost += given_up
        if self._fail_closed:
            raise Unrecorded from None
        del self._owed[:owed]
        self._lost += owed + further

    def _look(self) -> None:
        """Raises OSError where the file that is written is no longer the one of its name: what is written to it then
        is written to nowhere."""
        assert self._file is not None
        try:
            there = os.stat(self._directory / self._file_at_hand(), follow_symlinks=False)
        except FileNotFoundError:
            raise FileNotFoundError("its file is gone") from None
        if not os.path.samestat(there, os.fstat(self._file)):
            raise FileNotFoundError("its file was replaced")
        if there.st_size < self._size:
            self._cut = True
            self._bear_witness()
        if self._cut and self._fail_closed:
            raise OSError(CUT)
        self._looks_at = self._monotonic() + LOOK

    def _bear_witness(self) -> None:
        """Goes on behind a place where something was cut off, with one line that does not fit there: the chain verifies
        as broken from now on, and not as one that ended there. Where records may be lost those that come are written
        behind it: nothing vouches for them, and they can be read."""
        assert self._file is not None
        if not self._fail_closed:
            logger.error("The audit log is no longer whole: %s", CUT)
        text = b'{"chain":"batch","number":%d,"records":0' % (self._number + 1)
        line = b'%b,"mac":"%b"}\n' % (text, seal(self._key, self._mac, text).hex().encode("ascii"))
        with contextlib.suppress(OSError):  # the line that says why nothing is written is in the log in any case
            with (self._directory / self._file_at_hand()).open("rb") as left:
                torn = left.seek(0, os.SEEK_END) and left.seek(-1, os.SEEK_END) >= 0 and left.read() != b"\n"
            write_all(self._file, b"\n" + line if torn else line)
            self._number += 1
        self._size = os.fstat(self._file).st_size

    def _write(self, text: bytes) -> None:
        """Appends `text`, ended by its mac, or leaves the file as it was and raises OSError."""
        if self._closed and self._file is None:
            raise OSError("it is closed")
        if self._file is None:
            self._file = self._create(self._part)
        elif self._monotonic() >= self._looks_at:
            self._look()
        if self._torn:
            os.ftruncate(self._file, self._size)
            self._torn = False
        opening, before = (b"", self._mac) if self._size else self._opening()
        mac = seal(self._key, before, text)
        lines = b'%b%b,"mac":"%b"}\n' % (opening, text, mac.hex().encode("ascii"))
        self._torn = True
        try:
            write_all(self._file, lines)
            if self._always or not self._named:
                os.fdatasync(self._file)
            if not self._named:
                self._name()
            self._torn = False
        finally:
            if self._torn:
                with contextlib.suppress(OSError):  # else before the next write
                    os.ftruncate(self._file, self._size)
                    self._torn = False
        self._mac, self._warned = mac, False
        self._number += 1
        self._size += len(lines)
        if opening:
            self._declared = self._first
            if not self._kept:
                self._prune(self._first)

    def _opening(self) -> tuple[bytes, bytes]:
        """The first line of a part, and its mac."""
        text = b'{"chain":"open","version":1,"id":"%b","part":%d,"key":"%b","first":%d,"prev":"%b"' % (
            self.chain.encode("ascii"),
            self._part,
            fingerprint(self._key),
            self._first,
            self._mac.hex().encode("ascii"),
        )
        if self._first:  # how old the youngest was of what is deleted
            text += b',"age":%d' % (self._begun - self._ends[self._first - 1])
        mac = seal(self._key, self._mac, text)
        return b'%b,"mac":"%b"}\n' % (text, mac.hex().encode("ascii")), mac

    def file_name(self, part: int) -> str:
        return f"{self.chain}.{part:05d}.jsonl" if part else f"{self.chain}.jsonl"

    def _file_at_hand(self) -> str:
        return self.file_name(self._part) + ("" if self._named else UNNAMED)

    def _name(self) -> None:
        """The first part is there with its first batch, or not at all, also after a power cut: so one without is
        one from which it was taken."""
        os.rename(self._directory / self._file_at_hand(), self._directory / self.file_name(self._part))
        self._named = True
        self._sync_directory()

    def _create(self, part: int) -> int:
        make_private(self._directory, parents=False)  # what is above it stays gone: it was a state folder
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        file = os.open(self._directory / (self.file_name(part) + ("" if part else UNNAMED)), flags, 0o600)
        self._named = part > 0
        self._begun = self._wall()
        if self._always:
            self._sync_directory()
        if not part and not self._kept:
            with contextlib.suppress(OSError):  # the next process will try again
                forget_chains(
                    self._directory,
                    max_bytes=self._keep * self._max_bytes,
                    settled=settled_before(self._wall(), self._min_age),
                    before=self._horizon(),
                    tell=self.forgot,
                )
        return file

    def _horizon(self) -> float | None:
        """What ended before this moment is too old."""
        return None if self._max_age is None else self._wall() - self._max_age

    def _rotate(self) -> None:
        """Goes on in a new part. Where that fails the old one grows, and the next batch tries again.

        The new file is made first, then the old one names it: a kill in between leaves an empty file,
        which `verify` forgives, while a missing one is a deletion.
        """
        assert self._file is not None
        part, fresh = self._part + 1, -1
        try:
            fresh = self._create(part)
            name = self.file_name(part).encode("ascii")
            self._write(b'{"chain":"next","number":%d,"file":"%b"' % (self._number + 1, name))
        except OSError as error:
            logger.warning("The audit log cannot be rotated: %s", error.strerror or error)
            if fresh >= 0:
                os.close(fresh)
                with contextlib.suppress(OSError):
                    os.unlink(self._directory / self.file_name(part))
            return
        os.close(self._file)
        self._file, self._part, self._size = fresh, part, 0
        self._ends.append(self._wall())
        old = self._first  # from here on they are too young to be deleted
        while old < part and self._ends[old] <= self._ends[-1] - self._min_age:
            old += 1
        self._first = max(self._first, old + (old == part) - self._keep)
        if part - old >= self._keep:
            self._say_that_it_grows()
        horizon = self._horizon()
        while horizon is not None and self._first < part and self._ends[self._first] < horizon:
            self._first += 1

    def _say_that_it_grows(self) -> None:
        now = self._wall()
        if now >= self._warns_at:
            self._warns_at = now + DAY
            logger.warning("audit: nothing is old enough to be deleted (min_age); %s", growth(self._directory, now))

    def _prune(self, first: int) -> None:
        """Deletes parts that the opening line, now stored, declares to be gone."""
        while self._oldest < first:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._directory / self.file_name(self._oldest))
            self._oldest += 1

    def _write_head(self) -> None:
        """Outside the file that it vouches for; whole or not at all."""
        text = b'{"chain":"head","id":"%b","part":%d,"number":%d,"last":"%b"' % (
            self.chain.encode("ascii"),
            self._part,
            self._number,
            self._mac.hex().encode("ascii"),
        )
        line = b'%b,"mac":"%b"}\n' % (text, seal(self._key, bytes(32), text).hex().encode("ascii"))
        fresh = self._directory / f"{self.chain}.head.new"
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(file, line)
            if self._always:
                os.fsync(file)
        finally:
            os.close(file)
        os.replace(fresh, self._directory / f"{self.chain}.head")
        if self._always:
            self._sync_directory()

    def _sync_directory(self) -> None:
        directory = os.open(self._directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _intake(pending: list[bytes], told: Told | None) -> Told:
    """Where records come in. Nobody who is not told costs anything."""
    if told is None:
        return pending.append

    def append(record: bytes) -> None:
        pending.append(record)
        told(record)

    return append


def _one_line(record: bytes) -> bytes:
    """The same JSON, on one line, and not to be taken for a line of the chain."""
    record = record.replace(b"\n", b" ")
    return b"{ " + record[1:] if record.startswith(b'{"chain"') else record
