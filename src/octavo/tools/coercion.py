"""Corrects argument types that clients send wrongly, such as `"5"` for a number, where that leaves no doubt.

2.0 where a whole number is wanted, null and empty texts for what is not given, numbers and booleans as texts: nothing
else, and none of it where the schema allows the value as it came. What is made here is checked by the schema like any
other value. Most calls cost a look at the types of their values, and no part of a value is looked at twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

from msgspec import Struct

from octavo.core.scalars import spelled, whole
from octavo.tools.schema import MAX_ERRORS, pointer

Node: TypeAlias = Mapping[str, Any]
Types: TypeAlias = frozenset[str]

# Of each type in Python the types of JSON Schema that its values may be of as they are. A whole float may be of
# `integer` for a validator; the code of a tool that is given one is surprised.
_FITS: Final[Mapping[type, Types]] = {
    str: frozenset(("string",)),
    bool: frozenset(("boolean",)),
    int: frozenset(("integer", "number")),
    float: frozenset(("number",)),
    dict: frozenset(("object",)),
    list: frozenset(("array",)),
    type(None): frozenset(("null",)),
}
_ANY: Final[Types] = frozenset().union(*_FITS.values())
_NUMBERS: Final[Types] = frozenset(("integer", "number"))
_LITERAL: Final = {**_FITS, int: frozenset(("integer",)), float: _NUMBERS}  # of which types what fits it is
_NOTHING_SAID: Final = frozenset(("$ref", "description", "title", "default", "examples", "deprecated", "$comment"))
# A validator takes these for remarks; no empty text is any of them.
_FORMATS: Final = frozenset(
    ("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri",
     "iri", "uuid")
)  # fmt: skip
_ABSENT: Final = object()
_PLAIN: Final = (str, int, bool, float, type(None))
_EXACT: Final = frozenset((str, int, bool, type(None)))


class _Shape(Struct, frozen=True):
    """What is known of the values that a part of a schema allows: never less than it allows."""

    types: Types = _ANY
    empty: bool = True  # whether "" or [] may be meant
    properties: Mapping[str, object] = {}
    required: frozenset[str] = frozenset()
    items: object = True  # as in a schema: anything


_UNKNOWN: Final = _Shape()


class Coercion:
    """What one schema of arguments leaves no doubt about."""

    def __init__(self, schema: Node) -> None:
        """`schema` is one that `compile_schema` took: references lead into it, and a round of them into the value."""
        self._root = schema
        self._known: dict[int, _Shape] = {}  # the schema is kept, so no other part of it gets one of these ids
        self._plain: Mapping[str, frozenset[type]] | None = None

    def meant(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is meant; the same mapping where that is what came."""
        plain = self._plain
        if plain is None:
            plain = self._plain = self._as_they_are(self._of(self._root))
        for name, value in arguments.items():
            if value == "" or (name in plain and type(value) not in plain[name]):
                return self._object(self._of(self._root), arguments)
        return arguments

    def inexact(self, arguments: Mapping[str, Any]) -> list[dict[str, str]]:
        """What is wrong with numbers that came with a point where whole ones are wanted: beyond 2^53 such a number
        says only what is near, and a validator takes it all the same."""
        if _EXACT.issuperset(map(type, arguments.values())):
            return []
        found = self._floats(self._of(self._root), arguments, [])
        return [
            {"path": pointer(path), "message": f"{value:g} is no exact whole number: write it without a point"}
            for path, value in islice(found, MAX_ERRORS)
        ]

    # -- of a value what is meant

    def _value(self, shape: _Shape, value: Any, *, optional: bool = False) -> Any:
        kind = type(value)
        fits = _FITS.get(kind)
        if fits is None:  # no JSON: the schema says so
            return value
        if optional and not shape.empty and (kind is str or kind is list) and not value:
            return _ABSENT
        if not fits.isdisjoint(shape.types):
            if kind is dict:
                return self._object(shape, value)
            return self._list(shape, value) if kind is list else value
        if kind is str:
            return spelled(value, shape.types)
        if kind is float and "integer" in shape.types:
            exact = whole(value)
            return value if exact is None else exact
        return _ABSENT if optional and value is None else value

    def _object(self, shape: _Shape, value: Mapping[str, Any]) -> Mapping[str, Any]:
        changed: dict[str, Any] | None = None
        for name, one in value.items():
            if name not in shape.properties:
                continue
            meant = self._value(self._of(shape.properties[name]), one, optional=name not in shape.required)
            if meant is one:
                continue
            if changed is None:
                changed = dict(value)
            if meant is _ABSENT:
                del changed[name]
            else:
                changed[name] = meant
        return value if changed is None else changed

    def _list(self, shape: _Shape, values: list[Any]) -> list[Any]:
        inside = self._of(shape.items)
        if inside is _UNKNOWN:
            return values
        meant = [self._value(inside, one) for one in values]
        return values if all(one is was for one, was in zip(meant, values, strict=True)) else meant

    def _floats(self, shape: _Shape, value: Any, path: list[str | int]) -> Iterator[tuple[list[str | int], float]]:
        kind = type(value)
        if kind is float:
            if _FITS[float].isdisjoint(shape.types) and "integer" in shape.types:
                yield path, value
        elif kind is list and (inside := self._of(shape.items)) is not _UNKNOWN:
            for number, one in enumerate(value):
                yield from self._floats(inside, one, [*path, number])
        elif kind is dict:
            for name, one in value.items():
                if name in shape.properties:
                    yield from self._floats(self._of(shape.properties[name]), one, [*path, name])

    # -- of a schema its shape

    def _as_they_are(self, shape: _Shape) -> Mapping[str, frozenset[type]]:
        """Of each argument what no part of needs a look."""
        types = {name: self._of(one).types for name, one in shape.properties.items()}
        return {name: frozenset(one for one in _PLAIN if not _FITS[one].isdisjoint(of)) for name, of in types.items()}

    def _of(self, node: object) -> _Shape:
        if not isinstance(node, Mapping):
            return _UNKNOWN  # `true`; and what `false` refuses the schema refuses
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = self._made(cast("Node", node))
        return known

    def _made(self, part: Node) -> _Shape:
        found = [] if _NOTHING_SAID.issuperset(part) else [_own(part)]
        if isinstance(part.get("$ref"), str):
            found.append(self._of(self._target(part["$ref"])))
        found += [self._of(one) for one in _listed(part, "allOf")]
        for keyword in ("anyOf", "oneOf"):
            if choices := _listed(part, keyword):
                found.append(_either([self._of(one) for one in choices]))
        return reduce(_both, found, _UNKNOWN)

    def _target(self, reference: str) -> object:
        """Anything, where it leads to no place in the schema: by an anchor it may."""
        inside = unquote(reference[1:])
        if inside and not inside.startswith("/"):
            return True
        target: Any = self._root
        for step in inside.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                target = target[int(name)] if isinstance(target, list) else target[name]
            except (KeyError, IndexError, TypeError, ValueError):
                return True
        return target


def _own(part: Node) -> _Shape:
    """What the part says itself, and not by other parts that look at the same value."""
    said = part.get("type")
    types = _ANY if said is None else frozenset((said,) if isinstance(said, str) else cast("list[str]", said))
    if "number" in types:
        types |= _NUMBERS
    values: Sequence[Any] | None = part["enum"] if "enum" in part else [part["const"]] if "const" in part else None
    if values is not None:
        kinds = {type(one) for one in values}
        types &= frozenset().union(*(_LITERAL.get(kind, _ANY) for kind in kinds))
    named = part.get("properties")
    return _Shape(
        types=types,
        empty=_may_be_empty(part, types) if values is None else "" in values or [] in values,
        properties=cast("Node", named) if isinstance(named, Mapping) else {},
        required=frozenset(part.get("required", ())),
        items=part.get("items", True) if "prefixItems" not in part else True,
    )


def _may_be_empty(part: Node, types: Types) -> bool:
    text = "string" in types and not part.get("minLength") and part.get("format") not in _FORMATS
    return text or ("array" in types and not part.get("minItems"))


def _both(one: _Shape, other: _Shape) -> _Shape:
    """Of what two parts speak of nothing is known: it would have to fit both."""
    twice = one.properties.keys() & other.properties.keys()
    return _Shape(
        types=one.types & other.types,
        empty=one.empty and other.empty,
        properties={**one.properties, **other.properties, **dict.fromkeys(twice, True)},
        required=one.required | other.required,
        items=other.items if one.items is True else one.items if other.items is True else True,
    )


def _either(choices: Sequence[_Shape]) -> _Shape:
    """Into an object or a list is looked only where one choice alone allows any."""
    objects = [one for one in choices if "object" in one.types]
    lists = [one for one in choices if "array" in one.types]
    alone = objects[0] if len(objects) == 1 else _UNKNOWN
    return _Shape(
        types=frozenset().union(*(one.types for one in choices)),
        empty=any(one.empty for one in choices),
        properties=alone.properties,
        required=alone.required,
        items=lists[0].items if len(lists) == 1 else True,
    )


def _listed(part: Node, keyword: str) -> Sequence[object]:
    found = part.get(keyword)
    return cast("Sequence[object]", found) if isinstance(found, list) else ()
