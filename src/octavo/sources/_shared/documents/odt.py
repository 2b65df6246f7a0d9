"""ODT: the paragraphs, lists, tables and notes of a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from octavo.sources._shared.documents.archive import Archive
from octavo.sources._shared.documents.draft import MarkdownDraft, inline, link, paragraph
from octavo.sources._shared.documents.markup import number, tree
from octavo.sources._shared.documents.model import Choice, ConversionLimits, PasswordNeeded, Unreadable

_MANIFEST: Final = "META-INF/manifest.xml"
_CONTENT: Final = "content.xml"
_SKIPPED: Final = frozenset(("tracked-changes", "annotation", "sequence-decls", "forms"))
_MAX_SPAN: Final = 64


def read(raw: bytes, draft: MarkdownDraft, choice: Choice, limits: ConversionLimits) -> None:
    archive = Archive(raw, limits.unpacked_bytes)
    if _MANIFEST in archive and any(True for _ in tree(archive.stream(_MANIFEST)).iter("encryption-data")):
        raise PasswordNeeded
    body = tree(archive.stream(_CONTENT)).find("body/text")
    if body is None:
        raise Unreadable("it has no text")
    reader = _Reader(draft)
    reader.blocks(body)
    reader.notes()


class _Reader:
    def __init__(self, draft: MarkdownDraft) -> None:
        self._draft = draft
        self._notes: list[str] = []

    def notes(self) -> None:
        for index, text in enumerate(self._notes, 1):
            self._draft.item(f"[^{index}]: {text}")

    def blocks(self, parent: Element) -> None:
        for element in parent:
            if element.tag == "h":
                text = self._text(element)
                self._draft.part(text)
                self._draft.heading(number(element.get("outline-level"), 1), text)
            elif element.tag == "p":
                self._draft.block(paragraph(self._text(element)))
            elif element.tag == "list":
                self._items(element, 0)
            elif element.tag == "table":
                self._draft.table(self._rows(element))
            elif element.tag not in _SKIPPED:
                self.blocks(element)

    def _items(self, element: Element, level: int) -> None:
        for item in element:
            for child in item:
                if child.tag == "list":
                    self._items(child, level + 1)
                elif text := inline(self._text(child)):
                    self._draft.item(f"{'    ' * min(level, 8)}- {text}")

    def _rows(self, table: Element) -> Iterator[list[str]]:
        for row in table.iter("table-row"):
            cells: list[str] = []
            for cell in row:
                if cell.tag in ("table-cell", "covered-table-cell"):
                    text = "\n".join(filter(None, (self._text(each).strip() for each in cell.iter("p"))))
                    cells += [text] * min(max(number(cell.get("number-columns-repeated"), 1), 1), _MAX_SPAN)
            yield cells

    def _text(self, element: Element) -> str:
        return "".join(self._pieces(element))

    def _pieces(self, element: Element) -> Iterator[str]:
        yield element.text or ""
        for child in element:
            if child.tag == "s":
                yield " " * min(max(number(child.get("c"), 1), 1), 100)
            elif child.tag == "tab":
                yield "\t"
            elif child.tag == "line-break":
                yield "\n"
            elif child.tag == "a":
                yield link(self._text(child), child.get("href", ""))
            elif child.tag == "note":
                body = child.find("note-body")
                said = [self._text(each) for each in body] if body is not None else []
                self._notes.append(inline(" ".join(said)))
                yield f"[^{len(self._notes)}]"
            elif child.tag not in _SKIPPED:
                yield from self._pieces(child)
            yield child.tail or ""
