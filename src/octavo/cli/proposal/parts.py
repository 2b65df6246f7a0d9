"""Which catalogs a folder has, and where: each as the catalogs themselves choose, in folders that lie apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from octavo.cli.proposal.folder import Look, Looked
from octavo.config.load import NAMES
from octavo.core.skill import MANIFEST
from octavo.sources._shared.fs.credentials import CREDENTIALS
from octavo.sources._shared.fs.names import Rules
from octavo.sources.catalog import DECLARATIONS, Declaration, chosen, is_document
from octavo.sources.catalog.declaration import DEFINITIONS, DOCUMENTS, Segments, ending_of
from octavo.sources.kinds import AGENT, DOC, FOLDERS, ORG, SKILL, SOP

# Names of folders in which procedures stand, word by word.
PROCEDURES: Final = frozenset(
    ("sop", "sops", "runbook", "runbooks", "playbook", "playbooks", "procedure", "procedures")
)
DRAFTS: Final = "drafts"  # the folder in which an author may write
OWN: Final = frozenset((name,) for name in NAMES)  # the configuration itself is never served
_IN_KOREAN: Final = ("절차", "업무", "매뉴얼")  # compounds: 업무절차, 업무 매뉴얼
_NAMES: Final[Mapping[str, str]] = {
    SOP: "sops", DOC: "docs", SKILL: "skills", AGENT: "agents", ORG: "org",
}  # fmt: skip
_PROMPTS: Final = (".prompt.md", ".prompt.yml", ".prompt.yaml")
_USUAL_PROMPTS: Final[Sequence[Segments]] = (("prompts",), (".github", "prompts"), (".claude", "commands"))
_BESIDE: Final = 100  # one of so many documents beside the usual folder, and the whole folder is theirs
_FEW: Final = 20  # of so many files of a folder one is a document: it is a folder of other files
# Neither documents nor worth a source of their own.
_PICTURES: Final = frozenset(
    ("png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "bmp", "mp4", "mov", "webm", "mp3", "m4a", "woff", "woff2",
     "ttf", "otf", "eot", "css", "scss", "less", "zip", "gz")
)  # fmt: skip


# Documents and tables that are no texts of a catalog, and are as good to whoever reads these.
_ATTACHED: Final = frozenset(
    (".pdf", ".docx", ".doc", ".pptx", ".xlsx", ".xls", ".odt", ".ods", ".odp", ".hwpx", ".hwp", ".rtf", ".epub",
     ".ipynb", ".csv", ".tsv")
)  # fmt: skip


class ProposedCatalog(Struct, frozen=True):
    """A catalog over a folder: an address for each of its files."""

    kind: str
    path: Segments
    names: Sequence[Segments]  # the addresses, as far as was looked
    without: Sequence[Segments] = ()
    taken: frozenset[Segments] = frozenset()  # the files behind them

    @property
    def source(self) -> str:
        return _NAMES[self.kind]

    @property
    def scheme(self) -> str:
        return self.kind


class Parts(Struct, frozen=True):
    catalogs: Sequence[ProposedCatalog]
    files: Sequence[Segments] = ()  # folders whose files are served as they are; () is the whole
    prompts: Sequence[Segments] = ()
    every: bool = False  # whether these files have endings that are not served unless somebody says so
    attached: Sequence[Segments] = ()  # documents and tables beside the texts of the catalogs, served as they are
    others: Sequence[Segments] = ()  # folders that could be procedures too, and are left to the documents
    unserved: Sequence[Segments] = ()  # files that none of these takes

    @property
    def schemes(self) -> list[str]:
        files = [*([FOLDERS] if self.files else []), *([self.beside] if self.attached else [])]
        return [*(part.scheme for part in self.catalogs), *files]

    @property
    def beside(self) -> str:
        """The scheme of what is attached."""
        return "attachment" if self.files else FOLDERS

    @property
    def apart(self) -> list[str]:
        """Names of folders whose files are served already, whatever they are."""
        bundles = [part.path for part in self.catalogs if part.kind == SKILL]
        return sorted({one[0] for one in (*self.files, *bundles) if one and not one[0].startswith(".")})

    @property
    def endings(self) -> dict[str, int]:
        """Of what is attached, the most frequent first."""
        return dict(Counter(suffix(one) for one in self.attached).most_common())


async def parts_of(look: Look, *, drop: Iterable[str] = (), faulty: Sequence[Segments] = ()) -> Parts:
    """`drop` are kinds, and folders of prompts, that were tried and do not hold; `faulty` are files that do not."""
    dropped, source = frozenset(drop), Looked(look)
    found = await _marked_by_name(look, source, dropped)
    prompts = [one for one in _prompts(look) if "/".join(one) not in dropped]
    texts = _texts(look, (*(part.path for part in found), *prompts))
    others: list[Segments] = []
    if SOP not in dropped and (places := _procedures(look, texts)):
        first, *others = places
        if part := _part(SOP, await _at(SOP, source, first), look):
            found.append(part)
            texts = [one for one in texts if not _within(one, [first])]
    folders = _of_files(look, [part.path for part in found], prompts)
    whole = any(not part.path for part in found)
    if texts and not whole and (part := await _documents(look, source, texts, folders)):
        found.append(part)
    catalogs = _without_each_other(found, (*prompts, *folders), faulty)
    if not catalogs and look.files:
        folders = [()]
    unserved = [*_unserved(look, catalogs, folders, [*prompts, *faulty])]
    return _with_files(Parts(catalogs, folders, prompts, others=others), unserved)


async def _marked_by_name(look: Look, source: Looked, dropped: Collection[str]) -> list[ProposedCatalog]:
    """Those whose files say themselves what they are; none lies in another."""
    found: list[ProposedCatalog] = []
    for kind in (SKILL, AGENT, ORG):
        if kind in dropped:
            continue
        part = _special(kind, await _at(kind, source), look)
        if kind == SKILL and part is None and (path := _manifests(look)) is not None:
            part = _part(kind, await _at(kind, source, path), look)
        if part is not None and not any(_overlap(part.path, other.path) for other in found):
            found.append(part)
    return found


async def _at(kind: str, source: Looked, path: Segments | None = None) -> Declaration:
    """A catalog of that kind at a folder, or where it stands by a look of its own."""
    place = None if path is None else "/".join(path)
    return await chosen(DECLARATIONS[kind], source, path=place, alone=True, files=False)


def _without_each_other(
    found: Sequence[ProposedCatalog], beside: Sequence[Segments], faulty: Sequence[Segments]
) -> list[ProposedCatalog]:
    """Each without what is another's, and only those in which something is left."""
    dotted = [part.path[:1] for part in found if part.path and part.path[0].startswith(".")]
    apart = [_apart(part, found, (*beside, *dotted), faulty) for part in found]
    return sorted((part for part in apart if part.names), key=lambda one: [*_NAMES].index(one.kind))


async def _documents(
    look: Look, source: Looked, texts: Sequence[Segments], folders: Sequence[Segments]
) -> ProposedCatalog | None:
    # Kept as if rules named it: what stands beside it is counted below, without what is another catalog's.
    declaration = await chosen(DECLARATIONS[DOC], source, path=None, alone=True, files=False, ruled=True)
    usual = tuple(filter(None, declaration.path.split("/")))
    beside = sum(is_document(one) and not _within(one, (usual, *folders)) for one in texts)
    folder = "/".join(usual) if _BESIDE * beside < len(texts) - beside else ""
    return _part(DOC, replace(declaration, path=folder), look)


def _texts(look: Look, taken: Sequence[Segments]) -> list[Segments]:
    """Documents that nobody has yet."""
    return [one for one in look.files if _is_text(one) and not one[0].startswith(".") and not _within(one, taken)]


def _with_files(parts: Parts, unserved: Sequence[Segments]) -> Parts:
    """Which of the files that nobody would get are served as they are: in folders of files, or beside texts."""
    catalogs, folders = parts.catalogs, parts.files
    inside = [one for one in unserved if _within(one, folders) and (not catalogs or suffix(one) in _ATTACHED)]
    apart = replace(parts, every=bool(inside)).apart
    bundled = any(part.kind == SKILL and not part.path for part in catalogs)
    attached: list[Segments] = []
    if catalogs and not bundled:
        attached = [one for one in unserved if suffix(one) in _ATTACHED and not set(one).intersection(apart)]
    served = {*attached, *(one for one in unserved if inside and _within(one, folders))}
    rest = [one for one in unserved if one not in served]
    return replace(parts, every=bool(inside), attached=attached, unserved=rest)


def suffix(place: Segments) -> str:
    """The ending of a name, in small letters; a name without one by itself."""
    return Path(place[-1]).suffix.lower() or place[-1]


def _unserved(
    look: Look, catalogs: Sequence[ProposedCatalog], folders: Sequence[Segments], beside: Sequence[Segments]
) -> Iterator[Segments]:
    """Which files nobody would get, but for prompts, for faults that are told themselves, and for settings."""
    rules = Rules((), CREDENTIALS)
    for place in look.files:
        bundles = [part.path for part in catalogs if part.kind == SKILL]  # with all files of their folders
        verdict = rules.verdict(place)
        if verdict == "hidden" or place[0].startswith(".") or place in OWN or _within(place, (*beside, *bundles)):
            continue
        by_catalog = any(
            place in part.taken and not _within(place[len(part.path) :], part.without) for part in catalogs
        )
        if not by_catalog and not (verdict == "served" and _within(place, folders)):
            yield place


def _is_text(place: Segments) -> bool:
    return ending_of(place[-1]) in DOCUMENTS


def _within(place: Segments, folders: Iterable[Segments]) -> bool:
    return any(place[: len(one)] == one for one in folders)


def _overlap(one: Segments, other: Segments) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _part(kind: str, declaration: Declaration, look: Look) -> ProposedCatalog | None:
    """None where the catalog would serve nothing."""
    path = tuple(filter(None, declaration.path.split("/")))
    located = {
        place: found
        for place in look.files
        if place[: len(path)] == path and len(place) > len(path)
        if path or not place[0].startswith(".")  # a hidden folder is a part by itself or not served
        if (found := declaration.located(place[len(path) :])) is not None
    }
    names = {name for name, _, version in located.values() if not version}
    return ProposedCatalog(kind, path, sorted(names), taken=frozenset(located)) if names else None


def _special(kind: str, declaration: Declaration, look: Look) -> ProposedCatalog | None:
    """A folder of the usual name is one of this kind where its files look like it."""
    part = _part(kind, declaration, look)
    if part is None or (kind != SKILL and not part.path):
        return None
    inside = [one for one in look.files if _within(one, [part.path])]
    if kind == SKILL:
        manifests = any(one[-1] == MANIFEST for one in inside)
        return part if part.path and (manifests or any(one[-1].endswith(DEFINITIONS) for one in inside)) else None
    if kind == ORG:
        kinds = {one[len(part.path)] for one in inside if len(one) > len(part.path) + 1}
        return part if not kinds.isdisjoint(("functions", "value-streams", "roles")) else None
    return part if all(_is_agent(look, one) for one in inside if ending_of(one[-1])) else None


def _is_agent(look: Look, file: Segments) -> bool:
    if file[-1].lower().startswith(("readme", "index", "_index")):
        return True  # the folder's own page
    head = look.head(file)
    if not file[-1].endswith(DEFINITIONS) and not re.match(r"\ufeff?---\s*\n", head):
        return False
    return re.search(r"""(?m)^\s*["']?(name|description)["']?\s*:""", head) is not None


def _manifests(look: Look) -> Segments | None:
    """The folder around the skills of one folder at the top, of those with most; the whole, where skills are all."""
    found = [one[:-1] for one in look.files if one[-1] == MANIFEST and len(one) > 1]
    if not found:
        return None
    if 2 * sum(len(one) == 1 for one in found) > sum(len(one) == 1 for one in look.files) + len(_tops(look)):
        return ()
    deep = [one[:-1] for one in found if len(one) > 1]
    if not deep:
        return None
    top = Counter(one[0] for one in deep).most_common(1)[0][0]
    first, *rest = [one for one in deep if one[0] == top]
    return next(first[:end] for end in range(len(first), 0, -1) if all(one[:end] == first[:end] for one in rest))


def _tops(look: Look) -> set[str]:
    return {one[0] for one in look.files if len(one) > 1}


def _procedures(look: Look, texts: Sequence[Segments]) -> list[Segments]:
    """Folders of procedures, that with most texts first; the whole folder where its own name says so."""
    if _says_procedures(look.base.name):
        return [()]
    counts: Counter[Segments] = Counter()
    for place in texts:
        named = (place[:end] for end in range(1, len(place)) if _says_procedures(place[end - 1]))
        if (folder := next(named, None)) is not None:
            counts[folder] += 1
    return [folder for folder, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]


def _says_procedures(name: str) -> bool:
    words = re.split(r"[\W_]+", name.lower())
    return not PROCEDURES.isdisjoint(words) or any(one in name for one in _IN_KOREAN)


def _prompts(look: Look) -> list[Segments]:
    """Folders in which prompts stand side by side."""
    marked = {one[:-1] for one in look.files if one[-1].lower().endswith(_PROMPTS) and len(one) > 1}
    usual = {one[:-1] for one in look.files if one[:-1] in _USUAL_PROMPTS and one[-1].endswith((*DEFINITIONS, ".md"))}
    return sorted(marked | usual)


def _of_files(look: Look, taken: Sequence[Segments], prompts: Sequence[Segments]) -> list[Segments]:
    """Folders at the top with code or data in them, and hardly a document."""
    counts: dict[str, Counter[bool | None]] = {}
    for place in look.files:
        if len(place) > 1 and not place[0].startswith(".") and place[0] != DRAFTS:
            ending = place[-1].rpartition(".")[2].lower()
            kind = None if ending in _PICTURES or suffix(place) in _ATTACHED else _is_text(place)
            counts.setdefault(place[0], Counter())[kind] += 1
    busy = (*taken, *prompts)
    return [
        (name,)
        for name, found in sorted(counts.items())
        if found[False] and _FEW * found[True] <= found[False] and not any(_overlap((name,), one) for one in busy)
    ]


def _apart(
    part: ProposedCatalog, parts: Sequence[ProposedCatalog], beside: Sequence[Segments], faulty: Sequence[Segments]
) -> ProposedCatalog:
    """Without what is somebody else's, and without files that do not hold."""
    others = [one.path for one in parts if one is not part] + [*beside]
    inner = [one for one in (*others, *faulty) if len(one) > len(part.path) and _within(one, [part.path])]
    outermost = [one for one in sorted(set(inner)) if not any(_within(one, [other]) for other in inner if other != one)]
    below = [one[len(part.path) :] for one in outermost]
    if part.kind in (DOC, SOP):  # whose addresses are paths
        stems = [(*one[:-1], one[-1].removesuffix(ending_of(one[-1]))) for one in below]
        names = [one for one in part.names if not _within(one, stems)]
        return replace(part, without=below, names=names)
    return replace(part, without=below)
