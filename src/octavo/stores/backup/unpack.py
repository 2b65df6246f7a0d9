"""Reads a backup: all of it is looked at before anything is brought back."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from octavo.core.errors import Conflict, InvalidParams
from octavo.core.ports.stores import LARGEST_VALUE, MOST, STORE_FILE, Portion
from octavo.core.private_folders import make_private
from octavo.core.sizes import MIB
from octavo.stores import state as layouts
from octavo.stores.backup.format import AUDIT, KIND, LENGTH, MANIFEST, SECRET, STORE, VERSION, Bytes, Manifest
from octavo.stores.in_use import LOCK, alone

LARGEST: Final = LARGEST_VALUE + MOST * 4_096  # bytes of a portion, with its keys
LARGEST_MANIFEST: Final = 64 * MIB
LOCKS: Final = {"lock", LOCK, f"{STORE_FILE}.lock"}
_DAMAGED: Final = "The backup is damaged, so nothing was brought back"


class BackupFile:
    """One that was looked at: what it holds is what its manifest vouches for."""

    def __init__(self, tar: tarfile.TarFile, manifest: Manifest) -> None:
        self._tar, self.manifest = tar, manifest

    async def portions(self) -> AsyncGenerator[Portion]:
        with self._opened(STORE) as lines:
            while length := lines.read(LENGTH):
                size = int.from_bytes(length, "big")
                if size > LARGEST:
                    raise InvalidParams(_DAMAGED)
                try:
                    yield msgspec.msgpack.decode(lines.read(size), type=Portion)
                except msgspec.MsgspecError:
                    raise InvalidParams(_DAMAGED) from None

    def copy_to(self, folder: Path) -> None:
        """The secret and the audit log. Raises OSError."""
        layouts.write_whole(folder / "version", b"%d\n" % layouts.VERSION)
        (folder / "audit").mkdir(mode=0o700)
        for name in self.manifest.parts:
            if name == SECRET or AUDIT.match(name):
                descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(descriptor, "wb") as file, self._opened(name) as part:
                    shutil.copyfileobj(part, file)
                    file.flush()
                    os.fsync(descriptor)

    def _opened(self, name: str) -> IO[bytes]:
        part = self._tar.extractfile(name)
        assert part is not None
        return part


@contextmanager
def opened(file: Path) -> Generator[BackupFile]:
    """Raises InvalidParams for what is no whole backup of a version that is known here, and OSError."""
    with file.open("rb") as raw:
        try:
            tar = tarfile.open(fileobj=raw, mode="r:")  # noqa: SIM115 (closed with its file)
            manifest = _looked_at(tar)
        except (tarfile.TarError, msgspec.MsgspecError, ValueError, OverflowError, EOFError):
            raise InvalidParams(f"{file} is no backup of Octavo, or it was cut off or damaged") from None
        yield BackupFile(tar, manifest)


def _looked_at(tar: tarfile.TarFile) -> Manifest:
    found, foreign, manifest = dict[str, Bytes](), False, b""
    for member in tar:
        known = member.name in (MANIFEST, STORE, SECRET) or AUDIT.match(member.name)
        if not known or member.type != tarfile.REGTYPE or member.name in found or manifest:
            foreign = True
            continue
        part = tar.extractfile(member)
        assert part is not None
        if member.name == MANIFEST:
            manifest = part.read(LARGEST_MANIFEST)
        else:
            digest = hashlib.sha256()
            while some := part.read(MIB):
                digest.update(some)
            found[member.name] = Bytes(member.size, digest.hexdigest())
    stated = _Stated() if not manifest else msgspec.json.decode(manifest, type=_Stated)
    if stated.kind != KIND:
        raise InvalidParams("That is no backup of Octavo, or its end was cut off: it has no manifest")
    if stated.version > VERSION:
        raise InvalidParams(
            f"The backup was written by a newer Octavo: its layout is {stated.version}, and this one knows up to "
            f"{VERSION}. Run that version; nothing was brought back."
        )
    if foreign:
        raise InvalidParams("There is something in it that no backup of Octavo has, so nothing was brought back")
    whole = msgspec.json.decode(manifest, type=Manifest)
    if whole.parts != found or not {STORE, SECRET} <= found.keys() or found[SECRET].size != layouts.SECRET_BYTES:
        raise InvalidParams(f"{_DAMAGED}: it does not hold what its manifest vouches for")
    return whole


class _Stated(msgspec.Struct):
    """What manifests of every version say."""

    kind: str = ""
    version: int = 0


@contextmanager
def staged(state: Path) -> Generator[Path]:
    """A folder for what is to become the state: put in its place when the block has ended well, and else gone. Raises
    Conflict where there is state already, or while somebody uses it."""
    made = not state.exists()
    make_private(state)
    try:
        with alone(state):
            if any(one.name not in LOCKS for one in state.iterdir()):
                raise Conflict(
                    f"There is something in the state folder {state} already, so nothing was brought back: move it "
                    "elsewhere, or name another folder in state.path"
                )
            staging = state / f"restoring-{os.urandom(4).hex()}"
            staging.mkdir(mode=0o700)
            try:
                yield staging
                for name in sorted((one.name for one in staging.iterdir()), key=lambda name: name == SECRET):
                    if name not in LOCKS:
                        os.replace(staging / name, state / name)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except BaseException:
        if made:
            with suppress(OSError):
                (state / LOCK).unlink()
                state.rmdir()
        raise
