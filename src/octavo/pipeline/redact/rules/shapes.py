"""Keeps JSON and YAML readable when parts of it are replaced by marks.

In JSON a mark inside a string is harmless, one in the place of a number needs quotes. In YAML a scalar without
quotes must not begin with a bracket and go on, nor hold one inside braces, so a scalar that gets a mark gets quotes.
"""

from __future__ import annotations

import importlib
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from octavo.core.sizes import KIB
from octavo.pipeline.redact.rules.engine import Patch, Shape

MAX_YAML = 512 * KIB  # bytes; its scanner takes a second for a megabyte

# Python's `re` on a document, because the expression is ours and linear: nothing in it can match in two ways.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_FRONT_MATTER = re.compile(rb"\A---[ \t]*\r?\n(.*?\r?\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def shape_of(mime_type: str) -> Shape | None:
    kind = mime_type.partition(";")[0].rpartition("/")[2]
    if kind == "json" or kind.endswith(("+json", "ndjson", "jsonl", "json-lines")):
        return json_shape
    if kind.endswith("yaml"):
        return yaml_shape
    return front_matter_shape if kind in ("markdown", "x-markdown") else None


def json_shape(raw: bytes, patches: Sequence[Patch]) -> list[Patch]:
    strings = [match.span() for match in _STRING.finditer(raw)]
    return [patch if _inside(strings, patch) else patch._replace(new=b'"' + patch.new + b'"') for patch in patches]


def yaml_shape(raw: bytes, patches: Sequence[Patch]) -> Sequence[Patch]:
    return _quoted(raw, patches, 0, len(raw))


def front_matter_shape(raw: bytes, patches: Sequence[Patch]) -> Sequence[Patch]:
    front = _FRONT_MATTER.match(raw)
    return patches if front is None else _quoted(raw, patches, *front.span(1))


def _quoted(raw: bytes, patches: Sequence[Patch], left: int, right: int) -> Sequence[Patch]:
    """With quotes around each plain scalar between `left` and `right` in which something is replaced."""
    if not any(left <= patch.start and patch.end <= right for patch in patches) or right - left > MAX_YAML:
        return patches
    scalars = _plain_scalars(raw[left:right])
    if not scalars:
        return patches
    scalars = [(start + left, end + left) for start, end in scalars]
    starts = [start for start, _ in scalars]
    within: dict[int, list[Patch]] = {}
    others: list[Patch] = []
    for patch in patches:
        at = bisect_right(starts, patch.start) - 1
        if at >= 0 and patch.end <= scalars[at][1]:
            within.setdefault(at, []).append(patch)
        else:
            others.append(patch)
    return sorted([*others, *(_scalar(raw, *scalars[at], inner) for at, inner in within.items())])


def _scalar(raw: bytes, start: int, end: int, patches: Sequence[Patch]) -> Patch:
    pieces: list[bytes] = []
    at = start
    for patch in patches:
        pieces += (_escaped(raw[at : patch.start]), patch.new)
        at = patch.end
    return Patch(start, end, b'"' + b"".join(pieces) + _escaped(raw[at:end]) + b'"')


def _escaped(raw: bytes) -> bytes:
    return raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def _plain_scalars(raw: bytes) -> list[tuple[int, int]]:
    """Where scalars without quotes stand, in bytes; nothing where the text is no YAML."""
    yaml: Any = importlib.import_module("yaml")  # untyped, and only for YAML that has a secret in it

    try:
        text = raw.decode("utf-8")
        # Tokens only: nothing is built, so nothing can explode.
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        tokens: list[Any] = [*yaml.scan(text, Loader=loader)]
    except (yaml.YAMLError, UnicodeDecodeError):
        return []
    spans = [
        (token.start_mark.index, token.end_mark.index)
        for token in tokens
        if isinstance(token, yaml.ScalarToken) and token.plain and token.start_mark.index < token.end_mark.index
    ]
    if text.isascii():
        return spans
    places = _places(text, sorted({place for span in spans for place in span}))
    return [(places[start], places[end]) for start, end in spans]


def _places(text: str, characters: Sequence[int]) -> dict[int, int]:
    """Character → byte, for some characters in order."""
    found: dict[int, int] = {}
    at = size = 0
    for place in characters:
        size += len(text[at:place].encode("utf-8"))
        at = place
        found[place] = size
    return found


def _inside(spans: Sequence[tuple[int, int]], patch: Patch) -> bool:
    at = bisect_right(spans, (patch.start, 1 << 62)) - 1
    return at >= 0 and patch.start < spans[at][1]
