"""Writes a backup beside whatever changes meanwhile."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tarfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from octavo.core.clock import SystemClock, iso
from octavo.core.errors import Conflict, SourceUnavailable
from octavo.core.ports.stores import Moves
from octavo.core.sizes import MIB
from octavo.core.version import VERSION as RELEASE
from octavo.stores.backup.format import KIND, LENGTH, MANIFEST, SECRET, STORE, VERSION, Bytes, Manifest
from octavo.stores.state import NOT_THROUGH_LINKS
from octavo.stores.totals import Counting

TRIES: Final = 5  # looks at a log whose files are deleted by their age meanwhile
SMALL: Final = ("*.head", "*.counts")
_NEXT: Final = re.compile(rb'\{"chain":"next".*"file":"(?P<file>[^"/]+)"')


async def pack(target: Path, store: Moves, state: Path, *, replace: bool) -> Manifest:
    """Whole or not at all. Raises Conflict where the file is there and is not to be replaced, and OSError."""
    with _fresh(target, replace=replace) as file:
        packing = _Packing(file)
        counting = Counting()
        with packing.part(STORE) as written:
            async with store.dump() as portions:
                async for portion in counting.through(portions):
                    body = msgspec.msgpack.encode(portion)
                    written.write(len(body).to_bytes(LENGTH, "big") + body)
        packing.audit(state / "audit")
        packing.whole(SECRET, _small(state / "secret"))
        now = iso(SystemClock.wall())
        manifest = Manifest(KIND, VERSION, RELEASE, now, counting.told(), packing.parts)
        packing.whole(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
        packing.end()
    return manifest


@contextmanager
def _fresh(target: Path, *, replace: bool) -> Generator[IO[bytes]]:
    """In the place of the target once the block has ended well."""
    if not replace and os.path.lexists(target):
        raise Conflict(f"{target} is there already, and was left as it is; --force replaces it")
    fresh = target.with_name(f".{target.name}.new-{os.urandom(4).hex()}")
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)
        raise


class _Written:
    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.size, self.digest = file, 0, hashlib.sha256()

    def write(self, body: bytes) -> None:
        self._file.write(body)
        self.digest.update(body)
        self.size += len(body)


class _Packing:
    """A tar whose parts are as long as they turn out to be: the header is written when its part has ended."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._mtime = int(SystemClock.wall())
        self.parts: dict[str, Bytes] = {}

    @contextmanager
    def part(self, name: str) -> Generator[_Written]:
        begun = self._file.tell()
        self._file.write(self._header(name, 0))
        written = _Written(self._file)
        yield written
        self._file.write(bytes(-written.size % tarfile.BLOCKSIZE))
        end = self._file.tell()
        self._file.seek(begun)
        self._file.write(self._header(name, written.size))
        self._file.seek(end)
        self.parts[name] = Bytes(written.size, written.digest.hexdigest())

    def whole(self, name: str, body: bytes) -> None:
        with self.part(name) as written:
            written.write(body)

    def audit(self, folder: Path) -> None:
        """What vouches for the end of a chain before the chain itself, which may only have grown by then."""
        begun = self._file.tell()
        for attempt in range(TRIES):
            try:
                for file in [one for pattern in SMALL for one in sorted(folder.glob(pattern))]:
                    self.whole(f"audit/{file.name}", _small(file))
                self._chains(folder)
                return
            except FileNotFoundError:
                if attempt == TRIES - 1:
                    raise
                self._file.seek(begun)
                self._file.truncate()
                self.parts = {name: part for name, part in self.parts.items() if not name.startswith("audit/")}

    def end(self) -> None:
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))

    def _chains(self, folder: Path) -> None:
        left = sorted(file.name for file in folder.glob("*.jsonl"))
        while left:
            name = left.pop(0)
            with _opened(folder / name) as lines, self.part(f"audit/{name}") as written:
                size, last = _whole_lines(lines)
                lines.seek(0)
                while size > 0 and (some := lines.read(min(size, MIB))):
                    written.write(some)
                    size -= len(some)
            following = _NEXT.match(last)
            if following is not None:  # it may have been begun since the look at the folder
                file = following["file"].decode("utf-8", "replace")
                if file not in left and f"audit/{file}" not in self.parts:
                    left.append(file)

    def _header(self, name: str, size: int) -> bytes:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, 0o600, self._mtime
        return info.tobuf(tarfile.GNU_FORMAT)


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | NOT_THROUGH_LINKS)
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SourceUnavailable(f"{file} is no plain file, and no part of an audit log")
        yield opened


def _small(file: Path) -> bytes:
    with _opened(file) as opened:
        return opened.read()


def _whole_lines(lines: IO[bytes]) -> tuple[int, bytes]:
    """How many bytes whole lines have, and the last of these."""
    size, tail = lines.seek(0, os.SEEK_END), b""
    place = size
    while place > 0 and tail.count(b"\n") < 2:
        step = min(place, MIB)
        place -= step
        lines.seek(place)
        tail = lines.read(step) + tail
    end = tail.rfind(b"\n") + 1
    return size - len(tail) + end, tail[:end].rstrip(b"\n").rpartition(b"\n")[2]
