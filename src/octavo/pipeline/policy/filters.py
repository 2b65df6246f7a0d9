"""Filters of a listing: `{mimeType, name, <key>: value or list of values}`; `*` in the first two.

A source that has a key as a parameter of its listings judges it itself, since it knows more than that texts are equal:
`func-brand` is `brand` there. Every other key is one of the metadata.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import quote

from octavo.core.errors import InvalidParams
from octavo.core.glob import Glob
from octavo.core.near_names import nearest, unknown_filter
from octavo.core.ref import Ref
from octavo.core.values import Entry

Test: TypeAlias = Callable[[Entry], bool]
_TEXTS: Final = ("mimeType", "name")
MOST_KEYS: Final = 50  # each is held against every entry


class MetadataKeys:
    """The keys of the metadata of all that was held against a filter."""

    def __init__(self) -> None:
        self.told: set[str] = set()
        self.looked = False

    def noting(self, wanted: Test) -> Test:
        def test(entry: Entry) -> bool:
            self.looked = True
            self.told.update(entry.metadata)
            return wanted(entry)

        return test

    def refuse_unknown(self, asked: Mapping[str, Any], known: Collection[str]) -> None:
        """After a listing in which nothing fitted. Raises InvalidParams for a key that nothing there has, of which
        the caller may see anything; where there was nothing to look at, for one that is a known one mistyped."""
        words = {*_TEXTS, "under", *known, *self.told}
        for key in asked:
            if key not in words and (self.looked or nearest(key, words)):
                raise unknown_filter(key[:80], words)


class Narrowed(NamedTuple):
    """What to ask of a source, and what is left to look for in its answer."""

    scope: Ref
    wanted: Test | None


def narrowed(asked: Mapping[str, Any] | None, scope: Ref, known: Collection[str]) -> Narrowed:
    """`known` are the parameters of the source. Raises InvalidParams for a filter that makes no sense."""
    if not asked:
        return Narrowed(scope, None)
    if len(asked) > MOST_KEYS:
        raise InvalidParams(f"A filter has {MOST_KEYS} keys at most: ask by fewer", reason="unknown_filter")
    tests = [
        (_text if key in _TEXTS else _metadata)(key, value)
        for key, value in asked.items()
        if key in _TEXTS or key not in known
    ]
    theirs = [(key, ",".join(_words(value))) for key, value in asked.items() if key in known and key not in _TEXTS]
    if theirs:
        scope = Ref.of(scope.scheme, scope.segments, (*scope.params, *theirs), absolute=scope.absolute)
    return Narrowed(scope, (lambda entry: all(test(entry) for test in tests)) if tests else None)


def _text(key: str, value: Any) -> Test:
    if not isinstance(value, str) or not value:
        raise InvalidParams(f"The filter {key!r} must be text, with * for any characters")
    # As one segment of a pattern, in which only the stars mean something.
    try:
        glob = Glob("x://" + quote(_segment(value), safe="*", errors="surrogatepass") if value.strip("*") else "**")
    except InvalidParams:
        message = f"The filter {key!r} cannot be {value[:40]!r}: it is one name, with * for any characters"
        raise InvalidParams(message) from None

    def matches(entry: Entry) -> bool:
        return glob.matches(Ref("x", (_segment(entry.mime_type if key == "mimeType" else entry.name),)))

    return matches


def _segment(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace("/", "\x01")


def _metadata(key: str, value: Any) -> Test:
    accepted = frozenset(_words(value))
    return lambda entry: not accepted.isdisjoint(_words(entry.metadata.get(key)))


def _words(value: Any) -> list[str]:
    """One or many, as JSON and YAML write them: a filter may come as text."""
    if value is None:
        return []
    values = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in values]
