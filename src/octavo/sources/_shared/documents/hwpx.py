"""HWPX, the open format of Hangul: sections of paragraphs, with outlines, tables and notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from octavo.sources._shared.documents.archive import Archive
from octavo.sources._shared.documents.draft import MarkdownDraft, inline, link, paragraph
from octavo.sources._shared.documents.markup import children, number, tree
from octavo.sources._shared.documents.model import Choice, ConversionLimits, PasswordNeeded, Unreadable

_MANIFEST: Final = "META-INF/manifest.xml"
_CONTENTS: Final = "Contents/content.hpf"
_HEADER: Final = "Contents/header.xml"
_SECTION: Final = re.compile(r"Contents/section(\d{1,6})\.xml")
_OUTLINE: Final = re.compile(r"(?:개요|outline)\s*(\d)", re.IGNORECASE)
_CHARACTERS: Final = {"tab": "\t", "lineBreak": "\n", "nbSpace": " ", "fwSpace": " ", "hyphen": "-"}
# What stands on every page, or is the other way of saying the same.
_SKIPPED: Final = frozenset(("header", "footer", "secPr", "linesegarray", "default"))
_COUNTED: Final = frozenset(("TABLE", "PICTURE", "EQUATION"))
_MAX_SPAN: Final = 64


def read(raw: bytes, draft: MarkdownDraft, choice: Choice, limits: ConversionLimits) -> None:
    archive = Archive(raw, limits.unpacked_bytes)
    if _MANIFEST in archive and any(True for _ in tree(archive.stream(_MANIFEST)).iter("encryption-data")):
        raise PasswordNeeded
    names = _sections(archive)
    if not names:
        raise Unreadable("it has no sections")
    reader = _Reader(tree(archive.stream(_HEADER)) if _HEADER in archive else None, draft)
    for name in names:
        reader.blocks(tree(archive.stream(name)))
    reader.notes()


def _sections(archive: Archive) -> list[str]:
    """In the order of the spine, else of their numbers."""
    if _CONTENTS in archive:
        contents = tree(archive.stream(_CONTENTS))
        items = {item.get("id", ""): item.get("href", "") for item in contents.iterfind("manifest/item")}
        spine = [items.get(each.get("idref", ""), "") for each in contents.iterfind("spine/itemref")]
        found = [name for name in spine if _SECTION.fullmatch(name) and name in archive]
        if found:
            return found
    numbered = [(int(match[1]), name) for name in archive if (match := _SECTION.fullmatch(name))]
    return [name for _, name in sorted(numbered)]


class _Reader:
    def __init__(self, header: Element | None, draft: MarkdownDraft) -> None:
        self._draft = draft
        self._properties: dict[str, tuple[str, int]] = {}  # of a paragraph: what it is, and its level
        for each in header.iter("paraPr") if header is not None else ():
            heading = each.find("heading")
            if heading is not None:
                kind, level = heading.get("type", "NONE"), number(heading.get("level"))
                self._properties[each.get("id", "")] = (kind, level)
        self._styles: dict[str, int] = {}
        for style in children(header, ".//style"):
            names = (style.get("name", ""), style.get("engName", ""))
            match = next((match for name in names if (match := _OUTLINE.fullmatch(name.strip()))), None)
            if match:
                self._styles[style.get("id", "")] = int(match[1])
        self._count = [0] * 10
        self._notes: list[str] = []
        self._inner: list[Element] = []

    def notes(self) -> None:
        for index, text in enumerate(self._notes, 1):
            self._draft.item(f"[^{index}]: {text}")

    def blocks(self, parent: Element) -> None:
        for element in parent.iterfind("p"):
            self._paragraph(element)

    def _paragraph(self, element: Element) -> None:
        text = "".join(self._pieces(element))
        kind, level = self._properties.get(element.get("paraPrIDRef", ""), ("NONE", 0))
        outline = self._styles.get(element.get("styleIDRef", ""), level + 1 if kind == "OUTLINE" else 0)
        level = min(level, 9)
        if kind != "NUMBER":
            self._count = [0] * 10
        if not text.strip():
            pass
        elif outline:
            self._draft.part(text)
            self._draft.heading(outline, text)
        elif kind == "NUMBER":
            self._count[level] += 1
            self._count[level + 1 :] = [0] * (9 - level)
            self._draft.item(f"{'    ' * level}{self._count[level]}. {inline(text)}")
        elif kind == "BULLET":
            self._draft.item(f"{'    ' * level}- {inline(text)}")
        else:
            self._draft.block(paragraph(text))
        waiting, self._inner = self._inner, []
        for inner in waiting:  # tables and boxes are anchored in a paragraph, and follow it
            if inner.tag == "tbl":
                for caption in inner.iterfind("caption/subList"):
                    self.blocks(caption)
                self._draft.table(self._rows(inner))
            else:
                self.blocks(inner)

    def _pieces(self, element: Element) -> Iterator[str]:
        opened: list[tuple[str, list[str]]] = []  # fields whose end has not come yet: address, texts
        for piece in self._events(element):
            if isinstance(piece, Element):
                opened.append((_address(piece), []))
            elif piece is not None:
                if opened:
                    opened[-1][1].append(piece)
                else:
                    yield piece
            elif opened:
                address, texts = opened.pop()
                linked = link("".join(texts), address)
                if opened:
                    opened[-1][1].append(linked)
                else:
                    yield linked
        for _, texts in opened:
            yield from texts

    def _events(self, element: Element) -> Iterator[str | Element | None]:
        """Texts; the beginning of a field as its element; None at the end of one."""
        for child in element:
            tag = child.tag
            if tag == "t":
                yield from _kept(child)
            elif tag in _CHARACTERS:
                yield _CHARACTERS[tag]
            elif tag == "fieldBegin":
                yield child
            elif tag == "fieldEnd":
                yield None
            elif tag in ("footNote", "endNote"):
                self._notes.append(inline(self._flat(child)))
                yield f"[^{len(self._notes)}]"
            elif tag == "equation":
                yield f"${inline(child.findtext('script') or '')}$"
            elif tag == "autoNum" and child.get("numType") in _COUNTED:
                yield child.get("num", "")
            elif tag in ("tbl", "subList"):
                self._inner.append(child)
            elif tag not in _SKIPPED:
                yield from self._events(child)

    def _rows(self, table: Element) -> Iterator[list[str]]:
        for row in table.iterfind("tr"):
            cells: list[str] = []
            for cell in row.iterfind("tc"):
                place, span = cell.find("cellAddr"), cell.find("cellSpan")
                column = number(place.get("colAddr"), len(cells)) if place is not None else len(cells)
                cells += [""] * (min(column, len(cells) + _MAX_SPAN) - len(cells))  # below a cell that spans rows
                cells.append(self._flat(cell))
                wide = number(span.get("colSpan"), 1) if span is not None else 1
                cells += [""] * (min(wide, _MAX_SPAN) - 1)
            yield cells

    def _flat(self, element: Element) -> str:
        """All paragraphs below, one a line; inner tables are read cell by cell."""
        lines: list[str] = []
        for each in element.iterfind("subList/p"):
            lines.append("".join(self._pieces(each)))
            waiting, self._inner = self._inner, []
            for inner in waiting:
                if inner.tag == "tbl":
                    lines += [" / ".join(filter(None, row)) for row in self._rows(inner)]
                else:
                    lines += ["".join(self._pieces(deeper)) for deeper in inner.iterfind("p")]
        return "\n".join(line for line in lines if line.strip())


def _kept(text: Element) -> Iterator[str]:
    """A text without what was deleted under tracked changes."""
    deleted = False
    yield text.text or ""
    for mark in text:
        deleted = mark.tag == "deleteBegin" or (deleted and mark.tag != "deleteEnd")
        if not deleted:
            yield _CHARACTERS.get(mark.tag, "")
            yield mark.tail or ""


def _address(field: Element) -> str:
    """`https\\://example.com/;1;0;0;` as Hangul writes the command of a link; "" for other fields."""
    if field.get("type") != "HYPERLINK":
        return ""
    for parameter in field.iter("stringParam"):
        if parameter.get("name") in ("Path", "Command"):
            written = re.split(r"(?<!\\);", parameter.text or "")[0]
            return re.sub(r"\\(.)", r"\1", written)
    return ""
