"""What was installed where, and the files as they were before: in the user's state folder, for nobody else to read.

A receipt decides which bytes a client's file gets back, and so which programs are started. It is sealed with a secret
that lies beside it; one that is not, or that others could have written, is none.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from octavo.cli.client_files import Left

try:
    import fcntl
except ImportError:  # pragma: no cover: a system without it
    fcntl = None  # type: ignore[assignment]

SECRET_BYTES: Final = 32
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_OF_OTHERS: Final = 0 if sys.platform == "win32" else stat.S_IRWXG | stat.S_IRWXO


class Receipt(msgspec.Struct, frozen=True):
    file: str
    name: str
    after: str  # digest of what was written
    before: str | None  # digest of the backup; None where there was no file
    put: tuple[str, ...]  # the outermost key that was not there before
    folders: tuple[str, ...]  # that were made


class Sealed(msgspec.Struct, frozen=True):
    receipt: msgspec.Raw
    seal: str


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
            if not _is_private(self._folder.stat()):
                raise Left("state_of_others", folder=self._folder)
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def find(self, file: Path, name: str) -> Receipt | None:
        try:
            sealed = msgspec.json.decode(_read(self._at(file, name)), type=Sealed)
            if not hmac.compare_digest(sealed.seal, self._seal(bytes(sealed.receipt), _read(self._secret))):
                return None
            receipt = msgspec.json.decode(sealed.receipt, type=Receipt)
        except (OSError, ValueError):  # none, or none that can be trusted
            return None
        return receipt if (receipt.file, receipt.name) == (str(file), name) else None

    def backup(self, receipt: Receipt) -> bytes | None:
        """The file as it was; None where there was none. Raises LookupError if it is not there, or not whole."""
        if receipt.before is None:
            return None
        try:
            kept = _read(self.backup_of(Path(receipt.file), receipt.name))
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
        said = msgspec.json.encode(receipt)
        sealed = Sealed(msgspec.Raw(said), self._seal(said, self._made_secret()))
        _write(self._at(file, receipt.name), msgspec.json.encode(sealed))
        return backup if before is not None else None

    def drop(self, file: Path, name: str) -> None:
        for path in (self._at(file, name), self.backup_of(file, name)):
            path.unlink(missing_ok=True)

    def backup_of(self, file: Path, name: str) -> Path:
        return self._at(file, name).with_suffix(".before")

    @property
    def _secret(self) -> Path:
        return self._folder / "secret"

    def _made_secret(self) -> bytes:
        """A new one where there is none that only this user can have written: receipts of the old one are none."""
        try:
            if len(secret := _read(self._secret)) == SECRET_BYTES:
                return secret
        except OSError:
            pass
        _write(self._secret, secret := os.urandom(SECRET_BYTES))
        return secret

    def _seal(self, said: bytes, secret: bytes) -> str:
        return hashlib.blake2b(said, key=secret[:SECRET_BYTES], person=b"octavo", digest_size=32).hexdigest()

    def _at(self, file: Path, name: str) -> Path:
        return self._folder / f"{digest(os.fsencode(file) + b'/' + name.encode())[:16]}.json"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(path: Path) -> bytes:
    """Raises PermissionError for what others could have written or read, and OSError for a link."""
    with os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or not _is_private(status) or status.st_mode & _OF_OTHERS:
            raise PermissionError(path)
        return opened.read()


def _is_private(status: os.stat_result) -> bool:
    """Whether only this user may write there."""
    if not hasattr(os, "geteuid"):  # pragma: no cover: a system whose modes say nothing
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _write(path: Path, data: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(fresh, path)
