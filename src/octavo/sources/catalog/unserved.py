"""What a catalog does not serve of the files of its store, said once, with what would serve it."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Final

from octavo.core.errors import OctavoError
from octavo.sources.catalog.declaration import DOCUMENTS, FORMS, Declaration, ending_of
from octavo.sources.catalog.index import CatalogIndex
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.snapshot import CatalogSnapshot
from octavo.sources.catalog.store import CatalogStore

_SHOWN: Final = 4  # endings of which a message tells


async def unserved(
    of: Declaration, store: CatalogStore, index: CatalogIndex, page: CatalogSnapshot
) -> list[FileProblem]:
    """Texts of the folder that no pattern takes, and those that stand beside it: a remark each."""
    beside = await _of_programs(of, store) if of.home else await _beside(of, store, page)
    return [*beside, *await _within(store, index, page)]


async def _of_programs(of: Declaration, store: CatalogStore) -> list[FileProblem]:
    """Beside the folder that was found: most of them no documents, but nobody said so."""
    shapes, folders = [shape for shape in of.shapes if shape.offered], Counter[str]()
    async for entry in store.everything():
        place = entry.ref.segments
        if (folder := store.of_program(place)) and not store.leaves_out(place):
            folders[folder] += any(shape.resembles(place) for shape in shapes)
    count = sum(folders.values())
    if not count:
        return []
    named = ", ".join(name for name, number in folders.most_common(_SHOWN) if number)
    said = (
        f"files in folders of programs that are not served: {count} ({named}); path: '' would serve all files, under "
        f"their whole path"
    )
    return [FileProblem(of.home, 1, said, serious=False)]


async def _beside(of: Declaration, store: CatalogStore, page: CatalogSnapshot) -> list[FileProblem]:
    """Some are no part of a handbook, such as the README of a repository. But nobody said that they are not."""
    if not of.guessed or not store.folder or not page.cards:
        return []
    shapes = [shape for shape in of.shapes if shape.offered]
    count = 0
    async for entry in store.everything():
        inside = store.within(entry.ref) is not None
        count += not inside and any(shape.resembles(entry.ref.segments) for shape in shapes)
    return [FileProblem(store.folder, 1, left_out(count, store.folder), serious=False)] if count else []


def left_out(count: int, folder: str) -> str:
    """What a folder leaves out that was found by looking, and both ways to say what is meant."""
    return (
        f"files beside this folder that are not served: {count}; path: '' would serve them as well, "
        f"path: {folder} says that this is meant"
    )


async def _within(store: CatalogStore, index: CatalogIndex, page: CatalogSnapshot) -> list[FileProblem]:
    places = [place async for one in store.entries() if (place := store.within(one.ref)) is not None]
    left = [place for place in places if index.locate(place) is None and index.concerned(place) is None]
    texts = Counter(ending for place in left if (ending := ending_of(place[-1])) in DOCUMENTS)
    if not texts or page.strays:
        return []
    said = f"{_counted(texts)} not served; files: '**/*{next(iter(texts))}' would serve them"
    return [FileProblem(store.folder or ".", 1, said, serious=False)]


async def why_nothing(store: CatalogStore) -> str:
    """Why there is no entry, and what to do about it."""
    names = [place[-1] async for one in store.entries() if (place := store.within(one.ref)) is not None]
    if not names:
        return f"nothing is served: {await _elsewhere(store)}"
    texts = Counter(ending for name in names if (ending := ending_of(name)))
    if not texts:
        kinds = Counter(f".{name.rpartition('.')[2].lower()}" if "." in name else name for name in names)
        told = f"none of the {len(names)} files is a text ({_counted(kinds)}); texts end in {', '.join(FORMS)}"
        return f"nothing is served: {told}"
    best = texts.most_common(1)[0][0]
    return f"nothing is served: files: '**/*{best}' would serve {texts[best]} of the {len(names)} files"


async def _elsewhere(store: CatalogStore) -> str:
    here = f"the folder {store.folder} is not there, or empty" if store.folder else "there is no file in the store"
    folders: Counter[str] = Counter()
    with suppress(OctavoError):
        async for entry in store.everything():
            if ending_of(entry.ref.name):
                folders[entry.ref.segments[0] if len(entry.ref.segments) > 1 else ""] += 1
    if not folders:
        return here
    folder, count = folders.most_common(1)[0]
    return f"{here}; path: {folder or repr('')} would serve {count} files of the store"


def _counted(endings: Counter[str]) -> str:
    shown = endings.most_common(_SHOWN)
    more = f", {sum(endings.values()) - sum(number for _, number in shown)} others" if len(endings) > _SHOWN else ""
    total = sum(endings.values())
    told = ", ".join(f"{number} {ending}" for ending, number in shown)
    return f"{told}{more}" if len(endings) > 1 else f"{total} {shown[0][0]} file{'s' if total > 1 else ''}"
