"""One file of a catalog as it was last seen: what it says of itself, and the entry that is made of it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from octavo.core.clock import iso
from octavo.core.labels import LEVELS
from octavo.core.ref import Ref
from octavo.core.sizes import KIB
from octavo.core.values import NOTHING, Entry
from octavo.sources.catalog.declaration import FRONT_PAGES, Declaration, Segments, Shape, ending_of, form_of
from octavo.sources.catalog.model import Check
from octavo.sources.catalog.names import plain, words
from octavo.sources.catalog.problems import FileProblem
from octavo.text.frontmatter import FrontMatter, KeyPath, of_yaml
from octavo.text.handwritten import Handwritten, handwritten
from octavo.text.references import references
from octavo.text.titles import first_heading

MAX_METADATA: Final = 8 * KIB  # characters of an entry's metadata as JSON: a page holds a hundred of them
PROBLEMS: Final = "problems"  # the key of the metadata that is ours and no author's
SHOWN_PROBLEMS: Final = 5
_PLACE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NONE: Final = FrontMatter({}, {}, found=False)
_PATHS: Final[dict[KeyPath, KeyPath]] = {}
MIME: Final = {
    "markdown": "text/markdown", "text": "text/plain", "yaml": "application/yaml", "json": "application/json",
}  # fmt: skip
_OURS: Final = (PROBLEMS, "schema_version")  # no word of an author about the document
_OTHER: Final = 1024  # characters of keys that the model does not know, in a list
_FOLLOWS: Final = 3  # keys of the model by which a text shows that it was written for it
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
    problems: tuple[FileProblem, ...] = ()
    inferred: frozenset[str] = frozenset()
    references: tuple[str, ...] = ()  # links of the text, as they are written there

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


class Cards:
    """Makes cards of one catalog."""

    def __init__(self, declaration: Declaration, check: Check, folder: str) -> None:
        self._declaration, self._check = declaration, check
        self._folder = folder

    def file(self, place: Segments) -> str:
        return file_of(self._folder, place)

    def matter(self, place: Segments, text: str, *, whole: bool = True) -> Handwritten:
        texts, form = self._declaration.texts, form_of(place[-1])
        if form in ("yaml", "json"):
            return Handwritten(of_yaml(text, texts=texts))
        return handwritten(text, texts=texts, whole=whole)

    def card(
        self, ref: Ref, place: Segments, shape: Shape, known: Entry, text: str | None, *, whole: bool, fault: str = ""
    ) -> Card:
        """From what the store tells of the file and its text, as far as it was read. `fault` says why it was not."""
        of, form = self._declaration, form_of(place[-1])
        matter, slips = Handwritten(_NONE) if text is None else self.matter(place, text, whole=whole)
        variables = shape.address.match(ref.segments) or {}
        inferred = self._inferred(self._told(ref, place, shape, known, variables, matter.data), matter.data)
        fields = {**matter.data, **inferred}
        problems = self._written_badly(ref, place, Handwritten(matter, slips), fault)
        problems += self._unfitting(ref, place, matter, fields, variables, problems, fault=fault)
        name = self._declared(fields, variables)
        heading = "" if name or text is None else self._heading(place, text, matter)
        name = name or heading or self._of_folder(ref, place)
        metadata, left_out = _metadata(of, fields)
        file = self.file(place)
        problems += [FileProblem(file, matter.line((key,)), f"{key} is too long to be listed", ref) for key in left_out]
        entry = Entry(
            ref=ref,
            name=name or ref.name,
            title=name or None,
            description=_first(fields, of.about) or None,
            mime_type=MIME[form] if form != "text" else known.mime_type or MIME[form],
            version=known.version,
            size=known.size,
            modified=known.modified,
            annotations=known.annotations,
            metadata=_flagged(metadata, tuple(problems)),
            target=known.target,
            quoted=bool(heading),
        )
        return Card(
            entry,
            place,
            self._folder,
            shape.kind or of.scheme,
            {key: fields[key] for key in of.asked if key in fields and key not in metadata} or NOTHING,
            self._lines(matter),
            tuple(problems),
            frozenset(inferred),
            references(text, ending_of(place[-1]), matter.data) if text else (),
        )

    def _lines(self, matter: FrontMatter) -> Mapping[KeyPath, int]:
        """Where that stands which is held against other entries."""
        checked = self._declaration.checked
        return {_shared(path): line for path, line in matter.lines.items() if path and path[0] in checked}

    def _inferred(self, told: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
        """What is asked of an entry, and its file does not say."""
        asked = self._declaration.asked
        return {key: one for key, one in told.items() if key in asked and key != "name" and data.get(key) is None}

    def _is_held(self, place: Segments, data: Mapping[str, Any]) -> bool:
        """Whether the file is held against the model: it is all data, or its keys say that it means to follow it."""
        return _means_to_follow(self._declaration, place, data)

    def _written_badly(self, ref: Ref, place: Segments, written: Handwritten, fault: str) -> list[FileProblem]:
        """What cannot be read of it."""
        of, file, (matter, slips) = self._declaration, self.file(place), written
        problems = [FileProblem(file, line, message, ref) for line, message in matter.faults]
        # A manifest is written for other programs, which take what they can read of it.
        strict = (self._is_held(place, matter.data) and place[-1] != of.manifest) or bool(of.required)
        problems += [FileProblem(file, line, message, ref, serious=strict) for line, message in slips]
        if fault:
            problems.append(FileProblem(file, 1, fault, ref))
        return problems

    def _unfitting(
        self,
        ref: Ref,
        place: Segments,
        matter: FrontMatter,
        fields: Mapping[str, Any],
        variables: Mapping[str, str],
        known: Sequence[FileProblem],
        *,
        fault: str,
    ) -> list[FileProblem]:
        """What it says that does not fit the model, if it can be read; `known` is what is wrong with it so far."""
        file, found = self.file(place), list[FileProblem]()
        if not any(problem.serious for problem in known):
            found += self._missing(file, ref, matter)
        if self._is_held(place, matter.data) and not any(problem.serious for problem in (*known, *found)):
            found += [FileProblem(file, matter.line(path), said, ref) for path, said in self._check(fields)]
            found += self._elsewhere(file, ref, fields, matter, variables)
        if place[-1] == self._declaration.manifest and not fault:
            found += _unfit(file, ref, fields, matter)
        return found

    def _told(
        self,
        ref: Ref,
        place: Segments,
        shape: Shape,
        known: Entry,
        variables: Mapping[str, str],
        data: Mapping[str, Any],
    ) -> dict[str, Any]:
        """What is known of a file that it need not say itself."""
        of = self._declaration
        told: dict[str, Any] = {**variables}
        if shape.kind and len({one.kind for one in of.shapes}) > 1:
            told["type"] = shape.kind
        told["id"] = ref.name if place[-1] == of.manifest else ref.path
        if of.ids and (id := _by_rule(of.ids, variables, data)):
            told["id"] = id
        if known.modified is not None:
            told["last_updated"] = iso(known.modified)[:10]
        return told

    def _declared(self, fields: Mapping[str, Any], variables: Mapping[str, str]) -> str:
        of = self._declaration
        return (of.titles and _by_rule(of.titles, variables, fields)) or _first(fields, of.names)

    def _is_text(self, place: Segments) -> bool:
        return form_of(place[-1]) not in ("yaml", "json") and place[-1] != self._declaration.manifest

    def _heading(self, place: Segments, text: str, matter: FrontMatter) -> str:
        return first_heading(text[matter.body :], ending_of(place[-1])) if self._is_text(place) else ""

    def _of_folder(self, ref: Ref, place: Segments) -> str:
        is_front = len(ref.segments) > 1 and ref.name.casefold() in FRONT_PAGES and self._is_text(place)
        return ref.segments[-2] if is_front else ""

    def _missing(self, file: str, ref: Ref, matter: FrontMatter) -> list[FileProblem]:
        keys = [key for key in self._declaration.required if _written(matter.data, key) in (None, "")]
        if not keys:
            return []
        *others, last = keys
        said = f"{', '.join(others)} and {last} are missing" if others else f"{last} is missing"
        about = "" if matter.found else "has no front matter: "
        line = matter.line((last,)) if not others else matter.line(())
        return [FileProblem(file, line, f"{about}{said}", ref)]

    def _elsewhere(
        self, file: str, ref: Ref, fields: Mapping[str, Any], matter: FrontMatter, variables: Mapping[str, str]
    ) -> list[FileProblem]:
        key = self._declaration.within
        said, folder = fields.get(key), variables.get(key)
        if not isinstance(said, str) or folder is None or plain(said, (key,)) == plain(folder, (key,)):
            return []
        return [FileProblem(file, matter.line((key,)), f"{key} is not the folder that the file stands in", ref)]


def follows(of: Declaration, card: Card) -> bool:
    """Whether a file speaks of what the model knows: what others write beside theirs is meant for other programs."""
    return _means_to_follow(of, card.place, [key for key in of.marks if key not in card.inferred and card.get(key)])


def _means_to_follow(of: Declaration, place: Segments, keys: Collection[str]) -> bool:
    defines = form_of(place[-1]) in ("yaml", "json")
    return not of.marks or defines or sum(key in keys for key in of.marks) >= _FOLLOWS


def _unfit(file: str, ref: Ref, fields: Mapping[str, Any], matter: FrontMatter) -> Iterator[FileProblem]:
    """What keeps clients from taking a manifest as one, beside its schema."""
    if fields.get("name") not in (None, ref.name):
        said = "clients cannot take it as a skill: name must be that of the folder"
        yield FileProblem(file, matter.line(("name",)), f"{said}, {ref.name}", ref, serious=False, group=said)
    described = fields.get("description")
    if not isinstance(described, str) or not described.strip():
        line = matter.line(("description",))
        yield FileProblem(file, line, "description is missing: clients choose a skill by it", ref)


def _metadata(of: Declaration, fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What the model declares, but for the title, which names the entry, labels, and what rules ask for; and what there
    is no room for."""
    metadata: dict[str, Any] = {}
    left_out: list[str] = []
    room = MAX_METADATA
    kind = ("type",) if "type" in fields else ()
    known = dict.fromkeys((*kind, *of.properties, *LEVELS, *of.further))
    for key in known:
        value = _written(fields, key)
        if value is None or (key == "title" and key not in of.further):
            continue
        size = len(json.dumps(value, ensure_ascii=False))
        if size > room:
            left_out.append(key)
        else:
            room -= size
            metadata[key] = value
    room = min(room, _OTHER)
    for key, value in fields.items():  # what the model does not know is kept and shown, as far as there is room
        if key in known or key in (*of.names, *of.about, *_OURS) or value is None:
            continue
        size = len(key) + len(json.dumps(value, ensure_ascii=False))
        if size <= room:
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


def _flagged(metadata: Mapping[str, Any], problems: tuple[FileProblem, ...]) -> Mapping[str, Any]:
    """A remark is for whoever mends the file: nobody who uses it need know."""
    serious = [one for one in problems if one.serious]
    if not serious:
        return metadata
    return {**metadata, PROBLEMS: [f"line {one.line}: {one.message}" for one in serious[:SHOWN_PROBLEMS]]}


def _by_rule(rule: str, variables: Mapping[str, str], data: Mapping[str, Any]) -> str:
    """A key of the front matter, or a template of variables and keys; empty where one of them is not there."""
    if "{" not in rule:
        return next(iter(words(data.get(rule))), "")
    values = {**{key: found[0] for key, value in data.items() if (found := words(value))}, **variables}
    try:
        return _PLACE.sub(lambda one: values[one[1]].replace("/", "-"), rule)
    except KeyError:
        return ""
