"""What a table is like: for each column its type, what is missing, how the values lie."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from octavo.tools.data.chart import chart
from octavo.tools.data.formats import plain
from octavo.tools.data.sight import parsed
from octavo.tools.data.tables import cell, table_of

MAX_COLUMNS: Final = 100
_TOP: Final = 5
_BARS: Final = 10
_HUGE: Final = 1e150  # whose square is the largest number there is; so much and more is counted in parts of the largest
_TEXT: Final = 60  # characters of a value that are shown
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[-+]\d\d:?\d\d)?)?\Z")


def profile(asked: Mapping[str, Any], inputs: Sequence[bytes]) -> tuple[Mapping[str, Any], bytes]:
    table = table_of(parsed(asked, inputs, 0))
    names = table.columns[:MAX_COLUMNS]
    columns = [{"name": name[:200], **column([row[at] for row in table.rows])} for at, name in enumerate(names)]
    picture = chart(columns) if asked.get("chart") else None
    answer = {
        "rows": len(table.rows),
        "columns": columns,
        "left_out": len(table.columns) - len(names),
        "chart": picture is not None,
    }
    return answer, picture or b""


def column(values: Sequence[Any]) -> dict[str, Any]:
    known = [cell(value) for value in plain(values) if value is not None]
    kind = _kind(known)
    facts: dict[str, Any] = {"type": kind, "missing": len(values) - len(known), "distinct": len(set(known))}
    if kind in ("integer", "number"):
        return {**facts, **_numbers(known)}
    counted = Counter(known).most_common(_TOP)
    facts["top"] = [{"value": _short(value), "count": count} for value, count in counted]
    if kind in ("text", "date") and known:
        ordered = sorted(known)
        facts |= {"min": _short(ordered[0]), "max": _short(ordered[-1])}
    if kind == "text" and known:
        facts["longest"] = max(map(len, known))
    return facts


def _kind(known: Sequence[Any]) -> str:
    if not known:
        return "empty"
    kinds = {type(value) for value in known}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "integer"
    if kinds <= {int, float}:
        return "number"
    if kinds == {str}:
        return "date" if all(_DATE.match(value) for value in known) else "text"
    return "mixed"


def _numbers(values: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(values)
    least, most = ordered[0], ordered[-1]
    scale = max(abs(least), abs(most))
    scale = scale if scale > _HUGE else 1
    scaled = [value / scale for value in ordered] if scale > 1 else ordered
    mean = math.fsum(scaled) / len(scaled)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in scaled) / len(scaled))
    return {
        "min": least,
        "max": most,
        "mean": _rounded(mean * scale),
        "deviation": _rounded(spread * scale),
        "quartiles": [_rounded(_quantile(scaled, part) * scale) for part in (0.25, 0.5, 0.75)],
        "histogram": {"from": least, "to": most, "counts": _histogram(scaled)},
    }


def _quantile(ordered: Sequence[float], part: float) -> float:
    at = (len(ordered) - 1) * part
    low, high = math.floor(at), math.ceil(at)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _histogram(ordered: Sequence[float]) -> list[int]:
    least, most = ordered[0], ordered[-1]
    bars = 1 if least == most else min(_BARS, len(set(ordered)))
    width = (most - least) / bars
    counts = [0] * bars
    for value in ordered:
        counts[min(int((value - least) / width), bars - 1) if width else 0] += 1
    return counts


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _short(value: Any) -> Any:
    return f"{value[: _TEXT - 1]}…" if isinstance(value, str) and len(value) > _TEXT else cast("Any", value)
