"""How long a catalog of many files takes: `python -m tests.sources.catalog.speed [--files 10000]`."""

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from octavo.core.ref import Ref
from octavo.core.values import Change
from octavo.sources.catalog import DECLARATIONS, CatalogSource
from octavo.sources.file import FileRoot, FileSource

T = TypeVar("T")
TEXT = (
    '---\nschema_version: "1.0"\nid: sop-{0}\ntitle: 절차 {0}\nversion: 1.0.0\nstatus: active\nfunction: func-f{1}\n'
    "agent: agent-{1}\ntags: [a{1}, campaign, 한글]\n---\n# 절차\n\n"
    + "본문 문장이 있다. A sentence of the text.\n"
    * 20
)


async def timed(what: str, work: Awaitable[T]) -> T:
    begun = time.perf_counter()
    result = await work
    print(f"{what:<44}{(time.perf_counter() - begun) * 1e3:>10.1f} ms")
    return result


async def listed(source: CatalogSource, uri: str) -> int:
    return len((await source.list(Ref.parse(uri), cursor=None, limit=100)).items)


async def measure(files: int, folder: Path) -> None:
    for number in range(files):
        place = folder / "sops" / f"f{number % 50}" / f"{number}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(TEXT.format(number, number % 50), encoding="utf-8")
    async with FileSource([FileRoot(folder)], secret=b"secret") as store:
        source = CatalogSource(DECLARATIONS["sop"], store)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await timed(f"first page, {files:,} files read", listed(source, "sop://"))
        print(f"{'memory for it':<44}{(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:>10.1f} MB")
        await timed("a page, nobody watches", listed(source, "sop://"))
        heard: asyncio.Queue[Change] = asyncio.Queue()

        async def watch() -> None:
            async for change in source.watch(Ref("sop")):
                heard.put_nowait(change)

        task = asyncio.create_task(watch())
        await asyncio.sleep(0)
        await timed("beginning to watch", source.armed())
        await timed("a page, first time since then", listed(source, "sop://"))
        await timed("a page", listed(source, "sop://"))
        await timed("a page in the middle", listed(source, "sop://f25"))
        await timed("a filtered page", listed(source, "sop://?tags=a49"))
        await timed("an entry", source.stat(Ref.parse("sop://f0/0")))
        (folder / "sops/f1/1.md").write_text(TEXT.format("1", 1).replace("1.0.0", "1.1.0"), encoding="utf-8")
        await timed("a change is told", heard.get())
        await timed("a page after a change", listed(source, "sop://"))
        await timed("problems of all", source.problems())
        task.cancel()
        await asyncio.wait([task])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(asked.files, Path(folder)))


if __name__ == "__main__":
    main()
