"""Words with `{arguments}` in them, for declared tools. A value fills the place that was made for it, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

from octavo.core.errors import InvalidParams

_PLACE: Final = re.compile(r"\{\{|\}\}|\{(\w+)\}|[{}]")
_BARE_OPTION: Final = re.compile(r"-+\{\w")
_STEPS: Final = re.compile(r"\.?\Z|(?:.*[/\\])?\.\.(?:[/\\].*)?\Z", re.DOTALL)  # some servers decode before they split


def places(text: str) -> list[str]:
    """The arguments that a text names. Raises InvalidParams for a brace that is alone; `{{` and `}}` are braces."""
    found: list[str] = []
    for place in _PLACE.finditer(text):
        if place[1]:
            found.append(place[1])
        elif place[0] in "{}":
            raise InvalidParams(f"{text!r} has a lone {place[0]}: an argument is {{name}}, a brace is {{{{ or }}}}")
    return found


def filled(text: str, given: Mapping[str, Any], written: Callable[[str], str] = str) -> str:
    def fill(place: re.Match[str]) -> str:
        return written(said(given.get(place[1]))) if place[1] else place[0][0]

    return _PLACE.sub(fill, text)


def said(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def leaves(value: Any) -> list[str]:
    """Every text in a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for one in value.values() for text in leaves(one)]
    return [text for one in value for text in leaves(one)] if isinstance(value, list) else []


def completed(value: Any, given: Mapping[str, Any]) -> Any:
    """A value with its texts filled in. What comes in stays inside of the text, or the place, that it fills."""
    if isinstance(value, str):
        names = places(value)
        return given.get(names[0]) if len(names) == 1 and value == f"{{{names[0]}}}" else filled(value, given)
    if isinstance(value, Mapping):
        return {key: completed(one, given) for key, one in value.items()}
    return [completed(one, given) for one in value] if isinstance(value, list) else value


def words(command: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    """The words of a command. A list that is a word of its own becomes one word for each of its items, and a word
    whose arguments were not given is left out.

    Raises InvalidParams for a value that a program would take for an option, unless the command says `--` before it.
    """
    found: list[str] = []
    ended = False
    for word in command:
        names = places(word)
        if names and all(given.get(name) is None for name in names):
            continue
        whole = given.get(names[0]) if len(names) == 1 and word == f"{{{names[0]}}}" else None
        made = [said(one) for one in whole] if isinstance(whole, list) else [filled(word, given)]
        for one in made:
            if names and not ended and word.startswith("{") and one.startswith("-"):
                raise InvalidParams(f"{names[0]} may not begin with -: the program would take it for an option")
            if "\0" in one:
                raise InvalidParams(f"{names[0] if names else 'A word'} may not hold a NUL character")
        found += made
        ended = ended or word == "--"
    return found


def check_words(command: Sequence[str], arguments: Mapping[str, Mapping[str, Any]], optional: Container[str]) -> None:
    """Raises InvalidParams where a caller could choose an option, or leave one without its value."""
    before = ""
    for word in command:
        if before == "--" or word == "--":
            return
        names = places(word)
        shape = arguments[names[0]] if names else {}
        if _BARE_OPTION.match(word) and shape.get("type") == "string" and "enum" not in shape:
            raise InvalidParams(f"{word!r} lets a caller choose an option: write which, or list them under enum")
        missing = names[:1] and (names[0] in optional or (shape.get("type") == "array" and not shape.get("minItems")))
        if missing and word == f"{{{names[0]}}}" and before.startswith("-") and "=" not in before:
            raise InvalidParams(
                f"{before} would take the next word for its value where {names[0]} is not given: "
                f"write {before}={word}, or -- before {word}"
            )
        before = word


def check_url(url: str) -> None:
    """Raises InvalidParams unless scheme and host are fixed: whoever calls never chooses where a request goes."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParams(f"{url!r} is no address that begins with https:// and a host")
    if "{" in parts.scheme + parts.netloc or "@" in parts.netloc:
        raise InvalidParams(f"{url!r} lets a caller choose the host, or names a user: write the host as it is")
    if parts.fragment or "{" in parts.query:
        raise InvalidParams("Arguments of a query stand under query:, and a URL has no fragment")


def url(template: str, query: Mapping[str, str], given: Mapping[str, Any]) -> str:
    """Each value is one segment, or one value of the query. Raises InvalidParams for one that is a step: `..`."""

    def segment(value: str) -> str:
        if _STEPS.match(value):
            raise InvalidParams(f"{value[:80]!r} cannot be a part of the path of a URL")
        return quote(value, safe="")

    address = filled(template, given, segment)
    pairs = [
        f"{quote(key, safe='')}={filled(text, given, lambda value: quote(value, safe=''))}"
        for key, text in query.items()
        if not places(text) or any(given.get(name) is not None for name in places(text))
    ]
    return address + ("&" if "?" in address else "?") + "&".join(pairs) if pairs else address
