"""Bounds the work that a JSON Schema can cause, before it is used.

A schema that refers to itself is good as long as every round goes one level deeper into the value, whose depth is
bounded. It is refused where a round stays on the same value, and where rounds multiply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import unquote

from octavo.core.errors import InvalidParams

MOST: Final = 100_000  # subschemas that one part of a value may have to pass
MAX_PARTS: Final = 10_000

_SAME_ONE: Final = ("not", "if", "then", "else")  # keywords whose subschema looks at the same value
_SAME_MANY: Final = ("allOf", "anyOf", "oneOf")
_BELOW_ONE: Final = (
    "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties"
)  # fmt: skip

Node = Mapping[str, Any]


def bounded(schema: Node, depth: int) -> None:
    """Raises InvalidParams for a schema that could keep a validator busy with values at most `depth` deep."""
    parts = _parts(schema)
    if any("$ref" in part or "$dynamicRef" in part for part in parts):  # else it costs what it is long
        if any(isinstance(part.get("$id"), str) for part in parts if part is not schema):
            raise InvalidParams("A part of a schema that has references has no $id of its own: take it out")
        anchors = {str(part["$anchor"]): part for part in parts if isinstance(part.get("$anchor"), str)}
        _Cost(schema, anchors, depth).check()


class _Cost:
    def __init__(self, schema: Node, anchors: Mapping[str, Node], depth: int) -> None:
        self._root, self._anchors, self._depth = schema, anchors, depth
        self._nodes: dict[int, Node] = {}
        self._here: dict[int, Counter[int]] = {}
        self._below: dict[int, dict[str, Counter[int]]] = {}

    def check(self) -> None:
        start = self._known(self._root)
        costs: dict[int, int] = {}
        reached = self._reached(start)
        sizes = {node: self._here[node].total() for node in reached}
        for _ in range(self._depth):
            before, costs = (
                costs,
                {
                    node: sizes[node]
                    + max(
                        (
                            sum(times * costs.get(one, 1) for one, times in subs.items())
                            for subs in self._below[node].values()
                        ),
                        default=0,
                    )
                    for node in reached
                },
            )
            if costs == before:
                return
            if costs[start] > MOST:
                raise InvalidParams(
                    f"The schema is explosive: one value could have to pass more than {MOST} of its parts; "
                    "let fewer of them refer to the same definition"
                )

    def _reached(self, start: int) -> list[int]:
        """Every schema that can be asked about some value, expanded."""
        found: dict[int, None] = {start: None}
        waiting = [start]
        while waiting:
            node = waiting.pop()
            self._expand(node)
            for subs in self._below[node].values():
                for one in subs:
                    if one not in found:
                        found[one] = None
                        waiting.append(one)
        return [*found]

    def _expand(self, node: int) -> None:
        """What looks at the same value as `node` does, how often, and by the name of a part what looks at it."""
        here = self._closure(node, ())
        below: dict[str, Counter[int]] = {}
        for one, times in here.items():
            for name, sub in _children(self._nodes[one]):
                below.setdefault(name, Counter())[self._known(sub)] += times
        self._below[node] = below

    def _closure(self, node: int, above: tuple[int, ...]) -> Counter[int]:
        if node in self._here:
            return self._here[node]
        if node in above:
            raise InvalidParams("The schema refers to itself without end: a round must go into a part of the value")
        found = Counter((node,))
        for sub in self._beside(self._nodes[node]):
            found.update(self._closure(self._known(sub), (*above, node)))
            if found.total() > MOST:
                raise InvalidParams(f"The schema is explosive: it stands for more than {MOST} parts")
        self._here[node] = found
        return found

    def _beside(self, node: Node) -> Iterator[Node]:
        for keyword in _SAME_ONE:
            yield from _schemas((node.get(keyword),))
        for keyword in _SAME_MANY:
            listed = node.get(keyword)
            yield from _schemas(cast("Sequence[object]", listed) if isinstance(listed, list) else ())
        dependent = node.get("dependentSchemas")
        if isinstance(dependent, Mapping):
            yield from _schemas(cast("Mapping[str, object]", dependent).values())
        if isinstance(node.get("$ref"), str):
            target = self._target(node["$ref"])
            if target is not None:
                yield target
        if "$dynamicRef" in node:
            raise InvalidParams("A schema may not refer dynamically: use $ref")

    def _target(self, reference: str) -> Node | None:
        """None for what is no schema to look into, such as `true`. What leads nowhere the compiler refuses."""
        if not reference.startswith("#"):
            raise InvalidParams(f"A schema refers to itself by #, and not by {reference[:80]!r}")
        inside = unquote(reference[1:])
        if inside and not inside.startswith("/"):
            return self._anchors.get(inside)
        part: Any = self._root
        for step in inside.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(part, Mapping):
                part = cast("Mapping[str, Any]", part).get(name)
            elif isinstance(part, list) and name.isdigit() and int(name) < len(part):
                part = part[int(name)]
            else:
                return None
        return cast("Node", part) if isinstance(part, Mapping) else None

    def _known(self, node: Node) -> int:
        self._nodes[id(node)] = node
        return id(node)


def _children(node: Node) -> Iterator[tuple[str, Node]]:
    """Schemas for parts of the value, by the name of the part; `*` stands for any."""
    for keyword in ("properties", "patternProperties"):
        named = node.get(keyword)
        for name, sub in cast("Mapping[str, object]", named).items() if isinstance(named, Mapping) else ():
            for one in _schemas((sub,)):
                yield (f"={name}" if keyword == "properties" else "*"), one
    listed = node.get("prefixItems")
    for one in _schemas(cast("Sequence[object]", listed) if isinstance(listed, list) else ()):
        yield "[]", one
    for keyword in _BELOW_ONE:
        for one in _schemas((node.get(keyword),)):
            yield ("[]" if "tems" in keyword or keyword == "contains" else "*"), one


def _schemas(values: Any) -> Iterator[Node]:
    for value in values:
        if isinstance(value, Mapping):
            yield cast("Node", value)


def _parts(schema: Node) -> list[Node]:
    waiting: list[object] = [schema]
    parts: list[Node] = []
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            parts.append(cast("Node", part))
            waiting += cast("Mapping[str, object]", part).values()
        elif isinstance(part, list):
            waiting += cast("list[object]", part)
        if len(parts) > MAX_PARTS or len(waiting) > 10 * MAX_PARTS:
            raise InvalidParams(f"The schema has more than {MAX_PARTS} parts")
    return parts
