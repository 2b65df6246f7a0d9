"""Finds what rules describe and puts marks in its place, on RE2: linear in the text, whatever the pattern.

A text is looked at twice. First one pass for the clues of all rules, which RE2 runs as one automaton; then
only the rules that had one. Most texts end with the first pass. A rule is compiled when it first has a clue.

Everything works on UTF-8: RE2 does, and offsets into bytes need no translation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import re2 as _untyped_re2  # type: ignore[import-untyped]  # it has no annotations

from octavo.core import marks
from octavo.core.errors import InvalidParams
from octavo.core.sizes import MIB
from octavo.pipeline.redact.rules.rule import PatternRule
from octavo.pipeline.redact.spans import HiddenSpan

re2 = cast("Any", _untyped_re2)

# A mark is a new neighbour, beside which something may begin to match: the text is looked at again until
# nothing does. Two passes are usual; the bound is for texts that were made to need many.
MAX_PASSES = 16
MEMORY = 32 * MIB  # for the automaton of one pattern; RE2 becomes slower, not wrong, where it is not enough

_MARK_START = marks.START.encode("ascii")


class RuleMatch(NamedTuple):
    """Bytes `start` to `end` of a text are what a rule describes."""

    start: int
    end: int
    rule: str


class Patch(NamedTuple):
    """Bytes `start` to `end` become `new`."""

    start: int
    end: int
    new: bytes


# What else must change for a text to keep its form, given what becomes of the found: see `shapes`.
Shape = Callable[[bytes, Sequence[Patch]], Sequence[Patch]]


class RuleEngine:
    """A set of rules. Safe to use from several threads; RE2 works without the interpreter lock.

    Promises of `redact`: no rule matches its result, apart from matches that overlap a mark, so doing it
    twice is doing it once; and equal secrets have equal marks under one key.

    Raises InvalidParams for an `allow` pattern that RE2 does not take and for a name that cannot stand in a mark.
    """

    def __init__(
        self,
        rules: Sequence[PatternRule],
        key: bytes,
        *,
        allow: Iterable[str] = (),
    ) -> None:
        self._key = key
        self._rules = tuple(rules)
        self._patterns: list[Any] = [None] * len(self._rules)
        self._allow = [compiled("allow", pattern) for pattern in allow]
        self._marks = compiled("mark", marks.MARK)
        self._due = _Clues(self._rules)
        name = compiled("name", marks.NAME)
        for rule in self._rules:
            if not name.fullmatch(rule.name):
                raise InvalidParams(f"Redaction rule {rule.name!r}: a name has lower-case letters, digits and hyphens")

    def suspects(self, text: str) -> bool:
        """False only when `redact` would change nothing. Costs one pass."""
        return bool(self._due(_bytes(text)))

    def redact(self, text: str, shape: Shape | None = None) -> str:
        """The same object where there is nothing to hide."""
        first = raw = _bytes(text)
        for _ in range(MAX_PASSES):
            patches = self._patches(raw)
            if not patches:
                break
            raw = _patched(raw, patches if shape is None else shape(raw, patches))
        return text if raw is first else raw.decode("utf-8", "surrogatepass")

    def spans(self, text: str) -> list[HiddenSpan]:
        """All that `redact` would replace, in order and apart from each other."""
        raw = _bytes(text)
        hidden: list[Patch] = []  # in bytes of the text as it was
        for _ in range(MAX_PASSES):
            patches = self._patches(raw)
            if not patches:
                break
            before = [(_before(start, hidden), _before(end, hidden), new) for start, end, new in patches]
            hidden = sorted([*hidden, *(Patch(*one) for one in before)])
            raw = _patched(raw, patches)
        return _in_characters(text, hidden)

    def put(self, text: str, spans: Sequence[HiddenSpan], shape: Shape | None = None) -> str:
        """The text with marks in the place of these spans; the same object where there are none."""
        if not spans:
            return text
        raw, patches = _bytes(text), list[Patch]()
        at = size = 0
        for start, end, mark in spans:
            first = size + len(_bytes(text[at:start]))
            size, at = first + len(_bytes(text[start:end])), end
            patches.append(Patch(first, size, mark.encode("ascii")))
        return _patched(raw, patches if shape is None else shape(raw, patches)).decode("utf-8", "surrogatepass")

    def mark(self, rule: str, secret: str) -> str:
        return self._mark(rule, _bytes(secret)).decode("ascii")

    def _mark(self, rule: str, secret: bytes) -> bytes:
        digest = hashlib.blake2b(secret, key=self._key, digest_size=marks.DIGITS // 2).hexdigest()
        return marks.mark(rule, digest).encode("ascii")

    def _patches(self, raw: bytes) -> list[Patch]:
        return [Patch(start, end, self._mark(rule, raw[start:end])) for start, end, rule in self._find(raw)]

    def _find(self, raw: bytes) -> list[RuleMatch]:
        """What is to go: in order, apart from each other, and outside every mark."""
        claims: list[tuple[int, int, int]] = []
        for index in self._due(raw):
            rule, pattern = self._rules[index], self._pattern(index)
            groups = range(1, pattern.groups + 1)
            for match in pattern.finditer(raw):
                start, end = _extent(match, groups)
                if rule.values is not None:
                    places = rule.values(raw, start)
                    claims += [(left, right, index) for left, right in places if self._is_not_allowed(raw[left:right])]
                    continue
                if rule.ends is not None and start < end:
                    end = rule.ends(raw, start)
                if start < end and self._stays_hidden(rule, raw[start:end]):
                    claims.append((start, end, index))
        if not claims:
            return []
        claims.sort()
        merged = [claims[0]]
        for start, end, index in claims[1:]:
            before = merged[-1]
            if start < before[1]:  # what two rules claim in part goes as a whole
                merged[-1] = (before[0], max(end, before[1]), min(index, before[2]))
            else:
                merged.append((start, end, index))
        found = [RuleMatch(start, end, self._rules[index].name) for start, end, index in merged]
        if _MARK_START not in raw:
            return found
        marks = [match.span() for match in self._marks.finditer(raw)]
        return [one for one in found if not any(one.start < end and start < one.end for start, end in marks)]

    def _pattern(self, index: int) -> Any:
        pattern = self._patterns[index]
        if pattern is None:
            rule = self._rules[index]
            pattern = self._patterns[index] = compiled(rule.name, rule.pattern)
        return pattern

    def _stays_hidden(self, rule: PatternRule, secret: bytes) -> bool:
        if rule.accept is not None and not rule.accept(secret.decode("utf-8", "replace")):
            return False
        return self._is_not_allowed(secret)

    def _is_not_allowed(self, secret: bytes) -> bool:
        return not any(allowed.fullmatch(secret) for allowed in self._allow)


class _Clues:
    """Which rules have a clue in a text, in their order. One automaton for all of them."""

    def __init__(self, rules: Sequence[PatternRule]) -> None:
        self._set = re2.Set.SearchSet(_options())
        self._always: list[int] = []
        places: dict[str, list[int]] = {}
        for index, rule in enumerate(rules):
            clues = [f"(?i:{re2.escape(keyword)})" for keyword in rule.keywords] + ([rule.clue] if rule.clue else [])
            for clue in clues:
                places.setdefault(clue, []).append(index)
            if not clues:
                self._always.append(index)
        self._rules_of = [*places.values()]
        for clue in places:
            self._set.Add(clue)
        if places:
            self._set.Compile()

    def __call__(self, raw: bytes) -> list[int]:
        found: list[int] | None = self._set.Match(raw) if self._rules_of else None
        if not found:
            return self._always
        return sorted({rule for clue in found for rule in self._rules_of[clue]}.union(self._always))


def _patched(raw: bytes, patches: Sequence[Patch]) -> bytes:
    pieces: list[bytes] = []
    at = 0
    for start, end, new in patches:
        pieces += (raw[at:start], new)
        at = end
    pieces.append(raw[at:])
    return b"".join(pieces)


def _before(place: int, patches: Sequence[Patch]) -> int:
    """Where a place outside of every mark was before the spans were replaced."""
    for start, end, new in patches:
        if start + len(new) > place:
            break
        place += end - start - len(new)
    return place


def _in_characters(text: str, patches: Sequence[Patch]) -> list[HiddenSpan]:
    if text.isascii():
        return [HiddenSpan(start, end, new.decode("ascii")) for start, end, new in patches]
    raw, spans = _bytes(text), list[HiddenSpan]()
    at = count = 0
    for start, end, new in patches:
        first = count + len(raw[at:start].decode("utf-8", "surrogatepass"))
        count = first + len(raw[start:end].decode("utf-8", "surrogatepass"))
        at = end
        spans.append(HiddenSpan(first, count, new.decode("ascii")))
    return spans


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _extent(match: Any, groups: range) -> tuple[int, int]:
    for group in groups:
        span: tuple[int, int] = match.span(group)
        if span[0] >= 0:
            return span
    whole: tuple[int, int] = match.span()
    return whole


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY
    return options


def compiled(name: str, pattern: str) -> Any:
    """Raises InvalidParams with the name for what RE2 does not take."""
    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        reason = error.args[0]
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise InvalidParams(f"Redaction rule {name!r}: {reason}") from None
