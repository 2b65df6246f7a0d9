"""Finds what rules describe and puts marks in its place, on RE2: linear in the text, whatever the pattern.

A text is looked at twice. First one pass for the clues of all rules, which RE2 runs as one automaton; then
only the rules that had one. Most texts end with the first pass.

Everything works on UTF-8: RE2 does, and offsets into bytes need no translation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import re2 as _untyped_re2  # type: ignore[import-untyped]  # it has no annotations

from octavo.core.errors import InvalidParams

re2 = cast("Any", _untyped_re2)

# A mark is a new neighbour, beside which something may begin to match: the text is looked at again until
# nothing does. Two passes are usual; the bound is for texts that were made to need many.
MAX_PASSES = 16
MEMORY = 32 << 20  # for the automaton of one pattern; RE2 becomes slower, not wrong, where it is not enough

_MARK_START = b"[redacted:"
_NAME = r"[a-z0-9][a-z0-9-]{0,40}"


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` is RE2. Its first group that took part, or else the whole match, is what is replaced.

    One of the `keywords` (lower case) or something that `clue` (RE2) describes stands in every match; a
    rule without either runs on every text. `accept` takes the second look that a pattern cannot.
    """

    name: str
    pattern: str
    keywords: tuple[str, ...] = ()
    clue: str = ""
    accept: Callable[[str], bool] | None = None


class Engine:
    """A compiled rule set. Safe to use from several threads; RE2 works without the interpreter lock.

    Promises of `redact`: no rule matches its result, apart from matches that overlap a mark, so doing it
    twice is doing it once; and equal secrets have equal marks under one key.

    Raises InvalidParams for a pattern that RE2 does not take and for a name that cannot stand in a mark.
    """

    def __init__(self, rules: Sequence[Rule], key: bytes, *, allow: Iterable[str] = ()) -> None:
        allow = tuple(allow)
        self._key = key
        self._rules = [(rule, _compiled(rule.name, rule.pattern)) for rule in rules]
        self._allow = [_compiled("allow", pattern) for pattern in allow]
        self._marks = _compiled("mark", rf"\[redacted:{_NAME}:[0-9a-f]{{8}}\]")
        self._clues = re2.Set.SearchSet(_options())
        self._owners: list[int] = []  # place of a clue in the set → place of its rule
        self._always: list[int] = []
        name = _compiled("name", _NAME)
        for index, rule in enumerate(rules):
            if not name.fullmatch(rule.name):
                raise InvalidParams(f"Redaction rule {rule.name!r}: a name has lower-case letters, digits and hyphens")
            clues = [f"(?i:{re2.escape(keyword)})" for keyword in rule.keywords] + ([rule.clue] if rule.clue else [])
            for clue in clues:
                self._clues.Add(clue)
                self._owners.append(index)
            if not clues:
                self._always.append(index)
        if self._owners:
            self._clues.Compile()
        facts = [(rule.name, rule.pattern, rule.keywords, rule.clue) for rule in rules]
        self.version = hashlib.blake2b(repr((1, facts, allow)).encode(), digest_size=8).hexdigest()

    def suspects(self, text: str) -> bool:
        """False only when `redact` would change nothing. Costs one pass."""
        return bool(self._always or self._due(_bytes(text)))

    def redact(self, text: str) -> str:
        """The same object where there is nothing to hide."""
        first = raw = _bytes(text)
        for _ in range(MAX_PASSES):
            spans = self._find(raw)
            if not spans:
                break
            raw = self._replaced(raw, spans)
        return text if raw is first else raw.decode("utf-8", "surrogatepass")

    def redact_part(self, before: str, part: str, after: str) -> str:
        """A part of a longer text: what is to be hidden is found in the whole, and a mark that reaches over a
        border belongs to the part."""
        raw = _bytes(before) + _bytes(part) + _bytes(after)
        left = len(_bytes(before))
        right = left + len(_bytes(part))
        for _ in range(MAX_PASSES):
            spans = self._find(raw)
            if not spans:
                break
            marked = [(start, end, self._mark(self._rules[k][0].name, raw[start:end])) for start, end, k in spans]
            left, right = _moved(left, marked, behind=False), _moved(right, marked, behind=True)
            raw = self._replaced(raw, spans)
        return raw[left:right].decode("utf-8", "surrogatepass")

    def mark(self, rule: str, secret: str) -> str:
        return self._mark(rule, _bytes(secret)).decode("ascii")

    def _mark(self, rule: str, secret: bytes) -> bytes:
        digest = hashlib.blake2b(secret, key=self._key, digest_size=4).hexdigest()
        return f"[redacted:{rule}:{digest}]".encode("ascii")

    def _due(self, raw: bytes) -> list[int]:
        """Rules that have a clue in the text, in their order."""
        found: list[int] | None = self._clues.Match(raw) if self._owners else None
        if not found:
            return []
        return sorted({self._owners[clue] for clue in found})

    def _find(self, raw: bytes) -> list[tuple[int, int, int]]:
        """(start, end, rule) of what is to go: in order, apart from each other, and outside every mark."""
        due = sorted([*self._due(raw), *self._always]) if self._always else self._due(raw)
        found: list[tuple[int, int, int]] = []
        for index in due:
            rule, pattern = self._rules[index]
            for match in pattern.finditer(raw):
                start, end = _extent(match)
                if start < end and self._stays_hidden(rule, raw[start:end]):
                    found.append((start, end, index))
        if not found:
            return found
        found.sort()
        merged = [found[0]]
        for start, end, index in found[1:]:
            before = merged[-1]
            if start < before[1]:  # what two rules claim in part goes as a whole
                merged[-1] = (before[0], max(end, before[1]), min(index, before[2]))
            else:
                merged.append((start, end, index))
        if _MARK_START not in raw:
            return merged
        marks = [match.span() for match in self._marks.finditer(raw)]
        return [span for span in merged if not any(span[0] < end and start < span[1] for start, end in marks)]

    def _stays_hidden(self, rule: Rule, secret: bytes) -> bool:
        if rule.accept is not None and not rule.accept(secret.decode("utf-8", "replace")):
            return False
        return not any(allowed.fullmatch(secret) for allowed in self._allow)

    def _replaced(self, raw: bytes, spans: Sequence[tuple[int, int, int]]) -> bytes:
        pieces: list[bytes] = []
        at = 0
        for start, end, index in spans:
            pieces += (raw[at:start], self._mark(self._rules[index][0].name, raw[start:end]))
            at = end
        pieces.append(raw[at:])
        return b"".join(pieces)


def _moved(border: int, marked: Sequence[tuple[int, int, bytes]], *, behind: bool) -> int:
    """Where a border is once the spans are replaced; one inside a span is before its mark, or behind it."""
    grown = 0
    for start, end, mark in marked:
        if start < border < end:
            return start + grown + (len(mark) if behind else 0)
        if end <= border:
            grown += len(mark) - (end - start)
    return border + grown


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _extent(match: Any) -> tuple[int, int]:
    for group in range(1, match.re.groups + 1):
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


def _compiled(name: str, pattern: str) -> Any:
    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        reason = error.args[0]
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise InvalidParams(f"Redaction rule {name!r}: {reason}") from None
