"""Front matter as people write it: a slip costs a key at most, never the document.

YAML between two lines `---`, TOML between two lines `+++`, or a JSON object. Whatever had to be guessed is told as a
slip with its line. Slips name keys and never repeat a value.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Final, NamedTuple

from octavo.core.sizes import KIB
from octavo.text.frontmatter import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_NODES,
    FrontMatter,
    FrontmatterFault,
    of_markdown,
    of_yaml,
)

MAX_REPAIRS: Final = 6  # of one file: each of them reads it once more
MAX_REPAIRED: Final = 32 * KIB  # characters of front matter that is worth it

_RULE: Final = re.compile(r"\ufeff?---[ \t]*\r?\n")
_TOML: Final = re.compile(r"\ufeff?\+\+\+[ \t]*\r?\n(?P<data>.*?)^\+\+\+[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_LIKE_JSON: Final = re.compile(r"\ufeff?\{[ \t]*\r?\n\s*[\"']?[A-Za-z][\w -]{0,60}[\"']?[ \t]*:")
_NEAR_END: Final = re.compile(r"^(?:--|-{4,}|[–—]{1,3}-?)[ \t]*\r?$", re.MULTILINE)
_PAUSE: Final = re.compile(r"^(?:[ \t]*\r?$|#)", re.MULTILINE)  # where the keys end if nothing says so
_KEY: Final = re.compile(r"(?P<key>[^\s:#'\"\[\]{}-][^:\r\n]{0,60}):(?:[ \t]+(?P<value>.*))?\r?$")
# A value that begins like a list or a quoted word and goes on as a sentence: `[Draft] Travel policy`.
_SENTENCE: Final = re.compile(r"(?:\[[^\[\]{}\"']*\]|\"[^\"]*\"|'[^']*')[ \t]+(?:[-–—][ \t]+)?[\w\[<]")


class Handwritten(NamedTuple):
    matter: FrontMatter
    slips: tuple[FrontmatterFault, ...] = ()


def handwritten(text: str, *, texts: frozenset[str] = frozenset(), whole: bool = True) -> Handwritten:
    """`texts` and `whole` as for `of_markdown`."""
    if text.lstrip("\ufeff").startswith("+++"):
        return _toml(text)
    if text.lstrip("\ufeff").startswith("{"):
        return _json(text)
    found = of_markdown(text, texts=texts, whole=whole)
    if not found.faults:
        return Handwritten(found)
    begin = _RULE.match(text)
    if begin is None:
        return Handwritten(found)
    if found.body == 0:  # it does not end
        return _endless(text, begin.end(), texts) if whole else Handwritten(_none(), found.faults)
    end = text.rfind("\n", begin.end(), found.body - 1) + 1
    return _repaired(text[begin.end() : end], found, texts)


def _endless(text: str, begin: int, texts: frozenset[str]) -> Handwritten:
    slipped = _NEAR_END.search(text, begin)
    near = slipped or _PAUSE.search(text, begin)
    end = len(text) if near is None else near.start()
    block = _repaired(text[begin:end], of_yaml(text[begin:end], texts=texts), texts, first_line=1)
    line = text.count("\n", 0, end) + 1
    # Without any mark only what is front matter as it stands: words with a colon begin many a text.
    if not block.matter.data or (block.slips and slipped is None):
        return Handwritten(
            _none(), (FrontmatterFault(1, "begins with a rule ---, so that it looks like front matter"),)
        )
    after = len(text) if near is None else near.end() + 1
    lines = {path: number + 1 for path, number in block.matter.lines.items()}
    slip = FrontmatterFault(line, "the front matter does not end with a line ---; it is taken to end here")
    others = (FrontmatterFault(one.line + 1, one.message) for one in block.slips)  # the mark before it is a line, too
    return Handwritten(FrontMatter(block.matter.data, lines, body=min(after, len(text))), (*others, slip))


def _repaired(block: str, found: FrontMatter, texts: frozenset[str], *, first_line: int = 2) -> Handwritten:
    """Line by line: a value that is no YAML is read as text, or its key is left out."""
    slips: list[FrontmatterFault] = []
    lines = block.split("\n")
    faults, matter = found.faults, found
    for _ in range(MAX_REPAIRS if len(block) <= MAX_REPAIRED else 0):
        broken = next((fault for fault in faults if not fault.message.endswith("is given twice")), None)
        at = None if broken is None else _key_at(lines, broken.line - first_line)
        if at is None:
            break
        key = _KEY.match(lines[at])
        slips.append(
            FrontmatterFault(
                at + first_line, _mended(lines, at, key["key"], (key["value"] or "").strip()) if key else ""
            )
        )
        matter = of_yaml("\n".join(lines), texts=texts)
        faults = tuple(FrontmatterFault(fault.line + first_line - 1, fault.message) for fault in matter.faults)
    if not matter.data and faults:
        if any("must be keys and values" in fault.message for fault in faults):
            return Handwritten(
                _none(), (FrontmatterFault(1, "begins with a rule ---, so that it looks like front matter"),)
            )
        return Handwritten(FrontMatter({}, {}, body=found.body), faults[:1])
    if matter is not found:
        there = {path: line + first_line - 1 for path, line in matter.lines.items()}
        matter = FrontMatter(matter.data, there)
    return Handwritten(FrontMatter(matter.data, matter.lines, body=found.body), (*slips, *faults))


def _key_at(lines: list[str], at: int) -> int | None:
    return next((n for n in range(min(at, len(lines) - 1), -1, -1) if _KEY.match(lines[n])), None)


def _mended(lines: list[str], at: int, key: str, value: str) -> str:
    behind = next((n for n in range(at + 1, len(lines)) if _KEY.match(lines[n])), len(lines))
    alone = not any(line.strip() for line in lines[at + 1 : behind])
    if value and alone and (value[0] not in "|>'\"[{" or _SENTENCE.match(value)):
        lines[at] = f"{key}: {json.dumps(value, ensure_ascii=False)}"
        return f"{key} needs quotes; it is read as text"
    lines[at:behind] = ["" for _ in range(at, behind)]  # so that lines keep their numbers
    return f"{key} is no YAML and left out"


def _toml(text: str) -> Handwritten:
    found = _TOML.match(text[:MAX_CHARACTERS])
    if found is None:
        return Handwritten(_none(), (FrontmatterFault(1, "the front matter begins with +++ and does not end"),))
    try:
        data = tomllib.loads(found["data"])
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return Handwritten(FrontMatter({}, {}, body=found.end()), (FrontmatterFault(1, "is no TOML"),))
    return _bounded(data, found.end())


def _json(text: str) -> Handwritten:
    mark = len(text) - len(text.lstrip("\ufeff"))
    try:
        data, end = json.JSONDecoder().raw_decode(text[:MAX_CHARACTERS], mark)
    except (ValueError, RecursionError):
        # A text may begin with a brace: this one says a key after it, and then nothing can be read.
        slips = (
            (FrontmatterFault(1, "begins like front matter in JSON, and is no JSON"),) if _LIKE_JSON.match(text) else ()
        )
        return Handwritten(_none(), slips)
    behind = text[end : text.find("\n", end) if "\n" in text[end:] else len(text)]
    if not isinstance(data, dict) or behind.strip() or not data:
        return Handwritten(_none())
    return _bounded(data, min(end + len(behind) + 1, len(text)))


def _bounded(data: dict[str, Any], body: int) -> Handwritten:
    try:
        plain = _plain(data, 1, [0])
    except ValueError:
        return Handwritten(FrontMatter({}, {}, body=body), (FrontmatterFault(1, "the front matter is too large"),))
    return Handwritten(FrontMatter(plain, {}, body=body))


def _plain(value: Any, depth: int, count: list[int]) -> Any:
    """As YAML would have given it: dates stay text."""
    count[0] += 1
    if depth > MAX_DEPTH or count[0] > MAX_NODES:
        raise ValueError
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1, count) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, depth + 1, count) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**18:
        return str(value)
    return value.isoformat() if isinstance(value, datetime | date | time) else value


def _none() -> FrontMatter:
    return FrontMatter({}, {}, found=False)
