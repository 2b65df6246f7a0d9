"""Answers that tell of several resources: each caller sees those that it may see, and no trace of the others."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from octavo.core.errors import InternalError, OctavoError
from octavo.core.ref import Ref
from octavo.core.skill import usability
from octavo.core.values import QUOTED, Content
from octavo.pipeline.redact.marks import hides_in

_GONE = object()


class Sees(NamedTuple):
    """What one caller may be told of."""

    resource: Callable[[Ref], bool]
    pattern: Callable[[str], bool]  # of a rule
    calls: Callable[[str], bool] = lambda _: True  # whether there is a tool of that name that it may call
    reads: Callable[[Ref], bool] = lambda _: True
    quotes: Callable[[Ref], bool] = lambda _: True  # whether what stands in its content may be told, as it is now
    filters: Sequence[str] = ()  # by which the answer was narrowed: who is told that it fits is told the value


def visible(content: Content, sees: Sees) -> Content:
    """What is left of it for one caller: in every list and mapping, an object is left out whose `uri` may not be seen,
    or whose `what` is a pattern that may not be known, or in which that is hidden by which it was picked out. Then
    lists are cut to the answer's `at_most`, if it has one. Of what was matched, that comes first which the caller can
    use, if nobody else was asked about.
    What stands in a content that may not be read is left out as well: an object, or a name, for which the path gives
    one. Size and version are those of what is left.

    Raises InternalError for a body that is no JSON, since nothing could be left out of it.
    """
    try:
        data = json.loads(content.body)
    except (ValueError, RecursionError):
        raise InternalError("The answer could not be checked against the policy") from None
    shown = _shown(_usable_first(data, sees), sees)
    body = content.body if shown is data else json.dumps({} if shown is _GONE else shown, ensure_ascii=False, indent=2)
    raw = body if isinstance(body, bytes) else body.encode("utf-8")
    version = hashlib.blake2b(raw, digest_size=12).hexdigest()
    entry = replace(content.entry, version=version, size=len(raw))
    return Content(entry=entry, body=body, etag=version, composed=True)


def is_empty(content: Content) -> bool:
    """Whether no list in it holds anything."""
    data = json.loads(content.body)
    return isinstance(data, Mapping) and not any(isinstance(value, list) and value for value in data.values())


def _shown(value: Any, sees: Sees, above: str = "", most: int | None = None) -> Any:
    """The very value where nothing is left out. `above` is the key that it stands at."""
    if isinstance(value, Mapping):
        value = _quoted(value, sees) if _may_be_told(value, sees) else _GONE
        if value is _GONE:
            return _GONE
        # What the author of a file wrote there is part of what may be seen, whatever keys it has.
        quoted = "metadata" if "uri" in value else "declared" if above == "permissions" else None
        most = value.get("at_most")
        kept = {key: item if key == quoted else _shown(item, sees, key, most) for key, item in value.items()}
        if all(kept[key] is item for key, item in value.items()):
            return value
        return {key: item for key, item in kept.items() if item is not _GONE}
    if isinstance(value, list):
        found = (one for one in (_shown(item, sees) for item in value) if one is not _GONE)
        items = list(islice(found, most))  # no further: the rest is judged for nothing
        return value if len(items) == len(value) and all(map(operator.is_, items, value)) else items
    return value


def _may_be_told(told: Mapping[str, Any], sees: Sees) -> bool:
    """Of an object that there is such a thing, by its address and by the pattern of a rule in it."""
    if "uri" in told and not (_may(told["uri"], sees) and _fits(told, sees)):
        return False
    pattern = told.get("what")
    return not isinstance(pattern, str) or sees.pattern(pattern)


def _quoted(told: Mapping[str, Any], sees: Sees) -> Any:
    """An object without what was quoted from a content that may not be read: its name, or all of it."""
    if "uri" not in told or QUOTED not in told:
        return told
    what, kept = told[QUOTED], {key: item for key, item in told.items() if key != QUOTED}
    ref = Ref.parse(told["uri"])
    if sees.quotes(ref):
        return kept
    return _GONE if what == "all" else {**kept, "name": ref.name}


def _usable_first(data: Any, sees: Sees) -> Any:
    found = data.get("matches") if isinstance(data, Mapping) else None
    if not isinstance(found, list) or not all(isinstance(one, Mapping) and "usable" not in one for one in found):
        return data
    told = [{**one, **_usability(one, sees)} for one in found]
    return {**data, "matches": sorted(told, key=lambda one: not one["usable"])}


def _usability(one: Mapping[str, Any], sees: Sees) -> dict[str, Any]:
    needs = one.get("required_tools")
    tools = {str(name) for name in needs} if isinstance(needs, list) else set[str]()
    try:
        readable = sees.reads(Ref.parse(str(one.get("uri"))))
    except OctavoError:
        readable = False
    return usability(readable, sorted(name for name in tools if not sees.calls(name)))


def _may(uri: Any, sees: Sees) -> bool:
    try:
        return isinstance(uri, str) and sees.resource(Ref.parse(uri))
    except OctavoError:
        return False


def _fits(told: Mapping[str, Any], sees: Sees) -> bool:
    metadata = told.get("metadata")
    return not hides_in(metadata if isinstance(metadata, Mapping) else {}, told, sees.filters)
