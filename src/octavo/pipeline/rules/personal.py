"""Numbers that identify a person."""

from __future__ import annotations

from octavo.pipeline.rules import checks
from octavo.pipeline.rules.engine import Rule

_LABEL = "(?:주민등록번호|주민번호|외국인등록번호|resident registration number|rrn)"

PERSONAL: tuple[Rule, ...] = (
    Rule(
        "kr-registration-number",
        r"\b\d{6}-\d{7}\b",
        clue=r"\d{6}-\d{7}",
        accept=checks.is_registration_number,
    ),
    Rule(
        # Thirteen digits alone are as often a time in milliseconds. A number without quotes behind a quoted
        # name is JSON's, which a mark would break.
        "kr-registration-number-bare",
        rf"""(?i){_LABEL}(?:["']?[ \t]*[:=][ \t]*["'](\d{{13}})["']|[ \t]*[:=]?[ \t]*(\d{{13}})\b)""",
        ("주민", "외국인등록번호", "registration number", "rrn"),
        accept=checks.is_registration_number,
    ),
)
