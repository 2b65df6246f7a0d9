"""What a backup is made of."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from octavo.stores.totals import Totals

VERSION: Final = 1
KIND: Final = "octavo-backup"
MANIFEST: Final = "manifest.json"
STORE: Final = "store"
SECRET: Final = "secret"  # noqa: S105 (a name)
AUDIT: Final = re.compile(r"audit/(?P<file>[^/\0]+\.(?:jsonl|head|counts))\Z")
LENGTH: Final = 8  # bytes before each portion, which say how long it is


class Bytes(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    kind: str
    version: int
    octavo: str  # the release that wrote it
    time: str
    store: Totals
    parts: dict[str, Bytes]
