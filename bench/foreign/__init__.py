"""Corpora that others made, read where they lie: one small reader for each, found by what stands in the folder.

Nothing of them is copied into this repository. A reader makes `Case`s of what a project holds to test itself: texts
with what must be found in them, and near misses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from bench.foreign import (
    credsweeper,
    detect_secrets,
    gitleaks,
    kingfisher,
    noseyparker,
    phones,
    presidio,
    secretlint,
    trufflehog,
)
from bench.foreign.case import Case

Reader = Callable[[Path], Iterator[Case]]

# What stands in a folder of each shape, and who reads it.
_READERS: tuple[tuple[str, str, Reader], ...] = (
    ("betterleaks", gitleaks.CONFIGURATIONS[0], gitleaks.cases),
    ("gitleaks", gitleaks.RULES, gitleaks.cases),
    ("trufflehog", trufflehog.DETECTORS, trufflehog.cases),
    ("detect-secrets", detect_secrets.TESTS, detect_secrets.cases),
    ("CredSweeper", credsweeper.EXPECTED, credsweeper.cases),
    ("Nosey Parker", noseyparker.RULES, noseyparker.cases),
    ("Kingfisher", kingfisher.RULES, kingfisher.cases),
    ("secretlint", secretlint.RULES, secretlint.cases),
    ("Presidio's recognisers", presidio.TESTS, presidio.recognisers),
    ("Presidio's research set", presidio.DATA, presidio.research),
    ("libphonenumber", phones.METADATA, phones.cases),
)


def read(folder: Path) -> tuple[str, list[Case]] | None:
    """The corpus in a folder by its name; None for documents and code, in which nothing is marked."""
    for name, sign, reader in _READERS:
        if (folder / sign).exists():
            return name, list(dict.fromkeys(reader(folder)))
    return None
