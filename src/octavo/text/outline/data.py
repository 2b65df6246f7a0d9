"""The top-level keys of JSON and YAML, and the sections of TOML and INI files: enough to find one's way."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from octavo.text.outline.symbol import Opened, Symbol, nested

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_YAML_KEY: Final = re.compile(
    r"""(?:"([^"\\]*)"|'([^']*)'|([^\s#\-?\[\]{},&*!|>'"%@`:][^:#]*|-[^\s:#][^:#]*))[ \t]*:(?:[ \t\r\n]|$)"""
)
_SECTION: Final = re.compile(r"\[{1,2}([^\[\]]+)\]{1,2}[ \t]*(?:[#;].*)?$")
_JSON_LINE: Final = re.compile(r'([ \t]*)"([^"\\]+)"[ \t]*:')


def json_keys(text: str, lines: Sequence[str]) -> Sequence[Symbol]:
    """Exact where the text is JSON; by indentation where it is not (comments, a mistake)."""
    try:
        found = list(_members(text))
    except (ValueError, IndexError, RecursionError):
        return nested(_by_indentation(lines), len(lines))
    starts = list(accumulate(map(len, lines), initial=0))
    return [Symbol((key,), "key", bisect_right(starts, at), bisect_right(starts, end)) for key, at, end in found]


def yaml_keys(lines: Sequence[str]) -> Sequence[Symbol]:
    """Keys at the left border; whatever is indented belongs to one of them."""
    found = ((number, _YAML_KEY.match(line)) for number, line in enumerate(lines, 1))
    opened = (Opened(next(filter(None, key.groups()), "").strip(), "key", number, 0) for number, key in found if key)
    return nested(opened, len(lines))


def sections(lines: Sequence[str]) -> Sequence[Symbol]:
    found = ((number, _SECTION.match(line.rstrip())) for number, line in enumerate(lines, 1))
    return nested((Opened(name[1].strip(), "section", number, 0) for number, name in found if name), len(lines))


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """Key, its offset and the offset of the last character of its value, for each member of the object."""
    decoder = json.JSONDecoder()
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if text[at] != "{":
        return
    at = _skip(text, at + 1)
    while text[at] != "}":
        if text[at] != '"':
            raise ValueError
        begin = at
        key, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError
        _, at = decoder.raw_decode(text, _skip(text, at + 1))
        yield key, begin, at - 1
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _by_indentation(lines: Sequence[str]) -> Iterator[Opened]:
    found = [(number, key) for number, line in enumerate(lines, 1) if (key := _JSON_LINE.match(line))]
    border = min((len(key[1]) for _, key in found), default=0)
    return (Opened(key[2], "key", number, 0) for number, key in found if len(key[1]) == border)
