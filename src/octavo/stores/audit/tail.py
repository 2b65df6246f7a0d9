"""What is being recorded, as it happens: the ends of all audit files of one state directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from octavo.core.sizes import BLOCK


class Recent:
    """Remembers how far each file was read. What was there before is not told."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read = {file: file.stat().st_size for file in self._files()}

    def fresh(self) -> Iterator[dict[str, Any]]:
        """The records since the last time, file by file."""
        for file in self._files():
            try:
                with file.open("rb") as opened:
                    opened.seek(self._read.get(file, 0))
                    text = opened.read(BLOCK)
            except FileNotFoundError:  # retention took it away meanwhile
                continue
            whole = text[: text.rfind(b"\n") + 1]
            self._read[file] = self._read.get(file, 0) + len(whole)
            yield from _records(whole)

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob("*.jsonl"))


def _records(text: bytes) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # `octavo audit verify` is for that
        if isinstance(record, dict) and "chain" not in record:
            yield record
