"""What a file says of itself: the YAML before a Markdown text, or a file that is YAML from the first to the last line.

The text is foreign. It is read event by event and never further than the bounds: aliases, tags, merge keys, several
documents, too much depth or too many nodes end the reading. Whatever is wrong becomes a fault with its line, and what
could be read beside it is kept. A fault names keys and never repeats a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from octavo.core.sizes import KIB

MAX_CHARACTERS: Final = 256 * KIB
MAX_DEPTH: Final = 32
MAX_NODES: Final = 10_000
MAX_FAULTS: Final = 20
SHOWN: Final = 60  # characters of a key in a message

KeyPath: TypeAlias = tuple[str | int, ...]

_FENCE: Final = re.compile(r"---[ \t]*\r?\n")
_END: Final = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)


class FrontmatterFault(NamedTuple):
    line: int  # of the file, from 1
    message: str


class FrontMatter(Struct, frozen=True):
    """`lines` has the line of every key and item. `body` is where the text behind the front matter begins."""

    data: Mapping[str, Any]
    lines: Mapping[KeyPath, int]
    faults: tuple[FrontmatterFault, ...] = ()
    body: int = 0
    found: bool = True

    def line(self, path: KeyPath) -> int:
        """Of the nearest part of the path that stands in the file."""
        return next((self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), 1)


def of_markdown(text: str, *, texts: frozenset[str] = frozenset(), whole: bool = True) -> FrontMatter:
    """`texts` are keys whose values are taken as they are written, so that a version 1.10 stays one. `whole=False`
    says that `text` is only the beginning of the file."""
    text, mark = _unmarked(text)
    fence = _FENCE.match(text)
    if fence is None:
        return FrontMatter({}, {}, found=False)
    end = _END.search(text, fence.end())
    if end is None:
        message = "the front matter begins with --- and does not end" if whole else "the front matter is too long"
        return FrontMatter({}, {}, (FrontmatterFault(1, message),))
    behind = text.find("\n", end.end())
    body = mark + (len(text) if behind < 0 else behind + 1)
    return _read(text[fence.end() : end.start()], first_line=2, texts=texts, body=body)


def of_yaml(text: str, *, texts: frozenset[str] = frozenset()) -> FrontMatter:
    return _read(_unmarked(text)[0], first_line=1, texts=texts, body=len(text))


def _unmarked(text: str) -> tuple[str, int]:
    return (text[1:], 1) if text.startswith("\ufeff") else (text, 0)


def _read(text: str, *, first_line: int, texts: frozenset[str], body: int) -> FrontMatter:
    from octavo.text.yaml_events import YamlReader  # here: most texts have none, and PyYAML is slow to load

    builder = YamlReader(first_line, texts)
    if len(text) > MAX_CHARACTERS:
        builder.fault(first_line, f"is longer than {MAX_CHARACTERS} characters")
    else:
        builder.read(text)
    return FrontMatter(builder.data, builder.lines, tuple(builder.faults[:MAX_FAULTS]), body)


def shown(path: KeyPath) -> str:
    """`tags[2]`, short enough for a message whatever the file says."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
