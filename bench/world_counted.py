"""What counts as a document in a repository that nobody here wrote: the rule stands in words in `world.py`."""

from __future__ import annotations

import os
import re
from pathlib import Path

ENDINGS = (".md", ".mdx", ".markdown", ".rst", ".adoc")
NO_DOCUMENT = re.compile(r"(?:licen[sc]e|copying|copyright|notice|patents|ofl)(?:[._-].*)?", re.IGNORECASE)
OF_PROGRAMS = {
    *("node_modules", "bower_components", "vendor", "third_party", "third-party", "site-packages"),
    *("_build", "_site", "dist", "__pycache__", "testdata", "fixtures", "__tests__"),
}


def documents(folder: Path) -> set[str]:
    """By their endings, wherever they stand."""
    return {path for path in _files(folder) if path.lower().endswith(ENDINGS)}


def skills(folder: Path) -> set[str]:
    """Their SKILL.md. A skill inside another one is a part of it."""
    found = sorted(path.removesuffix("/SKILL.md") for path in _files(folder) if path.endswith("/SKILL.md"))
    outer: list[str] = []
    for path in found:
        if not outer or not path.startswith(f"{outer[-1]}/"):
            outer.append(path)
    return {f"{path}/SKILL.md" for path in outer}


def evidently_none(path: str) -> bool:
    *folders, name = path.split("/")
    if name == "SKILL.md" and folders[-1:] in (["template"], ["templates"]):
        return True
    programs = any(one.startswith(".") or one.lower() in OF_PROGRAMS for one in folders)
    return programs or NO_DOCUMENT.fullmatch(name) is not None


def _files(folder: Path) -> list[str]:
    found: list[str] = []
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        found += [
            (Path(at) / name).relative_to(folder).as_posix() for name in names if not (Path(at) / name).is_symlink()
        ]
    return found
