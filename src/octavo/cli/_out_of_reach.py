"""Files that nobody gets as they lie there: no address can name them, of their names only one has an address, or this
user cannot read them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

from octavo.config.load import Loaded
from octavo.config.problems import Problem
from octavo.sources._shared.fs.credentials import CREDENTIALS
from octavo.sources._shared.fs.names import Rules, canonical_name

_TWIN = "is not served: another name beside it differs in its Unicode form alone"
_UNREADABLE = "cannot be read by this user"
_NO_ADDRESS = "is not served: its name has a backslash, an invisible character or bytes that are no UTF-8"


def out_of_reach(loaded: Loaded) -> Iterator[Problem]:
    """In the folders of file sources, whether they have addresses or are the stores of catalogs."""
    sources = loaded.config.sources
    for _, one in sorted(sources.items()):
        extensions = one.record.extensions
        rules = Rules(("*",) if extensions is None else extensions(one), ())
        for folder in one.folders:
            if folder.files:
                yield from _among(folder.path, rules)


def nothing_in(root: Path) -> bool:
    """Whether a folder that is served without a configuration has no file that anybody could get."""
    rules = Rules(("*",), CREDENTIALS)
    for folder, folders, names in os.walk(root):
        place = Path(folder).relative_to(root).parts
        folders[:] = [name for name in folders if not rules.hides_on_the_way((*place, name), folder=True)]
        if any(rules.verdict((*place, name)) == "served" and _is_file(root, (*place, name), rules) for name in names):
            return False
    return True


def _is_file(root: Path, names: tuple[str, ...], rules: Rules) -> bool:
    """Not a link that leads out, in a circle or to what is hidden."""
    path = root.joinpath(*names)
    if not path.is_symlink():
        return path.is_file()
    target, inside = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    return (
        target.is_file()
        and target.is_relative_to(inside)
        and rules.verdict(target.relative_to(inside).parts) == "served"
    )


def _among(root: Path, rules: Rules) -> Iterator[Problem]:
    from octavo.sources.catalog.declaration import ending_of  # here: who only serves files does without catalogs

    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", ".octavo")]
        for name in (*folders, *names):
            if canonical_name(name) is None and (name in folders or rules.allows(name)):
                yield Problem(_shown(Path(folder) / name), "", _NO_ADDRESS, line=1)
        for name in names:
            if ending_of(name) and rules.allows(name) and not os.access(Path(folder) / name, os.R_OK):
                yield Problem(_shown(Path(folder) / name), "", _UNREADABLE, line=1)
        foreign = [name for name in names if not name.isascii()]
        seen = Counter(normalize("NFC", name) for name in foreign)
        for name in foreign:
            composed = normalize("NFC", name)
            if seen[composed] > 1 and name != composed:
                yield Problem(_shown(Path(folder) / name), "", _TWIN, line=1)


def _shown(path: Path) -> str:
    """On one line, as far as a terminal can show it."""
    return "".join(
        c if c.isprintable() else f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else ascii(c)[1:-1]
        for c in str(path)
    )
