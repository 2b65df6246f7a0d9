"""Values as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from octavo.core.errors import InvalidParams

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def write(value: Any) -> str:
    """Raises InvalidParams for what TOML cannot say: anything but an object, and null."""
    if not isinstance(value, Mapping):
        raise InvalidParams('TOML holds an object; put the list into one, such as {"items": [...]}')
    return "\n".join(_table(cast("Mapping[str, Any]", value), ())).strip() + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    below = {key: one for key, one in table.items() if isinstance(one, Mapping) or _is_tables(one)}
    for key, one in table.items():
        if key not in below:
            yield f"{_key(key)} = {_value(one, (*path, key))}"
    for key, one in below.items():
        name = ".".join(map(_key, (*path, key)))
        if isinstance(one, Mapping):
            yield f"\n[{name}]"
            yield from _table(cast("Mapping[str, Any]", one), (*path, key))
        else:
            for item in one:
                yield f"\n[[{name}]]"
                yield from _table(item, (*path, key))


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _value(value: Any, path: tuple[str, ...]) -> str:
    if value is None:
        raise InvalidParams(f"TOML has no null, and {'.'.join(path)[:200]} is null: leave it out or give it a value")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(_value(one, path) for one in value)}]"
    items = cast("Mapping[str, Any]", value).items()
    return "{" + ", ".join(f"{_key(key)} = {_value(one, (*path, key))}" for key, one in items) + "}"


def _key(key: str) -> str:
    return key if _BARE.match(key) else json.dumps(key, ensure_ascii=False)
