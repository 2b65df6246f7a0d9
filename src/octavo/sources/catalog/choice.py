"""Where the files of a catalog stand when nobody has said it: found by a look at the store, once, when it is opened.

The folder is the first of the usual ones that is there, else the whole store, if no other catalog stands on it and
such files may stand anywhere: documents may be all that there is in a store, agents are not. Where more documents stand
beside the usual folder than in it, it is not theirs (`docs` may hold what a site is built into), and the whole store
is. Else the documents beside it are served too, under their whole path: the README of a repository is one that people
look for.

Skills are folders at any depth: how deep is written into the shapes, so that the name of a file alone tells which skill
it belongs to, whatever comes and goes beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from octavo.core.errors import OctavoError
from octavo.core.ports.source import Source
from octavo.core.ref import Ref
from octavo.sources.catalog.declaration import Declaration, Segments, Shape
from octavo.sources.catalog.store import OF_PROGRAMS, WHOLE, CatalogStore, is_of_programs
from octavo.text.frontmatter import of_yaml

_MANY: Final = 200  # folders of skills that are told apart by name
_LOOKED_AT: Final = 50  # definitions that are read to see whether they are skills
_COUNTED: Final = 20_000  # files of a store whose names are looked at: the server waits for it
_MANY_BESIDE: Final = 10  # for so many documents in the folder one beside it
# Texts of a repository about itself, a font or a build, in whatever folder. They say nothing of where documents stand.
_PAPERS: Final = re.compile(
    r"(?:readme|licen[sc]e|copying|copyright|notice|ofl|patents|changelog|changes|history|contributing|contributors|"
    r"code[_-]of[_-]conduct|security|authors|maintainers|governance|support|requirements|cmakelists|robots|llms|"
    r"claude|agents|gemini)(?:[._-][a-z0-9]{1,6}){0,2}\.[a-z]+"
)
# Texts that nobody looks for in a handbook: licences, and what programs are told.
_NO_TEXTS: Final = re.compile(
    r"(?:(?:licen[sc]e|copying|copyright|notice|ofl|patents)(?:[._-].*)?|(?:requirements|cmakelists|robots).*\.txt)"
)
# Folders of tests, of what others wrote and of what was built. They say nothing of where documents stand either.
_NO_DOCUMENTS: Final = OF_PROGRAMS | frozenset(("build", "out", "target", "coverage", "test", "tests"))


async def chosen(
    of: Declaration, source: Source, *, path: str | None, alone: bool, files: bool, ruled: bool = False
) -> Declaration:
    """`path` is the folder that the configuration names, `alone` says that no other catalog stands on the store,
    `files` that the configuration says where files stand in the folder, and `ruled` that rules speak of addresses
    below it: they hold whatever comes beside the usual folder."""
    kept = files or ruled or not of.is_lenient
    of = await _placed(of, source, alone=alone, ruled=ruled, kept=kept) if path is None else replace(of, path=path)
    if not of.manifest or files:
        return of
    store = CatalogStore(source, of.path, of.scheme, of.without)
    try:
        places = [place async for one in store.entries() if (place := store.within(one.ref)) is not None]
        return replace(of, shapes=await _skills(of, store, places))
    except OctavoError:
        return of  # the store is down: what is usual


def is_document(place: Segments) -> bool:
    """Whether somebody would miss a text that a catalog leaves out."""
    return not (_NO_TEXTS.fullmatch(place[-1].lower()) or any(map(is_of_programs, place[:-1])))


async def _placed(of: Declaration, source: Source, *, alone: bool, ruled: bool, kept: bool) -> Declaration:
    """A store in which nothing stands yet will have the usual folder. `kept` says that no more than a folder is meant:
    what stands beside it has no address that rules know, and need not be what every entry must be."""
    if not alone:
        return of
    of = replace(of, guessed=True)
    for folder in of.usual:
        if await _holds(source, folder):
            usual = replace(of, path=folder)
            return usual if of.manifest or not of.anywhere else await _of_most(usual, source, ruled=ruled, kept=kept)
    return replace(of, path="" if of.anywhere and await _holds(source, "") else of.path)


async def _of_most(of: Declaration, source: Source, *, ruled: bool, kept: bool) -> Declaration:
    """The usual folder, if it has at least as many documents as there are beside it; with those, if it is not `kept`
    to itself."""
    store, looked = CatalogStore(source, of.path, of.scheme, of.without), 0
    inside = beside = left = 0
    try:
        async for entry in store.everything():
            place, names = store.within(entry.ref), entry.ref.segments
            if any(shape.resembles(names) for shape in of.shapes if shape.offered):
                paper = _PAPERS.fullmatch(names[-1].lower()) is not None
                inside += place is not None and not paper
                left += place is None
                beside += place is None and not paper and not any(map(_is_no_folder_of_documents, names[:-1]))
            looked += 1
            if looked == _COUNTED:
                break
    except OctavoError:
        return of
    if beside > inside and not ruled:
        return replace(of, path="")
    if kept:
        return replace(of, beside=left if _MANY_BESIDE * left > inside else 0)
    shapes = (*(shape.below(of.path) for shape in of.shapes), *(shape.unoffered() for shape in of.shapes))
    return replace(of, path="", home=of.path, shapes=shapes)


def _is_no_folder_of_documents(name: str) -> bool:
    return name.startswith(".") or name.lower() in _NO_DOCUMENTS


async def _holds(source: Source, folder: str) -> bool:
    try:
        page = await source.list(Ref.of(source.scheme, filter(None, folder.split("/"))), cursor=None, limit=1)
    except OctavoError:
        return False
    return bool(page.items)


async def _skills(of: Declaration, store: CatalogStore, places: Sequence[Segments]) -> tuple[Shape, ...]:
    folders = _outermost(place[:-1] for place in places if place[-1] == of.manifest and len(place) > 1)
    above = Counter(folder[:-1] for folder in folders)
    if not folders and of.path:
        return of.shapes  # whatever will come
    kind, defined = of.shapes[0].kind, await _defines(of, store, places, folders)
    if not folders or {len(one) for one in above} == {1}:
        return of.shapes if of.path or defined else of.shapes[1:]
    depths = Counter(len(folder) for folder in folders)
    usual = 2 if defined else 1 if () in above else depths.most_common(1)[0][0]
    special = _unusual(of, kind, folders, usual)
    return (*special[:_MANY], *([of.shapes[0]] if defined else []), *_generic(of, usual, kind))


def _unusual(of: Declaration, kind: str, folders: Collection[Segments], usual: int) -> list[Shape]:
    """Folders at another depth than most."""
    above = {folder[:-1] for folder in folders}
    special = [
        Shape("/".join((*one, "{name}", of.manifest)), "/".join((*one, "{name}")), kind=kind, offered=False)
        for one in sorted(above)
        if one and len(one) + 1 != usual
    ]
    if usual != 1 and () in above:  # some of many that stand beside the folders of the others
        alone = sorted(folder[0] for folder in folders if len(folder) == 1)
        special += [Shape(f"{one}/{of.manifest}", one, kind=kind, offered=False, literal=True) for one in alone]
    return special


def _generic(of: Declaration, depth: int, kind: str) -> tuple[Shape, ...]:
    if depth == 2:
        return of.shapes[1:]
    folders = [f"{{folder{n if n > 1 else ''}}}" for n in range(1, depth)]
    stem = "/".join((*folders, "{name}"))
    return (Shape(f"{stem}/{of.manifest}", stem, kind=kind),)


def _outermost(folders: Iterable[Segments]) -> list[Segments]:
    """What stands inside a skill is a part of it."""
    found: list[Segments] = []
    for folder in sorted(set(folders)):
        if not found or folder[: len(found[-1])] != found[-1]:
            found.append(folder)
    return found


async def _defines(
    of: Declaration, store: CatalogStore, places: Sequence[Segments], folders: Sequence[Segments]
) -> bool:
    """Whether there are definitions of skills as well: any other YAML file is none."""
    within = set(folders)
    likely = [place for place in places if of.shapes[0].fits(place) is not None and place[:1] not in within]
    for place in likely[:_LOOKED_AT]:
        try:
            body = (await store.read(place, Ref(of.scheme), WHOLE)).body
        except OctavoError:
            continue
        keys = of_yaml(body).data.keys() if isinstance(body, str) else ()
        if "name" in keys and not {"id", "triggers", "agents"}.isdisjoint(keys):
            return True
    return False
