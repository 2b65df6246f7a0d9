"""Zip archives of strangers, and the office documents in them.

Nothing is unpacked that was not asked for by its exact name, and never much. What lies outside of a document is never
fetched.
"""

from __future__ import annotations

import encodings.cp437  # noqa: F401  zipfile wants it for names, when no file can be opened any more
import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from octavo.core.errors import TooLarge
from octavo.core.sizes import MIB, PIECE
from octavo.sources._shared.documents.markup import tree
from octavo.sources._shared.documents.model import PasswordNeeded, Unreadable

_MAX_MEMBERS: Final = 10_000
_MAX_RATIO: Final = 200  # of the whole archive; office documents stay below 50
_RATIO_MATTERS: Final = 16 * MIB  # a small document may well be mostly blanks
_PLAIN: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED: Final = 0x1
_COMPOUND: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE: Final = "EncryptedPackage".encode("utf-16-le")

_DAMAGED: Final = "it is damaged or cut off"


class Archive:
    """Raises Unreadable, PasswordNeeded or TooLarge, by what the directory declares and by what really comes out."""

    def __init__(self, raw: bytes, max_bytes: int) -> None:
        _refuse_compound(raw)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(raw))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError):
            raise Unreadable(_DAMAGED) from None
        members = self._zip.infolist()
        if len(members) > _MAX_MEMBERS:
            raise TooLarge(f"The archive has {len(members)} members; at most {_MAX_MEMBERS} are read")
        declared = sum(member.file_size for member in members)
        if declared > max_bytes or (declared > _RATIO_MATTERS and declared > _MAX_RATIO * len(raw)):
            raise TooLarge(f"The archive unpacks to {declared} bytes out of {len(raw)}, which is more than is allowed")
        self._members = {member.filename: member for member in members}
        self._left = max_bytes
        self._max_bytes = max_bytes

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def stream(self, name: str) -> Iterator[bytes]:
        """One member, piece by piece. The declared size bounds it too: zipfile stops there."""
        member = self._members.get(name)
        if member is None:
            raise Unreadable("a part of it is missing")
        if member.flag_bits & _ENCRYPTED:
            raise PasswordNeeded
        if member.compress_type not in _PLAIN:
            raise Unreadable("it is compressed in a way that such documents do not use")
        try:
            with self._zip.open(member) as opened:
                while chunk := opened.read(PIECE):
                    self._left -= len(chunk)
                    if self._left < 0:
                        raise TooLarge(f"The archive unpacks to more than the {self._max_bytes} bytes that are allowed")
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError):
            raise Unreadable(_DAMAGED) from None


def _refuse_compound(raw: bytes) -> None:
    """Office wraps what it encrypts into its old binary container."""
    if raw.startswith(_COMPOUND):
        if _ENCRYPTED_PACKAGE in raw:
            raise PasswordNeeded
        raise Unreadable("it is of the old binary format; save it in the present one")


class Relation(NamedTuple):
    kind: str  # the last word of its type: `hyperlink`, `slide`, `notesSlide`
    target: str  # the name of a part, or an address when external
    external: bool


def relations(archive: Archive, part: str) -> dict[str, Relation]:
    """By id. The part "" is the package itself."""
    folder, name = posixpath.split(part)
    listed = posixpath.join(folder, "_rels", f"{name}.rels")
    if listed not in archive:
        return {}
    found: dict[str, Relation] = {}
    for element in tree(archive.stream(listed)):
        target, external = element.get("Target", ""), element.get("TargetMode") == "External"
        if not external:
            target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        found[element.get("Id", "")] = Relation(element.get("Type", "").rpartition("/")[2], target, external)
    return found


def related(all_of: dict[str, Relation], kind: str) -> str | None:
    """The part that stands in the relation, if there is one."""
    return next((each.target for each in all_of.values() if each.kind == kind and not each.external), None)


def main_part(archive: Archive) -> str:
    part = related(relations(archive, ""), "officeDocument")
    if part is None or part not in archive:
        raise Unreadable("it has no main part")
    return part
