"""One file of a catalog as it was last seen: what it says of itself, and the entry that is made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from octavo.core.labels import LEVELS
from octavo.core.model import NOTHING, Entry
from octavo.core.ref import Ref
from octavo.sources.catalog.declaration import Declaration, Segments, Shape
from octavo.sources.catalog.model import Check
from octavo.sources.catalog.names import plain, words
from octavo.sources.catalog.problems import Problem
from octavo.text.frontmatter import FrontMatter, KeyPath, of_markdown, of_yaml

MAX_METADATA: Final = 8 * 1024  # characters of an entry's metadata as JSON: a page holds a hundred of them
PROBLEMS: Final = "problems"  # the key of the metadata that is ours and no author's
SHOWN_PROBLEMS: Final = 5
_PATHS: Final[dict[KeyPath, KeyPath]] = {}
MIME: Final = {"markdown": "text/markdown", "yaml": "application/yaml"}
DIRECTORY: Final = "inode/directory"


class Card(Struct, frozen=True):
    """What is known of a file without reading it again, in as little room as possible: there may be many.

    The metadata of the entry hold most of it. `beside` has what else others ask for: values that are too long for a
    list, or were taken from the path (`inferred`) since the file does not speak of them.
    """

    entry: Entry
    place: Segments  # below the folder of the catalog
    folder: str  # of the catalog, in the store
    kind: str
    beside: Mapping[str, Any]
    lines: Mapping[KeyPath, int]  # of what others may find fault with
    problems: tuple[Problem, ...] = ()
    inferred: frozenset[str] = frozenset()

    @property
    def ref(self) -> Ref:
        return self.entry.ref

    @property
    def file(self) -> str:
        """For people."""
        return file_of(self.folder, self.place)

    @property
    def id(self) -> str:
        value = self.get("id")
        return value if isinstance(value, str) else ""

    def get(self, key: str) -> Any:
        metadata = self.entry.metadata
        return metadata[key] if key in metadata else self.beside.get(key)

    def words(self, key: str) -> list[str]:
        return [text for _, text in self.said(key)] if "." in key else words(self.get(key))

    def said(self, key: str) -> list[tuple[KeyPath, str]]:
        """Every word at a key, and where it stands. `stages.sops` is the key in each item of a list."""
        first, dot, rest = key.partition(".")
        value = self.get(first)
        if not dot:
            return said_at((first,), value)
        items: list[Any] = value if isinstance(value, list) else []
        return [
            one
            for number, item in enumerate(items)
            if isinstance(item, dict)
            for one in said_at((first, number, rest), item.get(rest))
        ]

    def line(self, path: KeyPath) -> int:
        return next((self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), 1)

    def folder_of_files(self, manifest: str) -> Segments:
        """Where the files stand that belong to it: around the manifest, or in a folder beside the definition."""
        *above, name = self.place
        return (*above,) if name == manifest else (*above, name.rpartition(".")[0])

    def file_entry(self, known: Entry, ref: Ref, manifest: str) -> Entry:
        """Of a file that belongs to it, from what the store tells of the file."""
        is_manifest = len(ref.segments) == len(self.ref.segments) + 1 and ref.name == manifest
        return Entry(
            ref=ref,
            name=self.ref.name if is_manifest else ref.name,
            description=self.entry.description if is_manifest else None,
            mime_type=known.mime_type,
            version=known.version,
            size=known.size,
            modified=known.modified,
            annotations=known.annotations,
            metadata={key: self.entry.metadata[key] for key in LEVELS if key in self.entry.metadata} or NOTHING,
            target=self.ref,
        )

    def with_problems(self, more: tuple[Problem, ...]) -> Entry:
        if not more:
            return self.entry
        return replace(self.entry, metadata=_flagged(self.entry.metadata, (*self.problems, *more)))


class Cards:
    """Makes cards of one catalog."""

    def __init__(self, declaration: Declaration, check: Check, folder: str) -> None:
        self._declaration, self._check = declaration, check
        self._folder = folder

    def file(self, place: Segments) -> str:
        return file_of(self._folder, place)

    def matter(self, shape: Shape, text: str, *, whole: bool = True) -> FrontMatter:
        texts = self._declaration.texts
        return of_yaml(text, texts=texts) if shape.form == "yaml" else of_markdown(text, texts=texts, whole=whole)

    def card(
        self, ref: Ref, place: Segments, shape: Shape, known: Entry, text: str | None, *, whole: bool, fault: str = ""
    ) -> Card:
        """From what the store tells of the file and its text, as far as it was read. `fault` says why it was not."""
        of, file = self._declaration, self.file(place)
        matter = FrontMatter({}, {}, found=False) if text is None else self.matter(shape, text, whole=whole)
        problems = [Problem(file, line, message, ref) for line, message in matter.faults]
        if fault:
            problems.append(Problem(file, 1, fault, ref))
        elif not matter.found:
            problems.append(Problem(file, 1, f"has no front matter; a {of.what} begins with --- and its keys", ref))
        variables = shape.address.match(ref.segments) or {}
        told = {**variables, **({"type": shape.kind} if len(of.shapes) > 1 else {})}
        if place[-1] == of.manifest:
            told["id"] = ref.name  # it is known by its folder: manifests of others have no ids
        inferred = {k: v for k, v in told.items() if k in of.asked and k != "name" and matter.data.get(k) is None}
        fields = {**matter.data, **inferred}
        if not problems:
            problems += [Problem(file, matter.line(path), said, ref) for path, said in self._check(fields)]
            problems += self._elsewhere(file, ref, fields, matter, variables)
            if place[-1] == of.manifest:
                problems += [Problem(file, matter.line((key,)), said, ref) for key, said in _unfit(ref, fields)]
        name = _first(fields, of.names)
        metadata, left_out = _metadata(of, fields)
        problems += [Problem(file, matter.line((key,)), f"{key} is too long to be listed", ref) for key in left_out]
        entry = Entry(
            ref=ref,
            name=name or ref.name,
            title=name or None,
            description=_first(fields, of.about) or None,
            mime_type=MIME[shape.form],
            version=known.version,
            size=known.size,
            modified=known.modified,
            annotations=known.annotations,
            metadata=_flagged(metadata, tuple(problems)),
            target=known.target,
        )
        beside = {key: fields[key] for key in of.asked if key in fields and key not in metadata}
        lines = {_shared(path): line for path, line in matter.lines.items() if path and path[0] in of.checked}
        kind, folder = shape.kind or of.scheme, self._folder
        return Card(entry, place, folder, kind, beside or NOTHING, lines, tuple(problems), frozenset(inferred))

    def _elsewhere(
        self, file: str, ref: Ref, fields: Mapping[str, Any], matter: FrontMatter, variables: Mapping[str, str]
    ) -> list[Problem]:
        key = self._declaration.within
        said, folder = fields.get(key), variables.get(key)
        if not isinstance(said, str) or folder is None or plain(said, (key,)) == plain(folder, (key,)):
            return []
        return [Problem(file, matter.line((key,)), f"{key} is not the folder that the file stands in", ref)]


def _unfit(ref: Ref, fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What keeps clients from taking a manifest as one, beside its schema."""
    found = [("name", f"name must be that of the folder, {ref.name}")] if fields.get("name") != ref.name else []
    described = fields.get("description")
    if not isinstance(described, str) or not described.strip():
        found.append(("description", "description is missing: clients choose a skill by it"))
    return found


def _metadata(of: Declaration, fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What the model declares, but for the title, which names the entry, labels, and what rules ask for; and what there
    is no room for."""
    metadata: dict[str, Any] = {}
    left_out: list[str] = []
    room = MAX_METADATA
    kind = ("type",) if "type" in fields else ()
    for key in dict.fromkeys((*kind, *of.properties, *LEVELS, *of.further)):
        value = _written(fields, key)
        if value is None or (key == "title" and key not in of.further):
            continue
        size = len(json.dumps(value, ensure_ascii=False))
        if size > room:
            left_out.append(key)
        else:
            room -= size
            metadata[key] = value
    return metadata, left_out


def _written(fields: Mapping[str, Any], key: str) -> Any:
    """People write front matter, so capitals of a key do not matter where nothing has it exactly."""
    if fields.get(key) is not None:
        return fields[key]
    folded = key.casefold()
    return next((value for other, value in fields.items() if str(other).strip().casefold() == folded), None)


def file_of(folder: str, place: Segments) -> str:
    return "/".join((folder, *place) if folder else place)


def _shared(path: KeyPath) -> KeyPath:
    """One object for all cards, where it is the same in most."""
    return path if len(path) > 1 else _PATHS.setdefault(path, path) if len(_PATHS) < 1000 else path


def _first(fields: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    values = (fields.get(key) for key in keys)
    return next((" ".join(value.split()) for value in values if isinstance(value, str) and value.strip()), "")


def said_at(path: KeyPath, value: Any) -> list[tuple[KeyPath, str]]:
    """Every word of a value, one or a list of them, and where it stands."""
    if isinstance(value, list):
        return [((*path, number), word) for number, item in enumerate(value) for word in words(item)[:1]]
    return [(path, word) for word in words(value)]


def _flagged(metadata: Mapping[str, Any], problems: tuple[Problem, ...]) -> Mapping[str, Any]:
    if not problems:
        return metadata
    return {**metadata, PROBLEMS: [f"line {one.line}: {one.message}" for one in problems[:SHOWN_PROBLEMS]]}
