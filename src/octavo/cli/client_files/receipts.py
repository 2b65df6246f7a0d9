"""What was installed where, and the files as they were before: in the user's state folder, for nobody else to read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from octavo.cli.client_files import Left

try:
    import fcntl
except ImportError:  # pragma: no cover: a system without it
    fcntl = None  # type: ignore[assignment]


class Receipt(msgspec.Struct, frozen=True):
    file: str
    name: str
    after: str  # digest of what was written
    before: str | None  # digest of the backup; None where there was no file
    put: tuple[str, ...]  # the outermost key that was not there before
    folders: tuple[str, ...]  # that were made


class Receipts:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One installation at a time. Raises `Left` where nothing can be kept."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise Left("no_state", folder=self._folder, why=error.strerror) from None
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def find(self, file: Path, name: str) -> Receipt | None:
        try:
            return msgspec.json.decode(self._at(file, name).read_bytes(), type=Receipt)
        except (OSError, ValueError):  # none, or none that can be trusted
            return None

    def backup(self, receipt: Receipt) -> bytes | None:
        """The file as it was; None where there was none. Raises LookupError if it is not there, or not whole."""
        if receipt.before is None:
            return None
        try:
            kept = self.backup_of(Path(receipt.file), receipt.name).read_bytes()
        except OSError:
            raise LookupError(receipt.file) from None
        if digest(kept) != receipt.before:
            raise LookupError(receipt.file)
        return kept

    def keep(self, receipt: Receipt, before: bytes | None) -> Path | None:
        """The backup first, then the receipt that speaks of it."""
        file = Path(receipt.file)
        backup = self.backup_of(file, receipt.name)
        if before is not None:
            _write(backup, before)
        _write(self._at(file, receipt.name), msgspec.json.encode(receipt))
        return backup if before is not None else None

    def drop(self, file: Path, name: str) -> None:
        for path in (self._at(file, name), self.backup_of(file, name)):
            path.unlink(missing_ok=True)

    def backup_of(self, file: Path, name: str) -> Path:
        return self._at(file, name).with_suffix(".before")

    def _at(self, file: Path, name: str) -> Path:
        return self._folder / f"{digest(os.fsencode(file) + b'/' + name.encode())[:16]}.json"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: Path, data: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(fresh, path)
