"""Entries held in memory: the contract with nothing in the way. Copy this one to start a new kind.

`kind: memory` serves small fixed texts and binaries straight from the configuration, and families of
texts with variables (`template/{id}/data`). Nothing here suspends, so every call is atomic.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
import unicodedata
from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from octavo.core.arguments import Mode
from octavo.core.clock import Clock, SystemClock
from octavo.core.cursor import of_path, path_of
from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, TooLarge
from octavo.core.parameters import refuse_unknown
from octavo.core.preconditions import Shown, check
from octavo.core.ref import Ref
from octavo.core.values import NOTHING, Change, ChangeKind, Content, Entry, Page, Template

_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class MemoryEntry(Struct, frozen=True, kw_only=True):
    """One thing to serve. Without a name it is called after the last segment of its path."""

    body: str | bytes
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


class TemplateBody(Struct, frozen=True, kw_only=True):
    """What every address of a template answers: `text` with its `{variables}` filled in."""

    text: str
    name: str | None = None
    description: str | None = None
    mime_type: str = "text/plain"
    values: Mapping[str, Sequence[str]] = field(
        default_factory=dict[str, Sequence[str]]
    )  # what completion offers, per variable
    about: Mapping[str, str] = field(default_factory=dict[str, str])  # a sentence per variable


class _HeldResource(Struct, frozen=True):
    declared: MemoryEntry
    entry: Entry
    serial: int


class MemorySource:
    """A source over a dictionary. Implements Watches, Writes, Completes, Stamps and Offers too."""

    def __init__(
        self,
        scheme: str,
        entries: Mapping[str, MemoryEntry | str | bytes],
        *,
        templates: Mapping[str, TemplateBody | str] = NOTHING,
        secret: bytes = b"",
        clock: Clock | None = None,
        writable: bool = True,
    ) -> None:
        """Keys are decoded paths (`a/one.md`). Without a `secret`, versions last as long as the process.

        Raises InvalidParams or Forbidden for a path that can be no address, and for one given twice.
        """
        self.scheme = scheme
        self._key = hashlib.sha256(secret or secrets.token_bytes(32)).digest()
        self._clock = clock or SystemClock()
        self._writable = writable
        self._serial = 0  # one step per change, never reused
        self._held: dict[tuple[str, ...], _HeldResource] = {}
        self._order: list[tuple[str, ...]] = []
        self._watchers: dict[asyncio.Queue[Change], Ref] = {}
        for path, value in entries.items():
            ref = Ref.of(scheme, path.split("/"))
            if ref.segments in self._held:
                raise InvalidParams(f"The path {path!r} is given twice")
            self._hold(ref, value if isinstance(value, MemoryEntry) else MemoryEntry(body=value), None)
        self._families = [
            _Family(scheme, path, body if isinstance(body, TemplateBody) else TemplateBody(text=body))
            for path, body in templates.items()
        ]

    def __repr__(self) -> str:
        return f"MemorySource({self.scheme!r}, {len(self._held)} entries, {len(self._families)} templates)"

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        """Raises InvalidParams for parameters, a limit below one, and a cursor that is not from here."""
        refuse_unknown(scope, ())
        if limit < 1:
            raise InvalidParams("A page holds at least one entry")
        prefix = scope.segments
        if cursor is None:
            at = bisect_left(self._order, prefix)
        else:
            at = max(bisect_right(self._order, path_of(cursor)), bisect_left(self._order, prefix))
        if scope.scheme != self.scheme or scope.absolute:
            return Page(())
        page: list[tuple[str, ...]] = []
        for key in islice(self._order, at, at + limit + 1):
            if key[: len(prefix)] != prefix:
                break
            page.append(key)
        more = len(page) > limit
        del page[limit:]
        return Page(tuple(self._held[key].entry for key in page), of_path(page[-1]) if more else None)

    async def stat(self, ref: Ref) -> Entry:
        return self._find(ref)[0]

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        entry, body = self._find(ref)
        if (entry.size or 0) > max_bytes:
            raise TooLarge(
                f"{ref} has {entry.size} bytes, more than the limit of {max_bytes}",
                uri=str(ref), size=entry.size, limit=max_bytes,
            )  # fmt: skip
        return Content(entry=entry, body=body, etag=self._digest(b"etag", _raw(body)))

    async def write(
        self,
        ref: Ref,
        body: str | bytes,
        *,
        if_match: str | None,
        mode: Mode = "upsert",
        encoding: str | None = None,
        by: str = "",
    ) -> Entry:
        """Creates or replaces an entry, or adds to it; what was declared of an entry beside its body stays."""
        self._check_write(ref)
        held = self._held.get(ref.segments)
        self._check_match(ref, held, if_match)
        if held is None and mode == "overwrite":
            raise _not_found(ref)
        if held is not None and mode == "create":
            raise Conflict(f"There is something at {ref} already", uri=str(ref))
        if held is not None and mode == "append":
            mime, body = held.entry.mime_type, _joined(ref, held.declared.body, body)
            check(partial(Shown, held.declared.body, mime), partial(Shown, body, mime))
        self._serial += 1
        declared = MemoryEntry(body=body) if held is None else replace(held.declared, body=body)
        entry = self._hold(ref, declared, self._clock.wall())
        self._tell("created" if held is None else "updated", ref, held.entry if held else None, entry)
        return entry

    async def delete(self, ref: Ref, *, if_match: str | None, by: str = "") -> None:
        self._check_write(ref)
        held = self._held.get(ref.segments)
        if held is None:
            raise _not_found(ref)
        self._check_match(ref, held, if_match)
        self._serial += 1
        del self._held[ref.segments]
        del self._order[bisect_left(self._order, ref.segments)]
        self._tell("deleted", ref, held.entry, None)

    async def watch(self, scope: Ref) -> AsyncIterator[Change]:
        queue: asyncio.Queue[Change] = asyncio.Queue()
        self._watchers[queue] = scope
        try:
            while True:
                yield await queue.get()
        finally:
            del self._watchers[queue]

    async def complete(self, argument: str, prefix: str, given: Mapping[str, str]) -> Sequence[str]:
        """Declared values of a template's variable; listed paths for `path`; nothing for other names."""
        prefix = unicodedata.normalize("NFC", prefix)
        offered = [value for family in self._families for value in family.body.values.get(argument, ())]
        if not offered and argument == "path":
            offered = ["/".join(key) for key in self._order]
        return tuple(dict.fromkeys(value for value in offered if value.startswith(prefix)))

    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        held = self._held.get(ref.segments) if op in ("read", "stat") else None
        return self._serial if held is None else held.serial

    def templates(self) -> Sequence[Template]:
        return tuple(family.template for family in self._families)

    def _find(self, ref: Ref) -> tuple[Entry, str | bytes]:
        refuse_unknown(ref, ())
        if ref.scheme == self.scheme and not ref.absolute:
            held = self._held.get(ref.segments)
            if held is not None:
                return held.entry, held.declared.body
            for family in self._families:
                values = family.match(ref.segments)
                if values is not None:
                    declared = family.fill(values)
                    return self._entry(ref, declared, 0, None), declared.body
        raise _not_found(ref)

    def _hold(self, ref: Ref, declared: MemoryEntry, modified: float | None) -> Entry:
        entry = self._entry(ref, declared, self._serial, modified)
        if ref.segments not in self._held:
            insort(self._order, ref.segments)
        self._held[ref.segments] = _HeldResource(declared, entry, self._serial)
        return entry

    def _entry(self, ref: Ref, declared: MemoryEntry, serial: int, modified: float | None) -> Entry:
        raw = _raw(declared.body)
        return Entry(
            ref=ref,
            name=declared.name or ref.name,
            mime_type=declared.mime_type or _mime_type(declared.body),
            # The serial keeps the version of a text apart from that of an equal text that was replaced since.
            version=self._digest(b"version %d" % serial, raw),
            size=len(raw),
            modified=modified,
            title=declared.title,
            description=declared.description,
            annotations=declared.annotations,
            metadata=declared.metadata,
        )

    def _digest(self, what: bytes, raw: bytes) -> str:
        return hashlib.blake2b(what + b"\0" + raw, key=self._key, digest_size=12).hexdigest()

    def _check_write(self, ref: Ref) -> None:
        refuse_unknown(ref, ())
        if not self._writable:
            raise Forbidden("The source is read-only", uri=str(ref))
        if ref.scheme != self.scheme or ref.absolute or not ref.segments:
            raise _not_found(ref)

    def _check_match(self, ref: Ref, held: _HeldResource | None, if_match: str | None) -> None:
        if if_match is None:
            return
        if held is None or if_match not in (held.entry.version, self._digest(b"etag", _raw(held.declared.body))):
            raise Conflict(f"{ref} has changed since it was read", uri=str(ref))

    def _tell(self, kind: ChangeKind, ref: Ref, old: Entry | None, new: Entry | None) -> None:
        change = Change(kind=kind, ref=ref, at=self._clock.wall(), old=old, new=new)
        for queue, scope in self._watchers.items():
            if ref.within(scope):
                queue.put_nowait(change)


class _Family:
    """The addresses of one template. A segment holds at most one variable, so that a match is unambiguous."""

    def __init__(self, scheme: str, path: str, body: TemplateBody) -> None:
        self.body = body
        self._parts: list[tuple[str, str | None, str]] = []  # text before, variable, text after
        names: list[str] = []
        ref = Ref.of(scheme, path.split("/"))
        for segment in ref.segments:
            found = _VARIABLE.search(segment)
            before, after = (segment[: found.start()], segment[found.end() :]) if found else (segment, "")
            if "{" in before + after or "}" in before + after:
                raise InvalidParams(f"The template {path!r} has a segment with more than one {{variable}}")
            self._parts.append((before, found[1] if found else None, after))
            if found:
                names.append(found[1])
        unknown = [name for name in (*body.values, *body.about) if name not in names]
        if not names or len(set(names)) < len(names) or unknown:
            raise InvalidParams(
                f"The template {path!r} needs variables, each once, and no values for others: {unknown}"
            )
        self.template = Template(
            uri_template=str(ref).replace("%7B", "{").replace("%7D", "}"),
            name=body.name or path,
            description=body.description,
            mime_type=body.mime_type,
            parameters={
                "type": "object",
                "properties": {name: self._schema(name) for name in names},
                "required": names,
            },
        )

    def _schema(self, name: str) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        if name in self.body.about:
            schema["description"] = self.body.about[name]
        if name in self.body.values:
            schema["examples"] = [*self.body.values[name]]
        return schema

    def match(self, segments: tuple[str, ...]) -> dict[str, str] | None:
        if len(segments) != len(self._parts):
            return None
        values: dict[str, str] = {}
        for segment, (before, name, after) in zip(segments, self._parts, strict=True):
            if name is None:
                if segment != before:
                    return None
            elif (
                len(segment) > len(before) + len(after) and segment.startswith(before) and segment.endswith(after)
            ):  # a variable is never empty
                values[name] = segment[len(before) : len(segment) - len(after)]
            else:
                return None
        return values

    def fill(self, values: Mapping[str, str]) -> MemoryEntry:
        """Values are data: they are put in once, and inside JSON they stay inside their string."""
        if self.body.mime_type.endswith(("/json", "+json")):
            values = {name: json.dumps(value, ensure_ascii=False)[1:-1] for name, value in values.items()}
        text = _VARIABLE.sub(lambda found: values.get(found[1], found[0]), self.body.text)
        return MemoryEntry(body=text, mime_type=self.body.mime_type, description=self.body.description)


def _not_found(ref: Ref) -> NotFound:
    return NotFound(f"Resource not found: {ref}", uri=str(ref))


def _raw(body: str | bytes) -> bytes:
    try:
        return body.encode("utf-8") if isinstance(body, str) else body
    except UnicodeEncodeError:
        raise InvalidParams("The text is not valid Unicode") from None


def _mime_type(body: str | bytes) -> str:
    return "text/plain" if isinstance(body, str) else "application/octet-stream"


def _joined(ref: Ref, before: str | bytes, more: str | bytes) -> str | bytes:
    if isinstance(before, str) and isinstance(more, str):
        return before + more
    if isinstance(before, bytes) and isinstance(more, bytes):
        return before + more
    raise InvalidParams("Text is added to text, and bytes to bytes", uri=str(ref))
