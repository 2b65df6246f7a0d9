"""A docstring as a description and a sentence for each parameter, in the styles that people write."""

from __future__ import annotations

import inspect
import re
from typing import Final, NamedTuple

_SECTION: Final = re.compile(
    r"^(Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|Notes?|인자|매개변수|반환|예외|예):?\s*$"
)
_OF_PARAMETERS: Final = ("Args", "Arguments", "Parameters", "Params", "인자", "매개변수")
_GOOGLE: Final = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_NUMPY: Final = re.compile(r"^(\w+)\s*:\s*\S.*$|^(\w+)$")
_SPHINX: Final = re.compile(r"^:param\s+(?:\S+\s+)?(\w+)\s*:\s*(.*)$")
_FIELD: Final = re.compile(r"^:(?:return|returns|rtype|raises|type)\b")


class ParsedDocstring(NamedTuple):
    description: str
    parameters: dict[str, str]


def said_in(text: str | None) -> ParsedDocstring:
    """Google, NumPy and Sphinx style. What is said of results and errors is for people who read the code."""
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    parameters: dict[str, str] = {}
    section, at, name = "", 0, ""
    for number, line in enumerate(lines):
        stripped = line.strip()
        if found := _SECTION.match(stripped) if line == line.lstrip() else None:
            section, at, name = found[1], 0, ""
        elif found := _SPHINX.match(stripped):
            section, name = "Sphinx", found[1]
            parameters[name] = found[2]
        elif _FIELD.match(stripped):
            section, name = "Sphinx", ""
        elif not section:
            description.append(line)
        elif section in _OF_PARAMETERS and stripped and set(stripped) != {"-"}:
            indent = len(line) - len(line.lstrip())
            numpy = _underlined(lines, section)
            at = at or indent
            if found := (_NUMPY if numpy else _GOOGLE).match(stripped) if indent <= (0 if numpy else at) else None:
                name = (found[1] or found[2] if numpy else found[1]).lstrip("*")
                parameters[name] = "" if numpy else found[2]
            elif name:
                parameters[name] = f"{parameters[name]} {stripped}".strip()
        elif section == "Sphinx" and name and stripped and number:
            parameters[name] = f"{parameters[name]} {stripped}".strip()
    paragraphs = "\n".join(description).strip().split("\n\n")
    return ParsedDocstring("\n\n".join(" ".join(part.split()) for part in paragraphs if part.strip()), parameters)


def _underlined(lines: list[str], section: str) -> bool:
    at = next((number for number, line in enumerate(lines) if line.strip().rstrip(":") == section), len(lines))
    return at + 1 < len(lines) and set(lines[at + 1].strip()) == {"-"}
