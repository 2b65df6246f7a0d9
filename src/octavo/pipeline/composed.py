"""Answers that tell of several resources: each caller sees those that it may see, and no trace of the others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from octavo.core.errors import InternalError, OctavoError
from octavo.core.model import Content
from octavo.core.ref import Ref

_GONE = object()


def visible(content: Content, sees: Callable[[Ref], bool]) -> Content:
    """The same content where all of it may be seen. In every list and mapping, an object whose `uri` may not is left
    out. Raises InternalError for a body that is no JSON, since nothing could be left out of it."""
    try:
        data = json.loads(content.body)
    except (ValueError, RecursionError):
        raise InternalError("The answer could not be checked against the policy") from None
    shown = _shown(data, sees)
    if shown is data:
        return content
    body = json.dumps({} if shown is _GONE else shown, ensure_ascii=False, indent=2)
    raw = body.encode("utf-8")
    version = hashlib.blake2b(raw, digest_size=12).hexdigest()
    entry = replace(content.entry, version=version, size=len(raw))
    return Content(entry=entry, body=body, etag=version, composed=True)


def is_empty(content: Content) -> bool:
    """Whether no list in it holds anything."""
    data = json.loads(content.body)
    return isinstance(data, Mapping) and not any(isinstance(value, list) and value for value in data.values())


def _shown(value: Any, sees: Callable[[Ref], bool]) -> Any:
    """The very value where nothing is left out."""
    if isinstance(value, Mapping):
        if "uri" in value and not _may(value["uri"], sees):
            return _GONE
        kept = {key: _shown(item, sees) for key, item in value.items()}
        if all(kept[key] is item for key, item in value.items()):
            return value
        return {key: item for key, item in kept.items() if item is not _GONE}
    if isinstance(value, list):
        items = [_shown(item, sees) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return [item for item in items if item is not _GONE]
    return value


def _may(uri: Any, sees: Callable[[Ref], bool]) -> bool:
    try:
        return isinstance(uri, str) and sees(Ref.parse(uri))
    except OctavoError:
        return False
