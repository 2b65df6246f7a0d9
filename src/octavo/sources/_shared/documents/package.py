"""Parts of an Office package and their relationships. What lies outside of the package is never fetched."""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from octavo.sources._shared.documents.archive import Archive
from octavo.sources._shared.documents.markup import tree
from octavo.sources._shared.documents.model import Unreadable


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
