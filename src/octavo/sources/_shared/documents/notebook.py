"""Jupyter notebooks: cells of text and code, with what the code printed."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from octavo.sources._shared.documents.draft import MarkdownDraft, clean, fenced, inline
from octavo.sources._shared.documents.model import Choice, ConversionLimits, Unreadable

_BOM: Final = b"\xef\xbb\xbf"
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_HEADING: Final = re.compile(r"^#{1,6}\s+(.+)$", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,20}")


def read(raw: bytes, draft: MarkdownDraft, choice: Choice, limits: ConversionLimits) -> None:
    try:
        notebook = json.loads(raw.removeprefix(_BOM).decode("utf-8"))
    except ValueError:
        raise Unreadable("it is no JSON in UTF-8") from None
    cells = _list(notebook, "cells") or [
        cell for sheet in _list(notebook, "worksheets") for cell in _list(sheet, "cells")
    ]  # notebooks before version 4 kept their cells in worksheets
    if not cells and "cells" not in notebook:
        raise Unreadable("it has no cells")
    about = _dict(_dict(notebook, "metadata"), "language_info").get("name")
    language = about if isinstance(about, str) and _LANGUAGE.fullmatch(about) else "python"
    for cell in cells:
        _cell(cell, language, draft)


def _cell(cell: dict[str, Any], language: str, draft: MarkdownDraft) -> None:
    source = _text(cell.get("source", cell.get("input", "")))
    if cell.get("cell_type") == "code":
        if source.strip():
            draft.block(fenced(source, language))
        for output in _list(cell, "outputs"):
            _output(output, draft)
        return
    for match in _HEADING.finditer(source):
        draft.part(inline(match[1]))
    draft.block(clean(source).strip("\n"))


def _output(output: dict[str, Any], draft: MarkdownDraft) -> None:
    data = _dict(output, "data") or output
    if output.get("output_type") in ("error", "pyerr"):
        said = "\n".join(map(_text, _list(output, "traceback"))) or f"{output.get('ename')}: {output.get('evalue')}"
        draft.block(fenced(_COLOURS.sub("", said), "text"))
    elif "text/markdown" in data:
        draft.block(clean(_text(data["text/markdown"])).strip("\n"))
    elif any(kind in data for kind in ("text/plain", "text")):
        said = _text(data.get("text/plain", data.get("text")))
        if said.strip():
            draft.block(fenced(_COLOURS.sub("", said), "text"))
    for kind in data:
        if isinstance(kind, str) and kind.startswith("image/"):
            draft.block(f"[output: {inline(kind)[:40]}]")


def _text(value: object) -> str:
    """Notebooks keep text whole or as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _list(holder: object, key: str) -> list[Any]:
    found = holder.get(key) if isinstance(holder, dict) else None
    return found if isinstance(found, list) else []


def _dict(holder: object, key: str) -> dict[str, Any]:
    found = holder.get(key) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else {}
