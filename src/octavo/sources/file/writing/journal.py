"""Old versions and what happened to them: an index, one JSON object a line, and the kept contents beside it.

The order makes it safe to be killed at any point: first the old content is here, then the record that
something is about to happen, both on disk; then it happens; then it is noted as done. A record without
that note is looked at when the journal is opened again (`recovery.py`).

Several processes may share a journal. Whoever adds holds its lock together with others, whoever tidies
holds it alone.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.core.errors import TooLarge
from octavo.core.private_folders import make_private
from octavo.core.sizes import MIB
from octavo.sources.file.writing.records import Backup, ChangeRecord, Status

log = logging.getLogger(__name__)

MOST_BYTES: Final = 256 * MIB
MOST_COUNT: Final = 1000
_TIDY_EVERY: Final = 64  # operations; the bounds are kept that loosely

_INDEX: Final = "index.jsonl"
_NEW_INDEX: Final = "index.new"
_LOCK: Final = "lock"
_KEPT: Final = "kept"
_PRIVATE_FILE: Final = 0o600
_PRIVATE_DIRECTORY: Final = 0o700
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class JournalMissing(OSError):
    """Somebody removed it while we run. What needs it is not done."""


class RecordedOperation(NamedTuple):
    record: ChangeRecord
    status: Status


class UndoJournal:
    """`most_bytes` and `most_count` bound what is kept for each principal; the oldest goes first."""

    def __init__(
        self, path: Path, wall: Callable[[], float], *, most_bytes: int = MOST_BYTES, most_count: int = MOST_COUNT
    ) -> None:
        self.wall = wall
        self.most_bytes = most_bytes
        self._most_count = most_count
        self._since_tidy = 0
        make_private(path)
        self._here = os.open(path, _DIRECTORY)
        try:
            os.fchmod(self._here, _PRIVATE_DIRECTORY)
            try:
                os.mkdir(_KEPT, _PRIVATE_DIRECTORY, dir_fd=self._here)
            except FileExistsError:
                pass
            self.kept = os.open(_KEPT, _DIRECTORY, dir_fd=self._here)
        except BaseException:
            os.close(self._here)
            raise

    def close(self) -> None:
        os.close(self.kept)
        os.close(self._here)

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Around keeping a content and writing its record: what has no record yet is not tidied away."""
        self._refuse_missing()
        fd = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE_FILE, dir_fd=self._here)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            yield
        finally:
            os.close(fd)

    def begin(self, record: ChangeRecord) -> None:
        """On disk when this returns. Only `adding`."""
        os.fsync(self.kept)
        self._append(record.as_json(), sync=True)

    def note(self, record: ChangeRecord, status: Status) -> None:
        """Lost, it is found out again: nobody waits for the disk, or for space on it."""
        try:
            with self.adding():
                self._append({"of": record.id, "is": status}, sync=False)
            if status in ("undone", "void") and record.old is not None:
                self.forget(record.id)
            if status == "done":
                self._since_tidy += 1
                large = record.old is not None and record.old.size > self.most_bytes // 8
                if large or self._since_tidy >= _TIDY_EVERY:
                    self.tidy()
        except OSError as error:
            log.warning("The journal cannot be written: %s", os.strerror(error.errno or 0))

    def create(self, number: str) -> int:
        """A new file for a kept content."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(number, flags, _PRIVATE_FILE, dir_fd=self.kept)

    def create_directory(self, number: str) -> int:
        os.mkdir(number, _PRIVATE_DIRECTORY, dir_fd=self.kept)
        return os.open(number, _DIRECTORY, dir_fd=self.kept)

    def open_kept(self, record: ChangeRecord) -> int:
        return os.open(record.id, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.kept)

    def refuse_over(self, size: int, what: str) -> None:
        if size > self.most_bytes:
            raise TooLarge(
                f"{what} has {size} bytes, and at most {self.most_bytes} can be kept to undo this; nothing was changed",
                size=size,
                limit=self.most_bytes,
            )

    def operations(self) -> list[RecordedOperation]:
        """In the order in which they began."""
        self._refuse_missing()
        records: dict[str, ChangeRecord] = {}
        statuses: dict[str, Status] = {}
        for line in self._lines():
            try:
                value: dict[str, Any] = json.loads(line)
                if "of" in value:
                    statuses[value["of"]] = value["is"]
                else:
                    records[value["id"]] = ChangeRecord.from_json(value)
            except (ValueError, KeyError, TypeError, IndexError):  # cut off by a crash of the machine
                log.warning("A line of the journal cannot be read and is left out")
        return [RecordedOperation(record, statuses.get(number, "pending")) for number, record in records.items()]

    def _refuse_missing(self) -> None:
        try:
            if os.path.samestat(os.stat(_KEPT, dir_fd=self._here, follow_symlinks=False), os.fstat(self.kept)):
                return
        except FileNotFoundError:
            pass
        raise JournalMissing(errno.ENOENT, os.strerror(errno.ENOENT))

    def tidy(self) -> None:
        """Drops what is over the bounds, and contents without a record. Not now if somebody is adding."""
        fd = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE_FILE, dir_fd=self._here)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._since_tidy = 0
            every = self.operations()
            stays = self._within_bounds(every)
            if len(stays) < len(every):
                self._rewrite(stays)
            known = {op.record.id for op in stays if op.record.old is not None}
            for number in os.listdir(self.kept):
                if number not in known:
                    self.forget(number)
        finally:
            os.close(fd)

    def _within_bounds(self, every: list[RecordedOperation]) -> list[RecordedOperation]:
        count: dict[str, int] = defaultdict(int)
        size: dict[str, int] = defaultdict(int)
        stays: list[RecordedOperation] = []
        for operation in reversed(every):
            record, status = operation
            if status == "void":
                continue
            count[record.by] += 1
            if status != "undone":
                size[record.by] += _size(record.old)
            if status in ("pending", "undoing") or (
                count[record.by] <= self._most_count and size[record.by] <= self.most_bytes
            ):
                stays.append(operation)
        return stays[::-1]

    def _rewrite(self, stays: list[RecordedOperation]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(_NEW_INDEX, flags, _PRIVATE_FILE, dir_fd=self._here)
        with open(fd, "wb") as file:
            for record, status in stays:
                file.write(_line(record.as_json()))
                if status != "pending":
                    file.write(_line({"of": record.id, "is": status}))
            file.flush()
            os.fsync(fd)
        os.rename(_NEW_INDEX, _INDEX, src_dir_fd=self._here, dst_dir_fd=self._here)
        os.fsync(self._here)

    def _append(self, value: dict[str, Any], *, sync: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(_INDEX, flags, _PRIVATE_FILE, dir_fd=self._here)
        try:
            line = _line(value)
            if os.write(fd, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if sync:
                os.fsync(fd)
                os.fsync(self._here)
        finally:
            os.close(fd)

    def _lines(self) -> list[bytes]:
        try:
            fd = os.open(_INDEX, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._here)
        except FileNotFoundError:
            return []
        with open(fd, "rb") as file:
            return [line for line in file.read().split(b"\n") if line]

    def forget(self, number: str) -> None:
        """A kept content, whole or in part."""
        try:
            os.unlink(number, dir_fd=self.kept)
        except FileNotFoundError:
            return
        except (IsADirectoryError, PermissionError):  # Linux and others
            shutil.rmtree(number, ignore_errors=True, dir_fd=self.kept)


def _line(value: dict[str, Any]) -> bytes:
    """Begins a line rather than ending it: one that was cut off does not spoil the next."""
    return b"\n" + json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def _size(kept: Backup | None) -> int:
    return 0 if kept is None else kept.size
