"""What the index is given of one resource, and what it keeps of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct

from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.values import NOTHING, Entry
from octavo.search import tokens as t

MAX_CHARACTERS: Final = MIB  # of a text; the rest of it is not searched
MAX_TITLE: Final = 1000
MAX_TAGS: Final = 10_000
MAX_METADATA: Final = 64_000  # characters of JSON
MAX_FACETS: Final = 64
MAX_VALUE: Final = 256

# Metadata that says what a document is. What else there is may name other documents, and counts as a heading does.
_NAMING: Final = frozenset(("tags", "keywords", "triggers", "aliases", "name", "title"))
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*)$", re.MULTILINE)


class Document(Struct, frozen=True, kw_only=True):
    """A resource with the text that may be shown of it: whoever makes one has redacted it."""

    ref: Ref
    version: str
    title: str
    text: str
    metadata: Mapping[str, Any] = NOTHING
    aliases: Mapping[str, Any] = NOTHING  # what filters may call the metadata as well
    partial: bool = False  # it has more text than is given here
    unread: bool = False  # it is called a text, and its bytes are none

    @classmethod
    def of(cls, entry: Entry, text: str) -> Document:
        title = entry.title or entry.metadata.get("title") or entry.name
        facts = dict(entry.metadata)
        if entry.description:
            facts.setdefault("description", entry.description)
        return cls(ref=entry.ref, version=entry.version, title=str(title), text=text, metadata=facts)


class Fields(NamedTuple):
    """A document as it is kept: the texts, by weight."""

    title: str
    tags: str  # and names, one to a line
    headings: str  # and other metadata
    body: str

    def tokens(self) -> str:
        """All that the document can be found by, each once."""
        found = t.tokens(self.body)
        for mark, text in ((t.TITLE, self.title), (t.TAGS, self.tags), (t.HEADINGS, self.headings)):
            strong = t.tokens(text)
            found |= strong
            found.update(mark + token for token in strong)
        return " ".join(found)


def fields_of(document: Document) -> Fields:
    body = t.normal(document.text[:MAX_CHARACTERS])
    headings = [match[1].rstrip("# \t\r") for match in _HEADING.finditer(body)]
    names = [" ".join(document.ref.segments)]
    for key, value in document.metadata.items():
        (names if key in _NAMING else headings).extend(_values(value))
    return Fields(
        title=t.normal(document.title[:MAX_TITLE]),
        tags=t.normal("\n".join(names)[:MAX_TAGS]),
        headings=t.normal("\n".join(headings)[:MAX_TAGS]),
        body=body,
    )


def facets(document: Document) -> set[tuple[str, str]]:
    """What a filter can ask for: values, and each of a list of values, as text."""
    found: set[tuple[str, str]] = set()
    for key, value in (*document.metadata.items(), *document.aliases.items()):
        for one in _values(value):
            if len(found) < MAX_FACETS and len(one) <= MAX_VALUE:
                found.add((t.normal(str(key)), facet(one)))
    return found


def facet(value: str) -> str:
    """A value as filters compare it: capitals do not matter."""
    return t.normal(value.strip()).casefold()


def kept_metadata(metadata: Mapping[str, Any]) -> str:
    """As JSON; null where it is too much, since a part of it would be another thing."""
    text = json.dumps(dict(metadata), ensure_ascii=False, default=str)
    return t.normal(text) if len(text) <= MAX_METADATA else "null"


def _values(value: Any) -> Iterator[str]:
    values = cast("list[Any]", value) if isinstance(value, list | tuple | set | frozenset) else [value]
    for one in values:
        if isinstance(one, bool):
            yield str(one).lower()
        elif one is not None and not isinstance(one, Mapping | list | tuple):
            yield str(one)
