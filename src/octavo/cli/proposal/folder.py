"""A look at a folder: names alone, as far as a bound allows, along no link to a folder, never into what is hidden."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final, Literal

from msgspec import Struct

from octavo.cli._progress import Shows
from octavo.core.clock import SystemClock
from octavo.core.errors import NotFound
from octavo.core.ref import Ref
from octavo.core.sizes import KIB
from octavo.core.values import Content, Entry, Page
from octavo.sources._shared.fs.names import canonical_name
from octavo.sources.catalog.declaration import Segments

MOST: Final = 100_000  # files; whoever has more is told how far the look went
SECONDS: Final = 20.0
# Folders of programs, which nobody writes by hand.
OF_PROGRAMS: Final = frozenset(("node_modules", "bower_components", "__pycache__", "venv", "site-packages"))
# What is looked at of hidden folders: other programs keep such files there, for agents.
FOR_AGENTS: Final[frozenset[Segments]] = frozenset(
    (above, name) for above in (".agents", ".claude", ".github") for name in ("agents", "commands", "prompts", "skills")
)
_HEAD: Final = 4096
_LARGEST: Final = 256 * KIB  # bytes of a definition


class Look(Struct, frozen=True):
    """Files by the names of their paths, in order."""

    base: Path
    files: Sequence[Segments]
    passed: frozenset[str] = frozenset()  # names of folders of programs that were met
    hidden: frozenset[str] = frozenset()  # names of hidden folders at the top that were met
    linked: int = 0
    unread: int = 0
    whole: bool = True  # whether everything was looked at

    def head(self, file: Segments) -> str:
        """The beginning of a file; nothing where it cannot be read as text."""
        try:
            descriptor = os.open(self.base.joinpath(*file), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as opened:
                return opened.read(_HEAD).decode("utf-8", "replace") if S_ISREG(os.fstat(descriptor).st_mode) else ""
        except OSError:
            return ""


def look(base: Path, shows: Shows, *, most: int = MOST) -> Look:
    """Raises OSError where the folder itself cannot be read."""
    files: list[Segments] = []
    hidden, passed, counts = set[str](), set[str](), Counter[str]()
    waiting: list[Segments] = [()]
    until = SystemClock.monotonic() + SECONDS
    while waiting and len(files) < most and SystemClock.monotonic() < until:
        at = waiting.pop()
        there = _children(base, at)
        if there is None:
            counts["unread"] += 1
            continue
        folders: list[Segments] = []
        for one in there:
            name = canonical_name(one.name)
            if name is None:
                continue
            place = (*at, name)
            match _taken_for(one, base, at, name):
                case "file":
                    files.append(place)
                case "programs":
                    passed.add(name)
                case "folder":
                    if not at and name.startswith("."):
                        hidden.add(name)
                    if _is_open(place):
                        folders.append(place)
                case "linked" | "unread" as why:
                    counts[why] += 1
                case "nothing":
                    pass
        waiting += reversed(folders)
        shows(done=len(files))
    return Look(
        base=base,
        files=tuple(sorted(files[:most])),
        passed=frozenset(passed),
        hidden=frozenset(hidden),
        linked=counts["linked"],
        unread=counts["unread"],
        whole=not waiting and len(files) <= most,
    )


def _taken_for(
    one: os.DirEntry[str], base: Path, at: Segments, name: str
) -> Literal["file", "folder", "programs", "linked", "unread", "nothing"]:
    mode = one.stat(follow_symlinks=False).st_mode
    if one.is_symlink():
        if not _leads_inside(base, one.path):
            return "linked"
        return "file" if _is_shown(at, name) else "nothing"
    if S_ISDIR(mode):
        return "programs" if name in OF_PROGRAMS else "folder"
    if not S_ISREG(mode) or not (_is_shown(at, name) or (len(at) > 1 and not name.startswith("."))):
        return "nothing"
    return "file" if os.access(one.path, os.R_OK) else "unread"


def _children(base: Path, folder: Segments) -> list[os.DirEntry[str]] | None:
    """By name; None for one that cannot be read. Raises OSError where that is the base itself."""
    try:
        return sorted(os.scandir(base.joinpath(*folder)), key=lambda one: one.name)
    except OSError:
        if not folder:
            raise
        return None


def _is_shown(folder: Segments, name: str) -> bool:
    """Neither is it hidden, nor the folder at the top in which it stands."""
    return not name.startswith(".") and not (folder and folder[0].startswith("."))


def _leads_inside(base: Path, link: str) -> bool:
    """To a file that is served, so that the link is served as well."""
    try:
        target = Path(link).resolve(strict=True)
        names = target.relative_to(base.resolve()).parts
        return target.is_file() and os.access(target, os.R_OK) and not any(_is_passed(name) for name in names)
    except (OSError, RuntimeError, ValueError):  # a circle, nothing, or what lies elsewhere
        return False


def _is_passed(name: str) -> bool:
    return name.startswith(".") or name in OF_PROGRAMS or canonical_name(name) is None


def _is_open(place: Segments) -> bool:
    """Hidden folders are not looked into, but for those of agents."""
    if any(name.startswith(".") for name in place[1:]):
        return False
    if not place[0].startswith("."):
        return True
    return place[:2] in FOR_AGENTS if len(place) > 1 else any(one[0] == place[0] for one in FOR_AGENTS)


class Looked:
    """The files of a look as a source, so that catalogs choose among them as they do among those of their store."""

    scheme = "looked"

    def __init__(self, at: Look) -> None:
        self._look = at

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        files, depth = self._look.files, len(scope.segments)
        begin = int(cursor) if cursor else bisect_left(files, scope.segments)
        found = [*takewhile(lambda one: one[:depth] == scope.segments, files[begin : begin + limit])]
        items = tuple(Entry(ref=Ref.of(self.scheme, one), name=one[-1]) for one in found)
        return Page(items, str(begin + limit) if len(found) == limit else None)

    async def stat(self, ref: Ref) -> Entry:
        if ref.segments not in self._look.files:
            raise NotFound(f"Resource not found: {ref}", uri=str(ref))
        return Entry(ref=ref, name=ref.name)

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        return Content(entry=await self.stat(ref), body=self._look.head(ref.segments))
