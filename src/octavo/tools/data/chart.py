"""Draws a small picture (PNG) of how the values of columns lie."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

try:
    from PIL import Image, ImageDraw
except ImportError:  # the extra `images`; without it the numbers must do
    Image = ImageDraw = None  # type: ignore[assignment]

WIDTH, HEIGHT = 240, 120  # of one column
_PER_ROW: Final = 3
_MOST: Final = 9
_INK, _BAR, _PAPER = (40, 40, 40), (70, 120, 180), (255, 255, 255)


def chart(columns: Sequence[Mapping[str, Any]]) -> bytes | None:
    """PNG; None where there is nothing to draw, or nothing to draw with."""
    drawn = [(str(one["name"]), bars) for one in columns if (bars := _bars(one))][:_MOST]
    if Image is None or not drawn:
        return None
    rows = -(-len(drawn) // _PER_ROW)
    picture = Image.new("RGB", (WIDTH * min(len(drawn), _PER_ROW), HEIGHT * rows), _PAPER)
    pen = ImageDraw.Draw(picture)
    for number, (name, bars) in enumerate(drawn):
        _draw(pen, (number % _PER_ROW) * WIDTH, (number // _PER_ROW) * HEIGHT, name, bars)
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return out.getvalue()


def prepare() -> None:
    """The library loads parts of itself when it first draws."""
    chart([{"name": "a", "type": "text", "top": [{"count": 1}]}])


def _bars(column: Mapping[str, Any]) -> list[int]:
    if "histogram" in column:
        return [*column["histogram"]["counts"]]
    return [one["count"] for one in column.get("top", ())] if column["type"] in ("boolean", "text", "mixed") else []


def _draw(pen: Any, left: int, top: int, name: str, bars: Sequence[int]) -> None:
    # The letters that every installation can draw; others become question marks.
    pen.text((left + 8, top + 4), name.encode("latin-1", "replace").decode("latin-1")[:36], fill=_INK)
    floor, room = top + HEIGHT - 8, HEIGHT - 32
    width = (WIDTH - 16) / len(bars)
    most = max(bars)
    for number, count in enumerate(bars):
        x = left + 8 + number * width
        height = max(round(room * count / most), 1) if count else 0
        if height:
            pen.rectangle((x, floor - height, x + max(width - 2, 1), floor), fill=_BAR)
    pen.line((left + 8, floor, left + WIDTH - 8, floor), fill=_INK)
