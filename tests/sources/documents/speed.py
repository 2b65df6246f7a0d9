"""How long small documents take: the first, which starts a process, and those after it.

    python -m tests.sources.documents.speed

Prints one line of JSON, in milliseconds; `again` is the median of fifty.
"""

import asyncio
import json
import statistics
import time

from tests.sources.documents.samples import SAMPLES

from octavo.sources._shared.documents.converter import Converter


async def run() -> dict[str, dict[str, float]]:
    figures: dict[str, dict[str, float]] = {}
    for name, sample in SAMPLES.items():
        if not sample.readable:
            continue
        async with Converter() as converter:
            took: list[float] = []
            for _ in range(51):
                begun = time.perf_counter()
                await converter.convert(sample.raw, sample.mime)
                took.append((time.perf_counter() - begun) * 1e3)
        figures[name] = {"first": round(took[0], 1), "again": round(statistics.median(took[1:]), 2)}
    return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run())))
