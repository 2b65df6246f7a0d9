"""What the journal knows of one operation: enough to tell whether it was done, and to undo it."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from octavo.sources.file.root import Names
from octavo.sources.file.writing.attributes import Attributes
from octavo.sources.file.writing.staging import Print

Op = Literal["write", "delete", "move", "copy", "make_directory"]
Status = Literal["pending", "done", "void", "undoing", "undone"]


UNKNOWN: Final = Print(0, 0, 0, 0)  # of a directory that is made after its record


class Spelled(NamedTuple):
    """A place by what stays when the configuration changes: the path of its root, and names as on disk."""

    root: str
    disk: Names


class Leaf(NamedTuple):
    """A file or a directory below one that is kept or copied; `()` is that one itself."""

    path: Names
    attributes: Attributes
    link: str | None = None  # where it leads, if it is a link: it is taken along and never followed

    @property
    def is_file(self) -> bool:
        return self.link is None and not self.attributes.is_directory


class Version(NamedTuple):
    """`mark` is equal for equal content: a version that was put back is not the same file as before."""

    print: Print
    mark: str


class Backup(NamedTuple):
    """A version whose content is in the journal."""

    version: Version
    leaves: tuple[Leaf, ...]
    size: int  # bytes in the journal
    digest: str = ""  # of what a directory holds; empty in records of earlier versions

    @property
    def is_directory(self) -> bool:
        return self.leaves[0].attributes.is_directory


class ChangeRecord(Struct, frozen=True, kw_only=True):
    """After the operation, `new` stands at `place` instead of `old`; a move takes it from `source`, where it
    was `moved`: another version when the two places are on two file systems."""

    id: str
    at: float
    by: str
    op: Op
    place: Spelled
    old: Backup | None = None
    new: Version | None = None
    source: Spelled | None = None
    moved: Print | None = None
    made: int = 0  # directories that had to be made above the place

    def as_json(self) -> dict[str, Any]:
        old = self.old and [
            *_version(self.old.version), self.old.size,
            [["/".join(leaf.path), leaf.attributes.as_json(), leaf.link] for leaf in self.old.leaves], self.old.digest,
        ]  # fmt: skip
        return {
            "id": self.id, "at": self.at, "by": self.by, "op": self.op, "place": self.place, "old": old,
            "new": self.new and _version(self.new), "source": self.source, "moved": self.moved, "made": self.made,
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ChangeRecord:
        old, new, source, moved = value["old"], value["new"], value["source"], value["moved"]
        return cls(
            id=value["id"], at=value["at"], by=value["by"], op=value["op"], place=_spelled(value["place"]),
            old=_kept(*old) if old else None,
            new=Version(Print(*new[0]), new[1]) if new else None, source=_spelled(source) if source else None,
            moved=Print(*moved) if moved else None, made=value["made"],
        )  # fmt: skip


def _version(version: Version) -> list[Any]:
    return [version.print, version.mark]


def _kept(print_: list[Any], mark: str, size: int, leaves: list[Any], digest: str = "") -> Backup:
    return Backup(Version(Print(*print_), mark), tuple(_leaf(*leaf) for leaf in leaves), size, digest)


def _spelled(value: list[Any]) -> Spelled:
    return Spelled(value[0], tuple(value[1]))


def _leaf(path: str, attributes: list[Any], link: str | None = None) -> Leaf:
    return Leaf(tuple(path.split("/")) if path else (), Attributes.from_json(attributes), link)
