"""Counts what the audit log records, for `/metrics`.

Every request has exactly one record, so nothing has to be counted where requests are answered. Records are read in
batches, or when somebody asks for the numbers. What a client can choose freely never becomes a label: unknown
operations, schemes and tools are all "other".
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

import msgspec

from octavo.core import errors
from octavo.core.approval import Step
from octavo.core.metrics import Measure, Sample
from octavo.core.values import Op

BATCH = 512  # records that may wait to be counted
BOUNDS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)  # seconds
OTHER = "other"
# What is recorded beside calls of the pipeline.
FURTHER = (
    "ping", "initialize", "server/discover", "server/config", "roots/list", "logging/setLevel", "subscriptions/listen",
    "resources/subscribe", "resources/unsubscribe", "malformed", "request", "http", "GET", "DELETE", "admin",
)  # fmt: skip
_OPS = frozenset((*get_args(Op), *FURTHER))
_OUTCOMES = frozenset(("ok", "crash", "cancelled", "disconnected", "end", "ended", *(e.reason for e in errors.ALL)))
_STEPS = frozenset(get_args(Step))
_STATUS = re.compile(r"status \d{3}\Z")


class _Record(msgspec.Struct):
    op: str
    outcome: str
    uri: str = ""
    parent: str = ""
    cache: str = ""
    size: int = 0
    us: int | None = None


class _Durations:
    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts, self.sum = [0] * (len(BOUNDS) + 1), 0.0


class Tally:
    def __init__(self) -> None:
        self.known = frozenset[str]()  # schemes, and tools as tool://name
        self._fresh: list[bytes] = []
        self._decode = msgspec.json.Decoder(_Record).decode
        self._requests: Counter[tuple[str, ...]] = Counter()
        self._children: Counter[tuple[str, ...]] = Counter()
        self._tools: Counter[tuple[str, ...]] = Counter()
        self._approvals: Counter[str] = Counter()
        self._cache: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._durations: dict[str, _Durations] = {}

    def add(self, record: bytes) -> None:
        self._fresh.append(record)
        if len(self._fresh) >= BATCH:
            self._count()

    def measures(self) -> Iterator[Measure]:
        self._count()
        names = ("op", "scheme", "outcome")
        yield _counter("octavo_requests_total", "Requests of clients.", names, self._requests)
        yield _counter("octavo_child_calls_total", "What tools and prompts asked for.", names, self._children)
        yield _counter("octavo_tool_calls_total", "Calls of tools.", ("tool", "outcome"), self._tools)
        approvals = _tupled(self._approvals)
        yield _counter("octavo_approvals_total", "Steps of approvals by humans.", ("step",), approvals)
        yield _counter("octavo_cache_total", "Reads by what the cache knew.", ("result",), _tupled(self._cache))
        yield _counter("octavo_content_bytes_total", "Content given out.", ("scheme",), _tupled(self._bytes))
        samples = tuple(sample for op in sorted(self._durations) for sample in _histogram(op, self._durations[op]))
        yield Measure("octavo_request_seconds", "histogram", "How long requests took.", samples)

    def _count(self) -> None:
        fresh, self._fresh = self._fresh, []
        for record in map(self._decode, fresh):
            if record.outcome == "intent":  # its outcome is counted
                continue
            if record.op == "approval":  # beside the record of the request that it belongs to
                self._approvals[record.outcome if record.outcome in _STEPS else OTHER] += 1
                continue
            op = _op(record.op)
            scheme, _, name = record.uri.partition("://")
            scheme = (scheme if scheme in self.known or scheme == "*" else OTHER) if record.uri else ""
            outcome = _outcome(record.outcome)
            (self._children if record.parent else self._requests)[op, scheme, outcome] += 1
            if op == "invoke":
                self._tools[name if record.uri in self.known else OTHER, outcome] += 1
            if record.cache:
                self._cache[record.cache] += 1
            if record.size and not record.parent:
                self._bytes[scheme] += record.size
            if record.us is not None and not record.parent:
                self._took(op, record.us / 1e6)

    def _took(self, op: str, seconds: float) -> None:
        durations = self._durations.get(op)
        if durations is None:
            durations = self._durations[op] = _Durations()
        durations.counts[bisect_left(BOUNDS, seconds)] += 1
        durations.sum += seconds


def _op(text: str) -> str:
    return text if text in _OPS else word if (word := text.partition(" ")[0]) in _OPS else OTHER


def _outcome(text: str) -> str:
    return text if text in _OUTCOMES or _STATUS.match(text) else "error"


def _tupled(counts: Counter[str]) -> Counter[tuple[str, ...]]:
    return Counter({(name,): count for name, count in counts.items()})


def _counter(name: str, about: str, labels: Iterable[str], counts: Counter[tuple[str, ...]]) -> Measure:
    samples = tuple(Sample(count, tuple(zip(labels, values, strict=True))) for values, count in sorted(counts.items()))
    return Measure(name, "counter", about, samples)


def _histogram(op: str, durations: _Durations) -> Iterator[Sample]:
    total = 0
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), durations.counts, strict=True):
        total += count
        yield Sample(total, (("op", op), ("le", bound)), "_bucket")
    yield Sample(durations.sum, (("op", op),), "_sum")
    yield Sample(total, (("op", op),), "_count")
