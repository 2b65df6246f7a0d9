"""The one place where a string becomes an address that the rest of the code may trust.

The parser works on the raw string. General URL types lower-case `file://Documents`, fold `..`
and escape Hangul, so none is used here: scheme, opaque path, query, and nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from octavo.core.errors import Forbidden, InvalidParams

MAX_SEGMENT_BYTES = 255
MAX_PATH_BYTES = 4096
MAX_QUERY_BYTES = 4096
SPELLINGS = 1000  # of percent-encoded addresses, that are remembered
MAX_URI_CHARACTERS = 24_800  # percent-encoding triples path and query: what is printed can be parsed again

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,63}\Z")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
# Bidirectional and invisible format controls make one name look like another. ZWJ and ZWNJ stay:
# emoji and several scripts need them.
_UNSEEN = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
# What would end a segment or a value early, or be decoded again. All else is printed as it is.
_PATH_ESCAPES = {ord(c): "".join(f"%{b:02X}" for b in c.encode()) for c in ' %?#"<>^`{}|'}
# The first segment stands where URL types look for user, host and port: one that they cannot read there costs some
# clients the whole list. Lists give files the absolute form, which has no such place; the relative one stays as it is.
_FIRST_ESCAPES = _PATH_ESCAPES | {ord(c): f"%{ord(c):02X}" for c in ":@[]"}
_QUERY_ESCAPES = {n: f"%{n:02X}" for n in (*range(0x20), *map(ord, ' %&=#+"<>'), 0x7F)}


class Ref(NamedTuple):
    """A parsed, normalised resource address.

    Invariants, kept by `parse` and `of`: no segment is empty, `.` or `..`, or holds a NUL, a control
    character, `/` or `\\`; everything is NFC; parameters are sorted and unique; and
    `Ref.parse(str(ref)) == ref`. A named tuple, because hashing and comparing it is on the hot path.
    """

    scheme: str
    segments: tuple[str, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    absolute: bool = False  # `file:///abs/x.md`, as against `file://documents/x.md`

    @classmethod
    def parse(cls, uri: str) -> Ref:
        """Raises InvalidParams for text that is no address, Forbidden for one that climbs (`..`)."""
        if len(uri) > MAX_URI_CHARACTERS:
            raise InvalidParams(f"The URI is longer than {MAX_URI_CHARACTERS} characters")
        scheme, separator, rest = uri.partition("://")
        if not separator or not is_scheme(scheme):
            raise InvalidParams("Not a resource URI: expected scheme://path")
        scheme = scheme.lower()
        if "#" in rest:
            raise InvalidParams("A resource URI has no fragment; write # as %23")
        path, has_query, query = rest.partition("?")
        absolute = False
        if scheme == "file":
            if path.startswith("localhost/"):
                path = path.removeprefix("localhost")
            absolute, path = path.startswith("/"), path.removeprefix("/")
        segments = tuple(_segment(raw) for raw in path.split("/")) if path else ()
        return cls(scheme, _checked(segments), _parameters(query) if has_query else (), absolute)

    @classmethod
    def of(
        cls,
        scheme: str,
        segments: Iterable[str] = (),
        params: Iterable[tuple[str, str]] = (),
        *,
        absolute: bool = False,
    ) -> Ref:
        """From parts that are already decoded. The same checks as `parse`."""
        if not is_scheme(scheme) or (absolute and scheme.lower() != "file"):
            raise InvalidParams("Not a resource URI: expected scheme://path")
        parts = tuple(_normal(segment) for segment in segments)
        query = _checked_parameters((_normal(key), _normal(value)) for key, value in params)
        return cls(scheme.lower(), _checked(parts), query, absolute)

    @property
    def path(self) -> str:
        return "/".join(self.segments)

    @property
    def bare(self) -> Ref:
        """The same address without parameters: what policy and subscriptions look at."""
        return self if not self.params else self._replace(params=())

    @property
    def place(self) -> Ref:
        """Without the parameters that say how it is shown: only with that by which it lies in one of several roots."""
        root = self.param("root") if self.params else None
        return self.bare if root is None else self._replace(params=(("root", root),))

    @property
    def name(self) -> str:
        return self.segments[-1] if self.segments else ""

    def param(self, key: str) -> str | None:
        for name, value in self.params:
            if name == key:
                return value
        return None

    def child(self, *names: str) -> Ref:
        return Ref.of(self.scheme, (*self.segments, *names), absolute=self.absolute)

    def within(self, scope: Ref) -> bool:
        """Whether this address is the scope itself or stands below it. `file://` is above both spellings."""
        if self.scheme != scope.scheme or self.segments[: len(scope.segments)] != scope.segments:
            return False
        return self.absolute is scope.absolute or not (scope.absolute or scope.segments)

    def __str__(self) -> str:
        slash = "/" if self.absolute else ""
        first = _PATH_ESCAPES if self.scheme == "file" else _FIRST_ESCAPES
        path = "/".join(
            segment.translate(_PATH_ESCAPES if place else first) for place, segment in enumerate(self.segments)
        )
        text = f"{self.scheme}://{slash}{path}"
        if self.scheme == "file" and not self.absolute and path.startswith("localhost/"):
            # `file://localhost/x` is the absolute spelling of `/x`: a folder of that name needs an escape.
            text = f"file://%6Cocalhost{path.removeprefix('localhost')}"
        if not self.params:
            return text
        query = "&".join(f"{k.translate(_QUERY_ESCAPES)}={v.translate(_QUERY_ESCAPES)}" for k, v in self.params)
        return f"{text}?{query}"


def is_scheme(text: str) -> bool:
    """ASCII only, in any case: `str.lower` would turn the Kelvin sign into a `k`."""
    return text.isascii() and _SCHEME.match(text.lower()) is not None


def decode(raw: str) -> str:
    """Percent-decoding, exactly once; what does not decode to UTF-8 is refused, never repaired."""
    if "%" not in raw:
        return raw
    if _STRAY_PERCENT.search(raw):
        raise InvalidParams("A % in a URI must begin a percent-encoded byte; write % as %25")
    try:
        return _PERCENT.sub(lambda m: bytes.fromhex(m[0].replace("%", "")).decode("utf-8"), raw)
    except UnicodeDecodeError:
        raise InvalidParams("The percent-encoding of the URI is not UTF-8") from None


def spelled_otherwise(uri: str) -> tuple[str, ...]:
    """The names of an address as they are written, where one of them is not in the form that addresses have (NFC);
    nothing for all other addresses, and for what is none."""
    return () if "%" not in uri and unicodedata.is_normalized("NFC", uri) else _names_otherwise(uri)


@lru_cache(SPELLINGS)
def _names_otherwise(uri: str) -> tuple[str, ...]:
    path = uri.partition("://")[2].partition("?")[0]
    try:
        names = tuple(decode(raw) for raw in path.split("/") if raw)
    except InvalidParams:
        return ()
    return () if all(unicodedata.is_normalized("NFC", name) for name in names) else names


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _segment(raw: str) -> str:
    return _normal(decode(raw))


def _checked(segments: tuple[str, ...]) -> tuple[str, ...]:
    if ".." in segments:
        raise Forbidden("A path may not contain '..': write the address from the root of its source")
    total = 0
    for number, segment in enumerate(segments, 1):
        if segment in ("", "."):
            what_to_do = "leave it out" if segment else "put one slash between two names, and none at the beginning"
            if not segment and number == len(segments):
                what_to_do = "leave out the slash at the end"
            raise InvalidParams(f"A path may not contain an empty or '.' segment: {what_to_do}")
        if "/" in segment or "\\" in segment:
            raise InvalidParams("A path segment may not contain a slash or a backslash")
        if _UNSEEN.search(segment):
            raise InvalidParams("A path segment may not contain control or invisible characters: leave them out")
        try:
            size = len(segment.encode("utf-8"))
        except UnicodeEncodeError:
            raise InvalidParams("The URI is not valid Unicode") from None
        if size > MAX_SEGMENT_BYTES:
            raise InvalidParams(f"A path segment is longer than {MAX_SEGMENT_BYTES} bytes")
        total += size + 1
    if total > MAX_PATH_BYTES + 1:
        raise InvalidParams(f"The path is longer than {MAX_PATH_BYTES} bytes")
    return segments


def _parameters(query: str) -> tuple[tuple[str, str], ...]:
    params: list[tuple[str, str]] = []
    for part in query.split("&"):
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise InvalidParams("A query is written ?name=value&name=value")
        params.append((_segment(key), _segment(value)))
    return _checked_parameters(params)


def _checked_parameters(params: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    total = 0
    for key, value in params:
        if not key:
            raise InvalidParams("A query is written ?name=value&name=value")
        if key in found:
            raise InvalidParams(f"The query parameter {key!r} is given twice")
        if _UNSEEN.search(key) or "\x00" in value:
            raise InvalidParams("A query may not contain control or invisible characters: leave them out")
        try:
            total += len(key.encode("utf-8")) + len(value.encode("utf-8")) + 2
        except UnicodeEncodeError:
            raise InvalidParams("The URI is not valid Unicode") from None
        if total > MAX_QUERY_BYTES:
            raise InvalidParams(f"The query is longer than {MAX_QUERY_BYTES} bytes")
        found[key] = value
    return tuple(sorted(found.items()))
