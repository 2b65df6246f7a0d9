"""PDF, by the extra `pdf`: page by page, with headings guessed from the size of the letters."""

from __future__ import annotations

import encodings.utf_16_le  # noqa: F401  pypdfium2 wants it for texts, when no file can be opened any more
from collections import Counter
from collections.abc import Iterable, Iterator
from ctypes import byref, c_int, create_string_buffer
from importlib import import_module
from typing import Any, Final, NamedTuple

from octavo.core.errors import InvalidParams
from octavo.sources._shared.documents.choose import pages
from octavo.sources._shared.documents.draft import MarkdownDraft, clean, link, paragraph
from octavo.sources._shared.documents.model import Choice, ConversionLimits, PasswordNeeded, Unreadable

try:
    pypdfium2: Any = import_module("pypdfium2")  # says nothing of its types
    pdfium: Any = import_module("pypdfium2.raw")
except ImportError:
    raise InvalidParams("A PDF is read by an extra: install Octavo with its extra pdf") from None
_NAMED_PAGES: Final = 2_000
_MAX_BOOKMARKS: Final = 5_000
_MAX_LINKS: Final = 200
_HYPHENS: Final = ("\x02\r\n", "\ufffe\r\n", "\u00ad\r\n")  # of a word that goes on in the next line
_NO_TEXT: Final = "(no text on this page; it may be a scanned image)"
_HEADING: Final = 1.15  # times the size of most letters
_MAX_HEADING: Final = 150
_GAP: Final = 0.6  # of a line's height: more of it between two lines parts paragraphs


class Line(NamedTuple):
    text: str
    top: float
    bottom: float

    @property
    def size(self) -> float:
        return round((self.top - self.bottom) * 2) / 2

    def goes_on_from(self, before: Line) -> bool:
        return before.size == self.size and 0 <= before.top - self.top <= (1 + _GAP) * max(self.size, 1) + 1


class _Page(NamedTuple):
    number: int
    lines: list[Line]
    remark: str


class Layout:
    """Gathers pages until they fill the output; then the sizes of all their letters are known."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self._pages: list[_Page] = []
        self._letters: Counter[float] = Counter()

    @property
    def full(self) -> bool:
        return self._left < 0

    def page(self, number: int, lines: list[Line], remark: str) -> None:
        for line in lines:
            self._letters[line.size] += len(line.text)
            self._left -= len(line.text)
        self._pages.append(_Page(number, lines, remark))

    def write(self, draft: MarkdownDraft) -> None:
        levels = self._levels()
        for number, lines, remark in self._pages:
            draft.block(f"<!-- page {number} -->")
            for run in _runs(lines):
                level = levels.get(run[0].size)
                text = " ".join(line.text for line in run)
                if level and len(text) <= _MAX_HEADING and any(map(str.isalpha, text)):
                    draft.heading(level, text)
                else:
                    draft.block(paragraph("\n".join(line.text for line in run)))
            draft.block(remark)
        if self.full:
            draft.cut()

    def _levels(self) -> dict[float, int]:
        """From the size of a heading to its level, the greatest first."""
        if not self._letters:
            return {}
        usual = max(self._letters, key=lambda size: self._letters[size])
        greater = sorted((size for size in self._letters if usual > 0 and size >= _HEADING * usual), reverse=True)
        return {size: min(level, 6) for level, size in enumerate(greater, 1)}


def _runs(lines: Iterable[Line]) -> Iterable[list[Line]]:
    """Lines that belong together."""
    run: list[Line] = []
    for line in lines:
        if run and not line.goes_on_from(run[-1]):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def read(raw: bytes, draft: MarkdownDraft, choice: Choice, limits: ConversionLimits) -> None:
    try:
        opened = pypdfium2.PdfDocument(raw)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise PasswordNeeded from None
        raise Unreadable("it is damaged or cut off") from None
    with opened as pdf:
        count = len(pdf)
        if not count:
            raise Unreadable("it has no pages")
        chosen = pages(choice.pages, count)
        titles = _titles(pdf)
        for index in range(min(count, _NAMED_PAGES)):
            draft.part(f"Page {index + 1}: {titles[index]}" if index in titles else f"Page {index + 1}")
        layout = Layout(limits.output_bytes)
        for index in chosen:
            try:
                layout.page(index + 1, *_page(pdf, index))
            except (pypdfium2.PdfiumError, AssertionError):
                layout.page(index + 1, [], "(this page cannot be read)")
            if layout.full:
                break
        layout.write(draft)


def _page(pdf: Any, index: int) -> tuple[list[Line], str]:
    """The lines of a page, and a remark: its links, or that it has no text."""
    page = pdf[index]
    textpage = page.get_textpage()
    try:
        lines = [*_lines(textpage)]
        links = " ".join(dict.fromkeys(_links(pdf, page)))
    finally:
        textpage.close()
        page.close()
    said = [] if lines else [_NO_TEXT]
    return lines, "\n\n".join([*said, f"Links: {links}"] if links else said)


def _lines(textpage: Any) -> Iterator[Line]:
    text = textpage.get_text_range(errors="replace")
    for hyphen in _HYPHENS:
        text = text.replace(hyphen, hyphen[0] * len(hyphen))  # keeps the places of what follows
    place = 0
    for written in text.split("\r\n"):
        shown = clean(written.replace("\x02", "").replace("\ufffe", "").replace("\u00ad", "")).strip()
        if shown:
            indent = len(written) - len(written.lstrip())
            at = pdfium.FPDFText_GetCharIndexFromTextIndex(textpage, place + indent)
            box = pdfium.FS_RECTF()
            known = at >= 0 and pdfium.FPDFText_GetLooseCharBox(textpage, at, byref(box))
            yield Line(shown, box.top, box.bottom) if known else Line(shown, 0.0, 0.0)
        place += len(written) + sum(letter > "\uffff" for letter in written) + 2  # counted in UTF-16


def _links(pdf: Any, page: Any) -> Iterator[str]:
    at, found = c_int(0), pdfium.FPDF_LINK()
    for _ in range(_MAX_LINKS):
        if not pdfium.FPDFLink_Enumerate(page, byref(at), byref(found)):
            return
        action = pdfium.FPDFLink_GetAction(found)
        size = pdfium.FPDFAction_GetURIPath(pdf, action, None, 0) if action else 0
        if size > 1:
            buffer = create_string_buffer(size)
            pdfium.FPDFAction_GetURIPath(pdf, action, buffer, size)
            if shown := link("", buffer.value.decode("utf-8", "replace")):
                yield shown


def _titles(pdf: Any) -> dict[int, str]:
    """The first bookmark of each page."""
    found: dict[int, str] = {}
    for _, bookmark in zip(range(_MAX_BOOKMARKS), pdf.get_toc(), strict=False):
        target = bookmark.get_dest()
        index = target.get_index() if target is not None else None
        if index is not None and (title := bookmark.get_title().strip()):
            found.setdefault(index, title)
    return found
