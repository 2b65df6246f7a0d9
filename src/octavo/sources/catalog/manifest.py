"""A SKILL.md made of a skill's definition: what a client needs to know of it, and its instructions in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

MAX_DESCRIPTION: Final = 1024  # characters that clients accept

# Of the definition, what a client may show beside the name; the rest are instructions.
_METADATA: Final = ("id", "version", "status", "function")
_ABOUT: Final = frozenset((*_METADATA, "schema_version", "name", "title", "description", "summary", "agents", "tags"))


def written(name: str, title: str, definition: Mapping[str, Any]) -> str:
    """`name` is that of the skill's folder, `title` the one for people."""
    said = (definition.get(key) for key in ("description", "summary"))
    described = next((text for one in said if isinstance(one, str) and (text := _plain(one))), "") or _plain(title)
    lines = ["---", f"name: {_quoted(name)}", f"description: {_quoted(described[:MAX_DESCRIPTION].strip())}"]
    known = {
        key: _plain(str(value)) for key in _METADATA if isinstance(value := definition.get(key), str | int | float)
    }
    if known:
        lines += ["metadata:", *(f"  {key}: {_quoted(value)}" for key, value in known.items())]
    lines += ["---", "", f"# {_plain(title)}", "", described]
    for key in sorted(definition, key=lambda key: key != "triggers"):  # when, then how, in the order of its author
        value = definition[key]
        if key not in _ABOUT and value not in (None, "", [], {}):
            heading = "When to use it" if key == "triggers" else _plain(key).replace("_", " ").capitalize()
            lines += ["", f"## {heading}", "", *_shown(value, numbered=key == "steps")]
    return "\n".join(lines) + "\n"


def _shown(value: Any, indent: str = "", *, numbered: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _item(f"{indent}- **{_plain(str(key))}**", ": ", item, f"{indent}  ")
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _item(f"{indent}{number}." if numbered else f"{indent}-", " ", item, f"{indent}   ")
    else:
        yield value.strip() if isinstance(value, str) else _told(value)  # in the lines of its author


def _item(mark: str, between: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        yield mark
        yield from _shown(value, indent)
    else:
        yield f"{mark}{between}{_told(value)}"


def _told(value: Any) -> str:
    return _plain(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    """On one line, and without what YAML could not hold."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
