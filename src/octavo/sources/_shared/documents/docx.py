"""DOCX: the paragraphs, lists, tables and notes of a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from octavo.sources._shared.documents.archive import Archive
from octavo.sources._shared.documents.docx_styles import Lists, headings
from octavo.sources._shared.documents.draft import Draft, inline, link, paragraph
from octavo.sources._shared.documents.markup import number, tree
from octavo.sources._shared.documents.model import Choice, ConversionLimits, Unreadable
from octavo.sources._shared.documents.package import main_part, related, relations

# What was deleted, moved away or drawn a second time for old programs is not the text.
_SKIPPED: Final = frozenset(("del", "moveFrom", "Fallback", "instrText", "delText", "rPr", "pPr", "sectPr"))
_CHARACTERS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_MAX_SPAN: Final = 64


def read(raw: bytes, draft: Draft, choice: Choice, limits: ConversionLimits) -> None:
    archive = Archive(raw, limits.unpacked_bytes)
    main = main_part(archive)
    body = tree(archive.stream(main)).find("body")
    if body is None:
        raise Unreadable("it has no body")
    _Reader(archive, main, draft).read(body)


class _Reader:
    def __init__(self, archive: Archive, main: str, draft: Draft) -> None:
        self._relations = relations(archive, main)
        self._draft = draft
        self._headings = headings(self._part(archive, "styles"))
        self._lists = Lists(self._part(archive, "numbering"))
        self._notes = {
            kind: {note.get("id", ""): note for note in self._part(archive, f"{kind}s") or ()}
            for kind in ("footnote", "endnote")
        }
        self._cited: dict[str, Element] = {}
        self._closed = False
        self._boxes: list[Element] = []

    def _part(self, archive: Archive, kind: str) -> Element | None:
        name = related(self._relations, kind)
        return tree(archive.stream(name)) if name and name in archive else None

    def read(self, body: Element) -> None:
        self._blocks(body)
        self._closed = True  # a note that cites a note cites one that is there, or nothing
        for label, note in self._cited.items():
            self._draft.item(f"[^{label}]: {inline(self._flat(note))}")

    def _blocks(self, parent: Element) -> None:
        for element in parent:
            if element.tag == "p":
                self._paragraph(element)
            elif element.tag == "tbl":
                self._draft.table(self._rows(element))
            elif element.tag not in _SKIPPED:  # content controls, insertions, custom XML
                self._blocks(element)

    def _paragraph(self, element: Element) -> None:
        text = self._text(element)
        style = element.find("pPr/pStyle")
        name = style.get("val", "") if style is not None else ""
        level = self._headings.get(name, 0)
        outline = element.find("pPr/outlineLvl")
        if outline is not None:
            level = number(outline.get("val"), 9) + 1
        if not text.strip():
            pass
        elif 1 <= level <= 9:
            self._draft.part(text)
            self._draft.heading(level, text)
        elif mark := self._lists.mark(element.find("pPr/numPr"), name):
            self._draft.item(f"{mark} {inline(text)}")
        else:
            self._draft.block(paragraph(text))
        while self._boxes:
            self._blocks(self._boxes.pop(0))

    def _text(self, element: Element) -> str:
        return "".join(self._pieces(element))

    def _pieces(self, element: Element) -> Iterator[str]:
        for child in element:
            tag = child.tag
            if tag == "t":
                yield child.text or ""
            elif tag in _CHARACTERS:
                yield _CHARACTERS[tag]
            elif tag == "hyperlink":
                relation = self._relations.get(child.get("r:id", ""))
                text = self._text(child)
                yield link(text, relation.target) if relation and relation.external else text
            elif tag in ("footnoteReference", "endnoteReference"):
                yield self._cite(tag.removesuffix("Reference"), child.get("id", ""))
            elif tag == "docPr" and child.get("descr"):
                yield f"[image: {inline(child.get('descr', ''))}]"
            elif tag == "txbxContent":
                self._boxes.append(child)
            elif tag not in _SKIPPED:
                yield from self._pieces(child)

    def _cite(self, kind: str, key: str) -> str:
        note = self._notes[kind].get(key)
        if note is None:
            return ""
        label = key if kind == "footnote" else f"e{key}"
        if not self._closed:
            self._cited.setdefault(label, note)
        return f"[^{label}]"

    def _rows(self, table: Element) -> Iterator[list[str]]:
        for row in _own(table, "tr"):
            cells: list[str] = []
            for cell in _own(row, "tc"):
                merged = cell.find("tcPr/vMerge")
                goes_on = merged is not None and merged.get("val", "continue") == "continue"
                cells.append("" if goes_on else self._flat(cell))
                span = cell.find("tcPr/gridSpan")
                if span is not None:
                    cells += [""] * (min(number(span.get("val"), 1), _MAX_SPAN) - 1)
            yield cells

    def _flat(self, element: Element) -> str:
        """All paragraphs below, one a line: Markdown knows no blocks inside of a cell or a note."""
        text = "\n".join(text for each in _paragraphs(element) if (text := self._text(each).strip()))
        self._boxes.clear()  # their paragraphs were among those
        return text


def _own(element: Element, tag: str) -> Iterator[Element]:
    """The rows of a table, the cells of a row, also inside of content controls; not those of inner tables."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag not in _SKIPPED:
            yield from _own(child, tag)


def _paragraphs(element: Element) -> Iterator[Element]:
    for child in element:
        if child.tag == "p":
            yield child
        if child.tag not in _SKIPPED:
            yield from _paragraphs(child)
