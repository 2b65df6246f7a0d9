"""XLSX, read as a stream: a sheet of a million rows costs what is taken from it, and needs no extra."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from octavo.sources._shared.documents.archive import Archive, main_part, related, relations
from octavo.sources._shared.documents.choose import box, column_number, sheets
from octavo.sources._shared.documents.draft import MarkdownDraft
from octavo.sources._shared.documents.grid import Enough, Grid, refuse_ambiguous_range, shown
from octavo.sources._shared.documents.markup import children, number, parse, tree
from octavo.sources._shared.documents.model import Choice, ConversionLimits

_CELL: Final = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_BUILT_IN_DATES: Final = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_NOT_CODE: Final = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')
_DATE_CODE: Final = re.compile(r"[ymdhs]", re.IGNORECASE)
_EPOCH, _EPOCH_1904 = datetime.datetime(1899, 12, 30), datetime.datetime(1904, 1, 1)
_LAST_DAY: Final = 2_958_465  # 9999-12-31


def read(raw: bytes, draft: MarkdownDraft, choice: Choice, limits: ConversionLimits) -> None:
    archive = Archive(raw, limits.unpacked_bytes)
    main = main_part(archive)
    known = relations(archive, main)
    workbook = tree(archive.stream(main))
    listed = [
        (each.get("name", ""), known[key].target)
        for each in workbook.iterfind("sheets/sheet")
        if (key := each.get("r:id", "")) in known
    ]
    names = [name for name, _ in listed]
    for name in names:
        draft.part(name)
    chosen, cells = sheets(choice.sheet, names), box(choice.range)
    refuse_ambiguous_range(cells, len(chosen), names)
    properties = workbook.find("workbookPr")
    early = properties is not None and properties.get("date1904") in ("1", "true")
    strings, styles = related(known, "sharedStrings"), related(known, "styles")
    texts = _Texts()
    if strings and strings in archive:
        parse(archive.stream(strings), texts)
    dates = _dates(tree(archive.stream(styles)) if styles and styles in archive else None)
    for index in chosen:
        name, part = listed[index]
        grid = Grid(name, cells, limits.output_bytes)
        if part in archive:
            _fill(archive.stream(part), _Cells(grid, texts.texts, dates, _EPOCH_1904 if early else _EPOCH))
        grid.write(draft)


def _fill(chunks: Iterator[bytes], cells: _Cells) -> None:
    try:
        parse(chunks, cells)
    except Enough:
        pass


class _Texts:
    """Collects the shared strings; readings for ruby (`rPh`) are no part of the text."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._pieces: list[str] = []
        self._inside = self._ruby = False

    def start(self, tag: str, attrs: dict[str, str], /) -> None:
        if tag == "rPh":
            self._ruby = True
        self._inside = tag == "t" and not self._ruby

    def end(self, tag: str, /) -> None:
        self._inside = False
        if tag == "rPh":
            self._ruby = False
        elif tag == "si":
            self.texts.append("".join(self._pieces))
            self._pieces.clear()

    def data(self, data: str, /) -> None:
        if self._inside:
            self._pieces.append(data)


class _Cells:
    """Puts the cells of a sheet into the grid as they come by."""

    def __init__(self, grid: Grid, texts: list[str], dates: frozenset[int], epoch: datetime.datetime) -> None:
        self._grid, self._texts, self._dates, self._epoch = grid, texts, dates, epoch
        self._row, self._column = -1, -1
        self._kind, self._style = "n", 0
        self._pieces: list[str] = []
        self._inside = self._ruby = False

    def start(self, tag: str, attrs: dict[str, str], /) -> None:
        if tag == "row":
            self._row = number(attrs.get("r"), self._row + 2) - 1
            self._column = -1
        elif tag == "c":
            match = _CELL.fullmatch(attrs.get("r", ""))
            self._column = column_number(match[1]) if match else self._column + 1
            self._kind, self._style = attrs.get("t", "n"), number(attrs.get("s"))
            self._pieces.clear()
        elif tag == "rPh":
            self._ruby = True
        self._inside = tag == "v" or (tag == "t" and not self._ruby)

    def end(self, tag: str, /) -> None:
        self._inside = False
        if tag == "rPh":
            self._ruby = False
        elif tag == "c":
            self._grid.put(self._row, self._column, self._shown("".join(self._pieces)))

    def data(self, data: str, /) -> None:
        if self._inside:
            self._pieces.append(data)

    def _shown(self, text: str) -> str:
        if self._kind == "s":
            return self._texts[int(text)] if text else ""
        if self._kind == "b":
            return shown(text == "1")
        if self._kind != "n" or not text:
            return text
        value = float(text)
        if self._style in self._dates and 0 <= value < _LAST_DAY:
            return _date(value, self._epoch)
        return shown(value)


def _date(value: float, epoch: datetime.datetime) -> str:
    moment = epoch + datetime.timedelta(seconds=round(value * 86_400))
    return moment.time().isoformat() if value < 1 else shown(moment)


def _dates(styles: Element | None) -> frozenset[int]:
    """The styles of cells whose numbers are days."""
    codes = {number(each.get("numFmtId")): each.get("formatCode", "") for each in children(styles, "numFmts/numFmt")}
    return frozenset(
        index
        for index, each in enumerate(children(styles, "cellXfs/xf"))
        if (key := number(each.get("numFmtId"))) in _BUILT_IN_DATES
        or _DATE_CODE.search(_NOT_CODE.sub("", codes.get(key, "")))
    )
