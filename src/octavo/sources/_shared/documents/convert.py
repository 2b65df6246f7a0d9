"""From a media type to the reader of the format, and from its faults to our errors."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final, NamedTuple

from octavo.core.errors import InvalidParams, TooLarge
from octavo.sources._shared.documents.draft import Full, MarkdownDraft
from octavo.sources._shared.documents.model import (
    Choice,
    ConversionLimits,
    ConvertedDocument,
    PasswordNeeded,
    Unreadable,
)

Read = Callable[[bytes, MarkdownDraft, Choice, ConversionLimits], None]

_OOXML: Final = "application/vnd.openxmlformats-officedocument"


class DocumentFormat(NamedTuple):
    name: str
    module: str
    divided: str = ""  # the parts by which it can be read: pages, slides, sheets


_PDF: Final = DocumentFormat("PDF", "pdf", "pages")
_DOCX: Final = DocumentFormat("DOCX", "docx")
_PPTX: Final = DocumentFormat("PPTX", "pptx", "slides")
_XLSX: Final = DocumentFormat("XLSX", "xlsx", "sheets")
_HWPX: Final = DocumentFormat("HWPX", "hwpx")

FORMATS: Final = {
    "application/pdf": _PDF,
    f"{_OOXML}.wordprocessingml.document": _DOCX,
    f"{_OOXML}.wordprocessingml.template": _DOCX,
    "application/vnd.ms-word.document.macroenabled.12": _DOCX,
    f"{_OOXML}.presentationml.presentation": _PPTX,
    f"{_OOXML}.presentationml.slideshow": _PPTX,
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": _PPTX,
    f"{_OOXML}.spreadsheetml.sheet": _XLSX,
    f"{_OOXML}.spreadsheetml.template": _XLSX,
    "application/vnd.ms-excel.sheet.macroenabled.12": _XLSX,
    "application/vnd.ms-excel": DocumentFormat("XLS", "calamine", "sheets"),
    "application/vnd.ms-excel.sheet.binary.macroenabled.12": DocumentFormat("XLSB", "calamine", "sheets"),
    "application/vnd.oasis.opendocument.spreadsheet": DocumentFormat("ODS", "calamine", "sheets"),
    "application/vnd.oasis.opendocument.text": DocumentFormat("ODT", "odt"),
    "application/hwp+zip": _HWPX,
    "application/vnd.hancom.hwpx": _HWPX,
    "application/x-ipynb+json": DocumentFormat("notebook", "notebook"),
}


def format_of(mime: str) -> DocumentFormat:
    """Raises InvalidParams that names what can be converted."""
    kind = FORMATS.get(mime.partition(";")[0].strip().lower())
    if kind is None:
        names = ", ".join(dict.fromkeys(each.name for each in FORMATS.values()))
        raise InvalidParams(f"There is no text to be made of this media type, but of: {names}")
    return kind


def convert(
    raw: bytes,
    mime: str,
    *,
    pages: str | None = None,
    sheet: str | None = None,
    range: str | None = None,
    limits: ConversionLimits,
) -> ConvertedDocument:
    """The document as Markdown, in this very process: see `Converter` for the bytes of strangers.

    Raises InvalidParams for what cannot be read (damaged, protected, of another kind, or chosen wrongly) and
    TooLarge for what unpacks to too much.
    """
    return prepared(mime)(raw, Choice(pages, sheet, range), limits)


def prepared(mime: str) -> Callable[[bytes, Choice, ConversionLimits], ConvertedDocument]:
    """The conversion of one kind, with all its imports done: the worker opens no file after this."""
    kind = format_of(mime)
    read: Read = import_module(f"octavo.sources._shared.documents.{kind.module}").read

    def run(raw: bytes, choice: Choice, limits: ConversionLimits) -> ConvertedDocument:
        return _run(kind, read, raw, choice, limits)

    return run


def _run(kind: DocumentFormat, read: Read, raw: bytes, choice: Choice, limits: ConversionLimits) -> ConvertedDocument:
    _refuse_foreign_choice(kind, choice)
    draft = MarkdownDraft(limits.output_bytes)
    try:
        read(raw, draft, choice, limits)
    except Full:
        pass
    except PasswordNeeded:
        raise InvalidParams(f"The {kind.name} is protected by a password; save it without one") from None
    except Unreadable as error:
        raise InvalidParams(f"Not a readable {kind.name}: {error}") from None
    except (ValueError, LookupError, ArithmeticError, TypeError, AttributeError, EOFError, RecursionError):
        # A reader takes the shape of a document for granted; a document of another shape trips it somewhere.
        raise InvalidParams(f"Not a readable {kind.name}: it is not built as the format says") from None
    except MemoryError:
        raise TooLarge(f"The {kind.name} needs more memory than is allowed; ask for a part of it") from None
    return ConvertedDocument(draft.markdown(), tuple(draft.parts), draft.truncated)


def _refuse_foreign_choice(kind: DocumentFormat, choice: Choice) -> None:
    paged, sheeted = kind.divided in ("pages", "slides"), kind.divided == "sheets"
    if choice.pages is not None and not paged:
        instead = "; choose a sheet" if sheeted else ""
        raise InvalidParams(f"The {kind.name} has no pages to choose from{instead}")
    if (choice.sheet is not None or choice.range is not None) and not sheeted:
        instead = "; choose pages" if paged else ""
        raise InvalidParams(f"The {kind.name} has no sheets to choose from{instead}")
