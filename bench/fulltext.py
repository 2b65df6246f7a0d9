"""The search index at scale: how fast it is built, asked and kept in step, and what it takes.

    python bench/fulltext.py                        100,000 documents
    python bench/fulltext.py --documents 10000      a short look

Documents are Korean or English, of 20 to 400 words. A third of them is hidden from who asks. Everything is made in a
temporary folder and removed at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from corpus import ENGLISH, KOREAN

from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry
from octavo.search import Document, FullText, Index, Upkeep

BATCH = 200
ENDINGS = ["", "을", "이", "은", "의", "에서", "로", "과"]
QUESTIONS = {
    "a rare word": "특이점{n}",
    "a common word": "예산",
    "two common words": "브랜드 캠페인",
    "a rare and two common words": "특이점{n} 예산 승인",
    "English, three words": "budget policy review",
    "a question": "브랜드 예산은 누가 승인하나요",
    "misspelt": "캠패인 budgat",
    "a phrase": '"브랜드 캠페인"',
    "not there": "존재하지않는말",
}


def documents(count: int) -> Iterator[Document]:
    chance = random.Random(5)
    made = ["".join(chance.choices("bcdfgklmnprstv", k=2)) + chance.choice(ENGLISH) for _ in range(20_000)]
    for number in range(count):
        words = chance.choice((ENGLISH, KOREAN))
        picked = chance.choices(words, k=min(400, int(20 * chance.paretovariate(1.1))))
        if words is KOREAN:
            picked = [word + chance.choice(ENDINGS) for word in picked]
        picked += chance.choices(made, k=3)
        if number % 1000 == 7:
            picked.append(f"특이점{number // 1000}")
        chance.shuffle(picked)
        lines = [" ".join(picked[begin : begin + 12]) for begin in range(0, len(picked), 12)]
        function = chance.choice(("brand", "finance", "hr", "ops", "product"))
        yield Document(
            ref=Ref(chance.choice(("sop", "doc", "file")), (function, f"page-{number}")),
            version="1",
            title=" ".join(chance.choices(words, k=3)),
            text="\n".join(lines),
            metadata={"function": function, "status": chance.choice(("active", "draft")), "tags": picked[:2]},
        )


def allowed(ref: Ref) -> bool:
    return ref.segments[0] not in ("hr", "finance") or ref.name.endswith(("1", "2", "3"))


def memory() -> float:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE") / 1e6


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begun)


def build(index: Index, count: int) -> None:
    batch: list[Document] = []
    spent = size = 0.0
    for document in documents(count):
        batch.append(document)
        size += len(document.text.encode())
        if len(batch) == BATCH:
            spent += timed(lambda: index.put(batch)) / 1000
            batch = []
    if batch:
        spent += timed(lambda: index.put(batch)) / 1000
    print(f"built: {count / spent:,.0f} documents/s, {size / 1e6 / spent:.1f} MB/s ({size / 1e6:.0f} MB of text)")


def ask(search: FullText, runs: int) -> None:
    def find(text: str, viewer: str = "bench") -> float:
        return timed(lambda: search.find_now(TextQuery(text), allowed, viewer, None, 10))

    print(f"first question of a viewer: {find('예산'):.0f} ms; of another: {find('예산', 'other'):.0f} ms")
    every: list[float] = []
    for name, text in QUESTIONS.items():
        times = sorted(find(text.format(n=number % 100)) for number in range(runs))
        every += times
        print(f"  {name:<30}p50 {times[len(times) // 2]:>7.1f} ms   p99 {times[int(len(times) * 0.99)]:>7.1f} ms")
    every.sort()
    print(f"  {'all':<30}p50 {every[len(every) // 2]:>7.1f} ms   p99 {every[int(len(every) * 0.99)]:>7.1f} ms")


async def change(index: Index, search: FullText, count: int) -> None:
    """From a change that is told to its visibility, with the usual pause of the upkeep."""
    texts: dict[Ref, str] = {}

    async def entries(scheme: str) -> AsyncIterator[Entry]:
        for ref, version in index.versions(scheme).items():
            yield Entry(ref=ref, name=ref.name, version=version)

    async def read(ref: Ref, _: Entry | None) -> Document:
        return Document(ref=ref, version="2", title="바뀐 문서", text=texts[ref])

    upkeep = Upkeep(index, ["doc", "file", "sop"], entries=entries, read=read)
    begun = time.perf_counter()
    task = asyncio.create_task(upkeep.run())
    await upkeep.in_step()
    print(f"restart, nothing changed: {1000 * (time.perf_counter() - begun):.0f} ms to compare {count:,} versions")
    times: list[float] = []
    for number, ref in enumerate(list(index.versions("sop"))[:50]):
        texts[ref] = f"새말{number}번째 문서"
        begun = time.perf_counter()
        upkeep.hear(Change(kind="updated", ref=ref, at=0.0))
        await upkeep.in_step()
        found = await search.find(TextQuery(f"새말{number}번째"), allowed=lambda _: True, viewer="upkeep")
        times.append(1000 * (time.perf_counter() - begun))
        assert found.items[0].ref == ref
    task.cancel()
    times.sort()
    print(f"from a change to its finding: p50 {times[25]:.0f} ms, the longest {times[-1]:.0f} ms (50 ms are a pause)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=50, help="of each question")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="octavo-fulltext-") as folder:
        path = Path(folder) / "search.db"
        before = memory()
        index = Index(path)
        build(index, options.documents)
        search = FullText(index)
        ask(search, options.runs)
        index.close()
        index = Index(path)
        asyncio.run(change(index, FullText(index), options.documents))
        print(f"memory: {memory() - before:.0f} MB over {before:.0f} MB; disk: {path.stat().st_size / 1e6:.0f} MB")
        index.close()


if __name__ == "__main__":
    main()
