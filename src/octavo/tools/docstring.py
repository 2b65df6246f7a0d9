"""A docstring as a description and a sentence for each parameter, in the styles that people write."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
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
    description: list[str] = []
    parameters: dict[str, str] = {}
    for title, lines in _parts(inspect.cleandoc(text or "").splitlines()):
        if not title:
            description += lines
        elif title in _OF_PARAMETERS:
            parameters |= _listed(lines)
        elif (found := _SPHINX.match(title)) is not None:
            parameters[found[1]] = " ".join(filter(None, (found[2], *map(str.strip, lines))))
    paragraphs = "\n".join(description).strip().split("\n\n")
    return ParsedDocstring("\n\n".join(" ".join(part.split()) for part in paragraphs if part.strip()), parameters)


def _parts(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The lines below each title, which is a heading or a field of Sphinx; the description has none."""
    title, below = "", list[str]()
    for line in lines:
        stripped = line.strip()
        heading = _SECTION.match(stripped) if line == line.lstrip() else None
        if heading or _SPHINX.match(stripped) or _FIELD.match(stripped):
            yield title, below
            title, below = heading[1] if heading else stripped, []
        else:
            below.append(line)
    yield title, below


def _listed(lines: Sequence[str]) -> dict[str, str]:
    """What is said of each parameter; a rule below the heading is NumPy's style, whose names stand at the margin."""
    numpy = bool(lines) and _is_rule(lines[0])
    found: dict[str, str] = {}
    name, margin = "", 0
    for line in lines:
        stripped = line.strip()
        if not stripped or _is_rule(line):
            continue
        indent = len(line) - len(line.lstrip())
        margin = margin or (0 if numpy else indent)
        begins = (_NUMPY if numpy else _GOOGLE).match(stripped) if indent <= margin else None
        if begins:
            name = (begins[1] or begins[2] if numpy else begins[1]).lstrip("*")
            found[name] = "" if numpy else begins[2]
        elif name:
            found[name] = f"{found[name]} {stripped}".strip()
    return found


def _is_rule(line: str) -> bool:
    return set(line.strip()) == {"-"}
