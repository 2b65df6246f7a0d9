"""The values of a conversion. Plain tuples: the worker process starts faster without anything heavier."""

from __future__ import annotations

from typing import NamedTuple

from octavo.core.sizes import MIB


class ConversionLimits(NamedTuple):
    """What one conversion may cost. Reaching `output_bytes` cuts the text and says so; the others refuse."""

    input_bytes: int = 64 * MIB
    output_bytes: int = 4 * MIB
    unpacked_bytes: int = 256 * MIB  # all that is taken out of one archive
    memory_bytes: int = 768 * MIB  # address space of the worker
    seconds: float = 20.0  # of the clock, and of the processor
    pixels: int = 64_000_000  # of an image, before it is shrunk


class Choice(NamedTuple):
    """The part of a document that is wanted: `2-4,7`, a sheet by name or number, `A1:C9` of it."""

    pages: str | None = None
    sheet: str | None = None
    range: str | None = None


class ConvertedDocument(NamedTuple):
    """`parts` names all that the document has, chosen or not: its pages, slides or sheets, else its headings."""

    markdown: str
    parts: tuple[str, ...]
    truncated: bool


class Unreadable(ValueError):
    """The bytes are not what their media type says. The text completes "Not a readable DOCX: ..."."""


class PasswordNeeded(ValueError):
    """A password is needed."""
