"""What a style or a numbering of a DOCX makes of its paragraphs: headings and items of lists."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final
from xml.etree.ElementTree import Element

from octavo.sources._shared.documents.markup import children, number

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
