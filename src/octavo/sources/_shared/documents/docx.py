"""DOCX as Markdown: paragraphs, headings, lists, tables and notes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from octavo.sources._shared.documents.archive import Archive, main_part, related, relations
from octavo.sources._shared.documents.draft import MarkdownDraft, inline, link, paragraph
from octavo.sources._shared.documents.markup import children, number, tree
from octavo.sources._shared.documents.model import Choice, ConversionLimits, Unreadable

# What was deleted, moved away or drawn a second time for old programs is not the text.
_SKIPPED: Final = frozenset(("del", "moveFrom", "Fallback", "instrText", "delText", "rPr", "pPr", "sectPr"))
_CHARACTERS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_MAX_SPAN: Final = 64
_HEADING: Final = re.compile(r"(?:heading|제목|見出し|标题|標題|überschrift|titre)\s*([1-9])", re.IGNORECASE)
_TITLES: Final = ("title", "제목", "표제")
_MAX_BASES: Final = 10
_PLAIN: Final = frozenset(("bullet", "none"))


def headings(styles: Element | None) -> dict[str, int]:
    """Style id -> level from 1, by outline level, else by name, else by the style that it is based on."""
    own: dict[str, int] = {}
    bases: dict[str, str] = {}
    for style in children(styles, "style"):
        key, name, outline = style.get("styleId", ""), style.find("name"), style.find("pPr/outlineLvl")
        spelled = name.get("val", "") if name is not None else ""
        match = _HEADING.fullmatch(spelled)
        if outline is not None:
            own[key] = number(outline.get("val"), 9) + 1
        elif match:
            own[key] = int(match[1])
        elif spelled.casefold() in _TITLES:
            own[key] = 1
        base = style.find("basedOn")
        if base is not None:
            bases[key] = base.get("val", "")
    for key in bases:
        ancestor = key
        for _ in range(_MAX_BASES):
            if ancestor in own:
                own[key] = own[ancestor]
                break
            ancestor = bases.get(ancestor, "")
    return own


class Lists:
    """The marks of list items, counted on from item to item."""

    def __init__(self, numbering: Element | None) -> None:
        abstract = {each.get("abstractNumId", ""): each for each in children(numbering, "abstractNum")}
        self._formats: dict[tuple[str, int], str] = {}
        for each in children(numbering, "num"):
            of = each.find("abstractNumId")
            for level in children(abstract.get(of.get("val", "")) if of is not None else None, "lvl"):
                form = level.find("numFmt")
                place = (each.get("numId", ""), number(level.get("ilvl")))
                self._formats[place] = form.get("val", "") if form is not None else "decimal"
        self._counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * 9)

    def mark(self, properties: Element | None, style: str) -> str:
        """`- `, `3.`, indented by its level; "" for a paragraph that is no item."""
        if properties is None:
            return "-" if style.casefold().startswith("listbullet") else ""
        of, at = properties.find("numId"), properties.find("ilvl")
        key = of.get("val", "0") if of is not None else "0"
        level = min(number(at.get("val")), 8) if at is not None else 0
        if key == "0":  # says that the numbering of the style is switched off here
            return ""
        indent = "    " * level
        if self._formats.get((key, level), "bullet") in _PLAIN:
            return f"{indent}-"
        counts = self._counts[key]
        counts[level] += 1
        counts[level + 1 :] = [0] * (8 - level)
        return f"{indent}{counts[level]}."


def read(raw: bytes, draft: MarkdownDraft, choice: Choice, limits: ConversionLimits) -> None:
    archive = Archive(raw, limits.unpacked_bytes)
    main = main_part(archive)
    body = tree(archive.stream(main)).find("body")
    if body is None:
        raise Unreadable("it has no body")
    _Reader(archive, main, draft).read(body)


class _Reader:
    def __init__(self, archive: Archive, main: str, draft: MarkdownDraft) -> None:
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
