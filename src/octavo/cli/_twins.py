"""Names in one folder that differ in their Unicode form alone: only one of such files has an address."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

from octavo.config.load import Loaded
from octavo.config.problems import Problem


def twins(loaded: Loaded) -> Iterator[Problem]:
    """In the folders of the stores of catalogs."""
    sources = loaded.config.sources
    stores = {one.over.store for one in sources.values() if one.over is not None}
    for store in (sources.get(name) for name in sorted(stores)):
        for folder in store.folders if store is not None else ():
            if folder.files:
                yield from _among(folder.path)


def _among(root: Path) -> Iterator[Problem]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        foreign = [name for name in names if not name.isascii()]
        seen = Counter(normalize("NFC", name) for name in foreign)
        for name in foreign:
            composed = normalize("NFC", name)
            if seen[composed] > 1 and name != composed:
                said = "is not served: another name beside it differs in its Unicode form alone"
                yield Problem(str(Path(folder) / name), "", said, line=1)
