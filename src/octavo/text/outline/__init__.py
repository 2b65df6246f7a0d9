"""What a text contains, by name and line: headings, classes and functions, keys.

`outline` gives the symbols in the order of the text, `section` the lines of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from octavo.core.errors import InvalidParams
from octavo.text.lines import split
from octavo.text.outline import code, data, markdown
from octavo.text.outline.symbol import Symbol

__all__ = ["Symbol", "outline", "section"]

_LANGUAGES: Final = {
    "text/x-python": "python",
    "text/javascript": "ecmascript",
    "text/jsx": "ecmascript",
    "text/typescript": "ecmascript",
    "text/tsx": "ecmascript",
    "text/x-vue": "ecmascript",
    "text/x-go": "go",
    "text/x-rust": "rust",
    "text/x-ruby": "ruby",
    "text/x-php": "php",
    "text/x-shellscript": "shell",
    "text/x-java": "c",
    "text/x-kotlin": "c",
    "text/x-scala": "c",
    "text/x-groovy": "c",
    "text/x-c": "c",
    "text/x-c++": "c",
    "text/x-csharp": "c",
    "text/x-objectivec": "c",
    "text/x-swift": "c",
    "text/x-dart": "c",
}
_SHOWN: Final = 12  # candidates in a message
_COMPARED: Final = 2000  # names among which a similar one is sought
_LONGEST: Final = 200  # characters of what was asked for that are compared


def outline(text: str, mime: str) -> Sequence[Symbol]:
    """The symbols of a text of this media type; none where we know no way to find any."""
    lines = split(text)
    match mime:
        case "text/markdown":
            return markdown.headings(lines)
        case "application/json":
            return data.json_keys(text, lines)
        case "application/yaml":
            return data.yaml_keys(lines)
        case "application/toml" | "text/x-ini":
            return data.sections(lines)
        case "text/x-python":
            parsed = code.of_python(text)
            return code.definitions(lines, "python") if parsed is None else parsed
        case _:
            return code.definitions(lines, _LANGUAGES[mime]) if mime in _LANGUAGES else ()


def section(text: str, name: str, mime: str) -> tuple[int, int]:
    """First and last line of the symbol of that name: `Linux`, `Install > Linux`, `#linux`, `Class.method`.

    A path may begin at any level. Exact spelling goes before other case. InvalidParams lists what there is when
    nothing or more than one thing has the name.
    """
    symbols = outline(text, mime)
    if not symbols:
        raise InvalidParams("This text has no sections that can be told: read it by lines")
    found = _named(symbols, name)
    if len(found) == 1:
        return found[0].line, found[0].last
    listed = "; ".join(f"{_spelled(one)} (line {one.line})" for one in (found or _similar(symbols, name))[:_SHOWN])
    if found:
        raise InvalidParams(f"{len(found)} sections have this name. Give a longer path, or read by lines: {listed}")
    raise InvalidParams(f"No section has this name. There are: {listed}")


def _named(symbols: Sequence[Symbol], name: str) -> Sequence[Symbol]:
    wanted = name.strip()
    if wanted.startswith("#") and wanted[1:2] not in ("#", " "):
        anchored = [symbol for slug, symbol in markdown.slugs(symbols) if slug == wanted[1:].casefold()]
        if anchored:
            return anchored
    wanted = wanted.lstrip("#").strip()
    for parts in ((wanted,), _parts(wanted, ">"), _parts(wanted, "::"), _parts(wanted, ".")):
        for fold in (str, str.casefold):
            ending = tuple(map(fold, parts))
            found = [symbol for symbol in symbols if tuple(map(fold, symbol.path[-len(ending) :])) == ending]
            if found:
                return [symbol for symbol in found if len(symbol.path) == len(ending)] or found
    return ()


def _parts(name: str, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in name.split(separator))


def _similar(symbols: Sequence[Symbol], name: str) -> Sequence[Symbol]:
    by_name = {symbol.name.casefold(): symbol for symbol in symbols[:_COMPARED]}
    last = name.replace("::", ">").replace(".", ">").rpartition(">")[2].strip().lstrip("#").casefold()
    close = get_close_matches(last[:_LONGEST], by_name, n=_SHOWN, cutoff=0.6)
    return [by_name[key] for key in close] or symbols


def _spelled(symbol: Symbol) -> str:
    return " > ".join(symbol.path)
