"""Checks what a plugin's source answers against the contract of `core.ports.source.Source`.

Everything here looks and decides; nobody is told anything yet. What does not fit raises Breach. Its text is for the
operator: it names types and numbers, never content. Values are made anew where they carry a memo, since that of a
stranger could say anything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple, TypeVar, cast, get_args

from octavo.core.errors import (
    Conflict,
    Forbidden,
    InternalError,
    InvalidParams,
    NotFound,
    OctavoError,
    RateLimited,
    SourceUnavailable,
    Timeout,
    TooLarge,
)
from octavo.core.ref import Ref
from octavo.core.sizes import KIB
from octavo.core.values import (
    NOTHING,
    Change,
    ChangeKind,
    Content,
    Edited,
    EncoderMemo,
    Entry,
    Page,
    Past,
    Suggestion,
    Template,
    Undone,
)

T = TypeVar("T")

MAX_WORDS: Final = 64 * KIB  # bytes of all that an entry says of itself
MAX_CURSOR: Final = 64 * KIB  # characters
MAX_VALUES: Final = 10_000  # of a completion, or of whatever else has no limit that was asked for
COMPOSED: Final = 16  # times as large as a read may be is what tells of many resources, before it is cut to the caller

_KINDS: Final = frozenset(get_args(ChangeKind))
# What a source may raise; the others speak of callers, people and the protocol, of which it knows nothing.
_ERRORS: Final = (
    InvalidParams, NotFound, Forbidden, RateLimited, TooLarge, Conflict, Timeout, SourceUnavailable, InternalError,
)  # fmt: skip

_RESERVED: Final = frozenset(("message", "retry_after", "telling", "hidden", "self"))


class Breach(Exception):
    """What a source gave is not what its contract says."""


class Checked(NamedTuple):
    page: Page[Entry]
    last: Ref | None  # the entry that the next page goes on behind
    dropped: str  # what was left out of it, "" for nothing


def page(given: object, scope: Ref, *, cursor: str | None, limit: int, after: Ref | None) -> Checked:
    """`after` is the last entry before the cursor, where that is known. Entries that are of no use here, or were given
    before, are left out; whatever else is wrong is wrong with the whole page."""
    found = cast("Page[Entry]", _of(given, Page, "a page"))
    if type(found.items) is not tuple:
        raise Breach(f"the entries of a page are {kind(found.items)} and no tuple")
    if len(found.items) > limit:
        raise Breach(f"{len(found.items)} entries where at most {limit} were asked for")
    if found.cursor is not None:
        _check_cursor(found.cursor, cursor)
    kept: list[Entry] = []
    seen: set[Ref] = set()
    foreign = repeated = 0
    last = after
    for one in found.items:
        if type(one) is not Entry:
            raise Breach(f"{kind(one)} where an entry belongs")
        if type(one.ref) is not Ref or not _is_address(one.ref) or not one.ref.bare.within(scope.bare):
            foreign += 1
        elif one.ref in seen or (after is not None and (one.ref == after or one.ref.segments < after.segments)):
            repeated += 1
        elif last is not None and one.ref.segments < last.segments:
            raise Breach("entries are not in the order of their segments")
        else:
            seen.add(one.ref)
            kept.append(entry(one, scope.scheme))
            last = one.ref
    told = [
        words
        for count, words in ((foreign, "are no addresses below what was asked for"), (repeated, "were given before"))
        if count
        for words in (f"{count} of {len(found.items)} entries {words}",)
    ]
    return Checked(Page(tuple(kept), found.cursor), last, "; ".join(told))


def _check_cursor(given: object, before: str | None) -> None:
    if type(given) is not str or not 0 < len(given) <= MAX_CURSOR:
        raise Breach(f"the cursor is {kind(given)}, empty or too long")
    if given == before:
        raise Breach("the cursor that it gives is the one that it was given: the listing never ends")


def entry(given: object, scheme: str) -> Entry:
    given = _of(given, Entry, "an entry")
    address(given.ref, scheme)
    words = 0
    for name in ("name", "mime_type", "version", "etag"):
        words += _size(getattr(given, name), name)
    for name in ("title", "description"):
        if (text := getattr(given, name)) is not None:
            words += _size(text, name)
    for name in ("annotations", "metadata"):
        if (facts := getattr(given, name)) is not NOTHING:
            words += _json_size(facts, name)
    if words > MAX_WORDS:
        raise Breach(f"an entry says {words:,} bytes of itself, and may say {MAX_WORDS:,}")
    if given.size is not None and (type(given.size) is not int or given.size < 0):
        raise Breach(f"the size of an entry is {kind(given.size)}, or negative")
    if given.modified is not None:
        _number(given.modified, "modified")
    if given.target is not None and type(given.target) is not Ref:
        raise Breach(f"the target of an entry is {kind(given.target)}")
    return given


def content(given: object, scheme: str, max_bytes: int) -> Content:
    given = _of(given, Content, "a content")
    body = given.body
    if type(body) is bytes:
        size = len(body)
    elif type(body) is str:
        size = _size(body, "body")
    else:
        raise Breach(f"the body of a content is {kind(body)}")
    if type(given.composed) is not bool:
        raise Breach(f"composed is {kind(given.composed)}")
    if size > (max_bytes * COMPOSED if given.composed else max_bytes):
        raise Breach(f"{size:,} bytes where at most {max_bytes:,} were asked for")
    _size(given.etag, "etag")
    _size(given.encoding, "encoding")
    memo = EncoderMemo(size=size)
    known = entry(given.entry, scheme)
    return Content(entry=known, body=body, etag=given.etag, encoding=given.encoding, composed=given.composed, memo=memo)


def address(given: object, scheme: str) -> Ref:
    given = _of(given, Ref, "an address")
    if given.scheme != scheme or not _is_address(given):
        raise Breach(f"an address that is none of {scheme}://")
    return given


def change(given: object, scope: Ref) -> Change:
    given = _of(given, Change, "a change")
    if given.kind not in _KINDS:
        raise Breach("a change that is neither created, updated, deleted nor renamed")
    for ref in (given.ref, given.source):
        if ref is not None and not address(ref, scope.scheme).within(scope):
            raise Breach("a change outside of what is watched")
    for one in (given.old, given.new):
        if one is not None:
            entry(one, scope.scheme)
    _number(given.at, "at")
    return given


def edited(given: object, scheme: str) -> Edited:
    given = _of(given, Edited, "what became of an edit")
    entry(given.entry, scheme)
    _size(given.report, "report")
    _json_size([given.added, given.removed, list(given.places)], "places")
    return given


def suggestion(given: object, scheme: str) -> Suggestion:
    given = _of(given, Suggestion, "a suggestion")
    return Suggestion(text(given.value), entry(given.entry, scheme))


def template(given: object, scheme: str) -> Template:
    given = _of(given, Template, "a template")
    _size(given.uri_template, "uri_template")
    _size(given.name, "name")
    if not given.uri_template.startswith(f"{scheme}://"):
        raise Breach(f"a template that is none of {scheme}://")
    for words in (given.description, given.mime_type):
        if words is not None:
            text(words)
    if given.parameters is not NOTHING:
        _json_size(given.parameters, "parameters")
    return given


def past(given: object, scheme: str) -> Past:
    given = _of(given, Past, "a change that was made")
    address(given.ref, scheme)
    return given


def undone(given: object, scheme: str) -> Undone:
    given = _of(given, Undone, "a change that was taken back")
    address(given.ref, scheme)
    text(given.effect)
    return given


def text(given: object) -> str:
    if _size(given, "a text") > MAX_WORDS:
        raise Breach(f"a text of more than {MAX_WORDS:,} bytes")
    return cast("str", given)


def each(given: object, check: Callable[[object], T], most: int = MAX_VALUES) -> tuple[T, ...]:
    """Every one of them. What yields for ever is asked no further than it may give."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise Breach(f"{kind(given)} instead of a sequence")
    found = tuple(islice(cast("Iterable[object]", given), most + 1))
    if len(found) > most:
        raise Breach(f"more than the {most:,} values that were asked for")
    return tuple(map(check, found))


def error(raised: OctavoError) -> OctavoError:
    """The same, if it is one that a source may raise and every client can be told."""
    if not isinstance(raised, _ERRORS):
        raise Breach(f"it raises {type(raised).__name__}, which is not for sources")
    if type(raised.message) is not str or not isinstance(raised.data, Mapping):
        raise Breach(f"{type(raised).__name__} without a message, or with data that is no mapping")
    _size(raised.message, "a message")
    _json_size(raised.data, "data")
    if not _RESERVED.isdisjoint(raised.data):
        raise Breach(f"{type(raised).__name__} with data under a name that is taken")
    retry_after = getattr(raised, "retry_after", None)
    if retry_after is not None:
        _number(retry_after, "retry_after")
    return raised


def kind(value: object) -> str:
    """The name of its type, as long as a log line should be."""
    return type(value).__name__[:80]


@lru_cache(16_384)
def _is_address(ref: Ref) -> bool:
    try:
        return Ref.parse(str(ref)) == ref
    except Exception:  # whatever was put into it
        return False


def _of(given: object, wanted: type[T], words: str) -> T:
    """No subclass: that could be anything."""
    if type(given) is not wanted:
        raise Breach(f"{kind(given)} instead of {words}")
    return given


def _size(given: object, name: str) -> int:
    if type(given) is not str:
        raise Breach(f"{name} is {kind(given)} and no str")
    try:
        return len(given.encode("utf-8"))
    except UnicodeEncodeError:
        raise Breach(f"{name} is no valid Unicode") from None


def _json_size(given: object, name: str) -> int:
    if not isinstance(given, Mapping):
        raise Breach(f"{name} is {kind(given)} and no mapping")
    try:
        return len(json.dumps(dict(cast("Mapping[str, object]", given)), ensure_ascii=False).encode("utf-8"))
    except (TypeError, ValueError, RecursionError):
        raise Breach(f"{name} holds what JSON cannot say") from None


def _number(given: object, name: str) -> None:
    if type(given) not in (int, float) or not math.isfinite(cast("float", given)):
        raise Breach(f"{name} is {kind(given)} and no number")
