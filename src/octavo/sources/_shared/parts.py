"""Answers parameters that ask for a part: a range of bytes, or a document as text."""

from __future__ import annotations

from typing import Final

from octavo.core.errors import InvalidParams
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.values import Entry

DOCUMENT_BYTES: Final = 64 * MIB  # of a document that is converted
_NOTEBOOK: Final = "application/x-ipynb+json"


def parse_range(ref: Ref, text: str, max_bytes: int) -> tuple[int, int]:
    """Where the range begins and how long it is. `0-65535` are the first 65,536 bytes; the end may lie behind the
    end of the file. Raises InvalidParams for anything else, and for more than `max_bytes`."""
    first, dash, last = text.partition("-")
    numbers = [part for part in (first, last) if part.isascii() and part.isdigit() and len(part) < 16]
    if not dash or len(numbers) != 2 or int(last) < int(first):
        raise InvalidParams("The parameter range must be two numbers of bytes, such as 0-65535", uri=str(ref))
    length = int(last) - int(first) + 1
    if length > max_bytes:
        raise InvalidParams(f"The range has {length} bytes, the limit is {max_bytes}: ask for less", uri=str(ref))
    return int(first), length


def document_mime(entry: Entry) -> str:
    """Notebooks are JSON for everybody else."""
    return _NOTEBOOK if entry.name.lower().endswith(".ipynb") else entry.mime_type
