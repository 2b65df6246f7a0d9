"""The files that the server itself depends on (configuration, keys, code, state), so that no client can change them.

Whoever may write beside them must not be able to put others in their place: neither the file, nor a folder or link on
the way to it, nor a name that is not there yet and would be used once it is. The composition root makes one list of
them; every way to change files asks a `Foundation` made of it.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

Names = tuple[str, ...]
# Whether clients could change what a path leads to: code and words behind such a link are not loaded.
Changeable: TypeAlias = Callable[[Path], bool]

_MOST_LINKS: Final = 40  # the kernel's own limit
LINKED: Final = "is a link to what clients may write, so it is not used: put the file itself here"


class Essential(Struct, frozen=True):
    """A file, or a `folder` with all that is or will be in it. `what` it is, in words for the operator."""

    path: Path
    what: str
    folder: bool = False
    served: bool = False  # callers may read it, as any other file of a root
    starts: bool = False  # not this server stands on it: a client starts the programs that it names


class Way(NamedTuple):
    """A name that is looked up when a path is opened, in the real folder `above`."""

    above: str
    name: str
    kind: Literal["folder", "link", "end"]

    @property
    def path(self) -> str:
        return os.path.join(self.above, self.name)


class Footing(NamedTuple):
    """One root, at one moment: the names below it on which something rests, as `folded` writes them."""

    ends: dict[Names, Essential]  # these themselves, and links that lead to them
    above: dict[Names, Essential]  # folders on the way to them
    found: dict[tuple[int, int], tuple[Essential, bool]]  # what stands there, by what it is; whether it is an end

    def at(self, names: Names) -> Essential | None:
        """What would be changed by a change of this name, or of something in it: not of folders on the way."""
        spelled = folded(names)
        found = (self.ends.get(spelled[:depth]) for depth in range(1, len(spelled) + 1))
        return next((one for one in found if one is not None), None)

    def holding(self, names: Names) -> Essential | None:
        """With folders on the way: who moves or removes one takes along what is in it."""
        return self.at(names) or self.above.get(folded(names))

    def within(self, names: Names) -> Essential | None:
        """Whatever is changed with a folder that somebody may fill and empty as he likes."""
        spelled = folded(names)
        return self.at(names) or next((one for at, one in self.ends.items() if at[: len(spelled)] == spelled), None)

    def being(self, entry: os.stat_result | None, folders: Iterable[os.stat_result]) -> tuple[Essential, bool] | None:
        """The same, and whether it is an end, by what stands there and above it: a disk may know other names for it."""
        for one in folders:
            found = self.found.get((one.st_dev, one.st_ino))
            if found is not None and found[1] and found[0].folder:
                return found
        return None if entry is None else self.found.get((entry.st_dev, entry.st_ino))


class Foundation:
    def __init__(self, essentials: Iterable[Essential] = ()) -> None:
        self.essentials = tuple(essentials)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Foundation) and other.essentials == self.essentials

    def __hash__(self) -> int:
        return hash(self.essentials)

    def below(self, root: os.stat_result) -> Footing:
        """Looked at anew each time: links may lead elsewhere now."""
        ends: dict[Names, Essential] = {}
        above: dict[Names, Essential] = {}
        found: dict[tuple[int, int], tuple[Essential, bool]] = {}
        known: dict[str, Names | None] = {}
        for essential in self.essentials:
            for way in ways(essential.path):
                names = _names_below(root, way.above, known)
                if names is None:
                    continue
                is_end = way.kind != "folder"
                kept, names = ends if is_end else above, (*names, *folded((way.name,)))
                if names not in kept or essential.folder:
                    kept[names] = essential
                if (identity := _identity(way.path)) is not None:
                    found.setdefault(identity, (essential, is_end))
        return Footing(ends, above, found)

    def is_changeable(self, path: Path, roots: Sequence[Path]) -> bool:
        """Whether whoever may write into one of these roots could change what is found at a path."""
        for root in filter(None, map(_stat, map(str, roots))):
            known: dict[str, Names | None] = {}
            inside = [
                (*names, way.name) for way in ways(path) if (names := _names_below(root, way.above, known)) is not None
            ]
            footing = self.below(root) if inside else None
            if footing is not None and any(footing.holding(names) is None for names in inside):
                return True
        return False


def nothing_changes(path: Path) -> bool:
    """Where no client may write anything."""
    return False


def passes_through(path: Path, folder: Path) -> bool:
    """Whether a path is a folder, is in it, would be, or is reached by a link that is."""
    root, there = _stat(str(folder)), _stat(str(path))
    known: dict[str, Names | None] = {}
    if root is None:
        return False
    is_it = there is not None and os.path.samestat(there, root)
    return is_it or any(_names_below(root, way.above, known) is not None for way in ways(path))


def ways(path: Path) -> Iterator[Way]:
    """Every name that is looked up when a path is opened, also behind links, and also where nothing is there yet."""
    pending = [part for part in reversed(path.parts) if part != "/"]
    here, links = "/", 0
    while pending:
        name = pending.pop()
        if name == "..":
            here = os.path.dirname(here)
            continue
        there = os.path.join(here, name)
        if (target := _link(there)) is None:
            yield Way(here, name, "folder" if pending else "end")
            here = there
            continue
        yield Way(here, name, "link")
        links += 1
        if links > _MOST_LINKS:
            return
        here = "/" if target.startswith("/") else here
        pending += [part for part in reversed(target.split("/")) if part not in ("", ".")]


def folded(names: Names) -> Names:
    """Equal for names that a disk may take for one: it may not tell capitals apart, nor Unicode forms."""
    return tuple(
        name.casefold()
        if name.isascii()
        else unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
        for name in names
    )


def _names_below(root: os.stat_result, folder: str, known: dict[str, Names | None]) -> Names | None:
    """The way from a root to a real folder; None where that lies elsewhere. By what the folders are, because one can
    be mounted at two places."""
    if folder not in known:
        found = _stat(folder)
        if found is not None and os.path.samestat(found, root):
            known[folder] = ()
        elif folder == "/":
            known[folder] = None
        else:
            up, name = os.path.split(folder)
            names = _names_below(root, up, known)
            known[folder] = None if names is None else (*names, *folded((name,)))
    return known[folder]


def _link(path: str) -> str | None:
    """Where it leads; None for what is no link, or is not there."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    # A file with several names can be told by any of them; what is no file, link or folder is nothing to stand on.
    known = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)
    return (found.st_dev, found.st_ino) if known else None
