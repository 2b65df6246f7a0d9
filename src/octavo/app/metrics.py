"""The figures of a running server, for `/metrics`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from octavo.app.composition import Composed
from octavo.core.clock import SystemClock
from octavo.core.metrics import Measure, Sample, number
from octavo.core.version import VERSION
from octavo.stores.audit.tally import Tally


def measures(composition: Composed, tally: Tally | None, begun: float) -> Iterator[Measure]:
    yield Measure("octavo_build_info", "gauge", "The version.", (Sample(1, (("version", VERSION),)),))
    yield number("octavo_uptime_seconds", "Since the start.", SystemClock.monotonic() - begun)
    if tally is not None:
        yield from tally.measures()
    yield number("octavo_in_flight", "Requests that are being worked on.", composition.quota.in_flight)
    yield number("octavo_cache_bytes", "Memory that the cache uses.", composition.cache.used)
    closed = composition.throttle.open_sources()
    samples = tuple(Sample(source.scheme not in closed, (("scheme", source.scheme),)) for source in composition.sources)
    yield Measure("octavo_source_up", "gauge", "1 unless a source does not answer.", samples)
    yield from _process()


def _process() -> Iterator[Measure]:
    if sys.platform == "win32":
        return
    import resource  # not on every system

    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = Sample(usage.ru_utime + usage.ru_stime)
    yield Measure("process_cpu_seconds_total", "counter", "Processor time.", (cpu,))
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    yield number("octavo_peak_memory_bytes", "Most memory that the process had at once.", peak)
