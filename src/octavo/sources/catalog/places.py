"""Where links between files lead: by file, by file without its ending, by folder, and from the root of a site.

Sites are built in many ways. A page `team/process.md` may be shown at `/team/process/`, so that its links begin one
level lower, a page `guide.html` may be built of `guide.html.md`, and the root of a site may be any folder above a page.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from octavo.core.ref import Ref
from octavo.sources.catalog.declaration import FORMS, FRONT_PAGES, ending_of

_FRONT = ("index", "_index", "README", "readme", "Readme", "INDEX")
_RANK = {ending: number for number, ending in enumerate(FORMS)}


class CatalogPlaces:
    def __init__(self, files: Iterable[tuple[str, Ref]]) -> None:
        self._files = dict(files)
        self._stems: dict[str, Ref] = {}
        for file in sorted(self._files, key=lambda file: -_RANK.get(ending_of(file), 0)):
            self._stems[file[: -len(ending_of(file)) or None]] = self._files[file]
        for stem, ref in [*self._stems.items()]:  # `guide.html.md` is what `guide.html` is built of
            if (page := _without_html(stem)) != stem:
                self._stems.setdefault(page, ref)

    def linked(self, file: str, path: str) -> Ref | None:
        for target in _targets(file, path):
            if (ref := self._at(target)) is not None:
                return ref
        return None

    def _at(self, target: str) -> Ref | None:
        if (ref := self._files.get(target)) is not None:
            return ref
        stem = target if target in self._stems else _without_html(target)
        if ending := ending_of(target):
            stem = target[: -len(ending)]
        if (ref := self._stems.get(stem)) is not None:
            return ref
        if ending:
            stem, _, name = stem.rpartition("/")
            if name.casefold() not in FRONT_PAGES:
                return None  # else a folder's own page, whatever it is called there
        return next((ref for name in _FRONT if (ref := self._stems.get(f"{stem}/{name}" if stem else name))), None)


def _targets(file: str, path: str) -> Iterator[str]:
    folder = posixpath.dirname(file)
    if path.startswith("/"):
        roots = [folder]
        while roots[-1]:
            roots.append(posixpath.dirname(roots[-1]))
        for root in reversed(roots):
            yield _joined(root, path.lstrip("/"))
        return
    yield _joined(folder, path)
    stem = _without_html(file[: -len(ending_of(file)) or None])
    if posixpath.basename(stem).casefold() not in FRONT_PAGES:
        yield _joined(stem, path)
    if "/" in path and not path.startswith("."):  # as from the root, its slash forgotten
        yield from _targets(file, f"/{path}")


def _without_html(name: str) -> str:
    return name.removesuffix(".html").removesuffix(".htm")


def _joined(folder: str, path: str) -> str:
    joined = posixpath.normpath(posixpath.join(folder, path))
    return "" if joined == "." else joined
