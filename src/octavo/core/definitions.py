"""Named definitions as a source: what `list`, `stat` and `read` tell of tools or prompts."""

from __future__ import annotations

import bisect
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from octavo.core.cursor import text_of, token
from octavo.core.errors import InvalidParams, NotFound, TooLarge
from octavo.core.ref import Ref
from octavo.core.values import Content, Entry, Page

# Many clients never ask for a second page of tools or prompts. The operator, who chose them, bounds how many there are.
DEFINED: Final = frozenset(("tool", "prompt"))
ALL: Final = 1_000_000


def most_entries(scope: Ref, page: int) -> int:
    """How many entries of a listing come at once where a page holds so many."""
    return ALL if scope.scheme in DEFINED else page


class Shelf:
    """A source of one scheme whose entries are `scheme://name`, ordered by name.

    The content of an entry is its definition as JSON. A cursor is the name that was given last, so it
    survives what is added or taken away; the transport signs it before a client sees it.
    """

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        self._contents: dict[str, Content] = {}
        self._names: list[str] = []
        self._watchers: list[Callable[[], None]] = []

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        """Raises InvalidParams for parameters, a limit below one, and a cursor that is not from here."""
        self._refuse_parameters(scope)
        if limit < 1:
            raise InvalidParams("A page holds at least one entry")
        start = 0 if cursor is None else bisect.bisect_right(self._names, text_of(cursor))
        if scope.scheme != self.scheme:
            return Page(())
        names = [name for name in self._names[start:] if scope.segments in ((), (name,))]
        given = names[:limit]
        entries = tuple(self._contents[name].entry for name in given)
        return Page(entries, token(given[-1]) if len(names) > limit else None)

    async def stat(self, ref: Ref) -> Entry:
        return self._find(ref).entry

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        content = self._find(ref)
        if content.size > max_bytes:
            raise TooLarge(
                f"The definition has {content.size} bytes, the limit is {max_bytes}",
                uri=str(ref),
                size=content.size,
                limit=max_bytes,
            )
        return content

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._names)

    @property
    def entries(self) -> Sequence[Entry]:
        return tuple(self._contents[name].entry for name in self._names)

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls `callback` whenever the list may have changed. Returns the way out."""
        self._watchers.append(callback)

        def leave() -> None:
            if callback in self._watchers:
                self._watchers.remove(callback)

        return leave

    def list_changed(self) -> None:
        for callback in tuple(self._watchers):
            callback()

    def _put(self, name: str, definition: Mapping[str, Any], *, title: str | None, description: str) -> None:
        body = json.dumps(definition, ensure_ascii=False, indent=2)
        entry = Entry(
            ref=Ref.of(self.scheme, (name,)),
            name=name,
            mime_type="application/json",
            version=hashlib.blake2b(body.encode("utf-8"), digest_size=12).hexdigest(),
            size=len(body.encode("utf-8")),
            title=title,
            description=description,
        )
        if name not in self._contents:
            bisect.insort(self._names, name)
        self._contents[name] = Content(entry=entry, body=body, etag=entry.version)

    def _drop(self, name: str) -> None:
        if self._contents.pop(name, None) is not None:
            self._names.remove(name)

    def _find(self, ref: Ref) -> Content:
        self._refuse_parameters(ref)
        content = self._contents.get(ref.path) if ref.scheme == self.scheme and len(ref.segments) == 1 else None
        if content is None:
            raise NotFound(f"Resource not found: {ref}", uri=str(ref))
        return content

    def _refuse_parameters(self, ref: Ref) -> None:
        if ref.params:
            raise InvalidParams(f"Unknown query parameter: {ref.params[0][0]!r}", uri=str(ref))
