"""PPTX: slide by slide, with titles, lists, tables and the notes of the speaker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from octavo.sources._shared.documents.archive import Archive, Relation, main_part, related, relations
from octavo.sources._shared.documents.choose import pages
from octavo.sources._shared.documents.draft import MarkdownDraft, inline, link, paragraph
from octavo.sources._shared.documents.markup import number, tree
from octavo.sources._shared.documents.model import Choice, ConversionLimits

_TITLES: Final = frozenset(("title", "ctrTitle"))
_FURNITURE: Final = frozenset(("sldNum", "dt", "ftr", "hdr", "sldImg"))
_LISTS: Final = frozenset(("body", "obj", "subTitle"))


def read(raw: bytes, draft: MarkdownDraft, choice: Choice, limits: ConversionLimits) -> None:
    archive = Archive(raw, limits.unpacked_bytes)
    main = main_part(archive)
    known = relations(archive, main)
    listed = tree(archive.stream(main)).iterfind("sldIdLst/sldId")
    names = [known[key].target for each in listed if (key := each.get("r:id", "")) in known]
    chosen = set(pages(choice.pages, len(names), "slide"))
    for index, name in enumerate(names):
        slide = tree(archive.stream(name))
        title = _title(slide)
        draft.part(title or f"Slide {index + 1}")
        if index in chosen:
            _slide(archive, name, slide, f"Slide {index + 1}{': ' if title else ''}{title}", draft)


def _slide(archive: Archive, name: str, slide: Element, title: str, draft: MarkdownDraft) -> None:
    known = relations(archive, name)
    draft.heading(2, f"{title} (hidden)" if slide.get("show") == "0" else title)
    for shape in _shapes(slide):
        _shape(shape, known, draft)
    notes = related(known, "notesSlide")
    if notes and notes in archive:
        said = [
            text
            for shape in tree(archive.stream(notes)).iter("sp")
            if _placeholder(shape) == "body"
            for each in shape.iterfind("txBody/p")
            if (text := _text(each, {}).strip())
        ]
        if said:
            draft.block("Notes:")
            draft.block(paragraph("\n".join(said)))


def _shapes(element: Element) -> Iterator[Element]:
    """In the order of the slide; the stand-ins for old programs are left out."""
    for child in element:
        if child.tag in ("sp", "tbl", "pic"):
            yield child
        elif child.tag != "Fallback":
            yield from _shapes(child)


def _shape(shape: Element, known: dict[str, Relation], draft: MarkdownDraft) -> None:
    if shape.tag == "tbl":
        draft.table(
            ["\n".join(_text(each, known) for each in cell.iterfind("txBody/p")) for cell in row.iterfind("tc")]
            for row in shape.iterfind("tr")
        )
    elif shape.tag == "pic":
        about = shape.find("nvPicPr/cNvPr")
        if about is not None and about.get("descr"):
            draft.block(f"[image: {inline(about.get('descr', ''))}]")
    elif (kind := _placeholder(shape)) not in _TITLES and kind not in _FURNITURE:
        for each in shape.iterfind("txBody/p"):
            text = _text(each, known)
            properties = each.find("pPr")
            level = min(number(properties.get("lvl")), 8) if properties is not None else 0
            bulleted = properties is not None and (
                properties.find("buChar") is not None or properties.find("buAutoNum") is not None
            )
            if not text.strip():
                continue
            if kind in _LISTS or level or bulleted:
                draft.item(f"{'    ' * level}- {inline(text)}")
            else:
                draft.block(paragraph(text))


def _title(slide: Element) -> str:
    for shape in slide.iter("sp"):
        if _placeholder(shape) in _TITLES:
            return inline(" ".join(_text(each, {}) for each in shape.iterfind("txBody/p")))
    return ""


def _placeholder(shape: Element) -> str:
    """What the shape stands for on its layout: `title`, `body`, ...; "" for a free one."""
    found = shape.find("nvSpPr/nvPr/ph")
    return found.get("type", "obj") if found is not None else ""


def _text(element: Element, known: dict[str, Relation]) -> str:
    pieces: list[str] = []
    for run in element:
        if run.tag == "br":
            pieces.append("\n")
        text = run.findtext("t") or ""
        clicked = run.find("rPr/hlinkClick")
        relation = known.get(clicked.get("r:id", "")) if clicked is not None else None
        pieces.append(link(text, relation.target) if relation and relation.external else text)
    return "".join(pieces)
