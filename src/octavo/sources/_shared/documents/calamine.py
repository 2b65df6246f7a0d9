"""XLS, XLSB and ODS, by the extra `sheets`."""

from __future__ import annotations

import io

from octavo.core.errors import InvalidParams
from octavo.sources._shared.documents.archive import Archive
from octavo.sources._shared.documents.choose import box, sheets
from octavo.sources._shared.documents.draft import MarkdownDraft
from octavo.sources._shared.documents.grid import Enough, Grid, refuse_ambiguous_range, shown
from octavo.sources._shared.documents.model import Choice, ConversionLimits, PasswordNeeded, Unreadable

try:
    from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError
except ImportError:
    raise InvalidParams("This kind of sheet is read by an extra: install Octavo with its extra sheets") from None


def read(raw: bytes, draft: MarkdownDraft, choice: Choice, limits: ConversionLimits) -> None:
    if raw.startswith(b"PK"):
        Archive(raw, limits.unpacked_bytes)  # refuses what would unpack to too much
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(raw))
        names = workbook.sheet_names
        for name in names:
            draft.part(name)
        chosen, cells = sheets(choice.sheet, names), box(choice.range)
        refuse_ambiguous_range(cells, len(chosen), names)
        for index in chosen:
            grid = Grid(names[index], cells, limits.output_bytes)
            _fill(grid, workbook.get_sheet_by_index(index))
            grid.write(draft)
    except PasswordError:
        raise PasswordNeeded from None
    except (CalamineError, OSError):
        raise Unreadable("it is damaged or cut off") from None


def _fill(grid: Grid, sheet: CalamineSheet) -> None:
    top, left = sheet.start or (0, 0)
    try:
        for row, values in enumerate(sheet.iter_rows(), top):
            for column, value in enumerate(values, left):
                grid.put(row, column, shown(value))
    except Enough:
        pass
