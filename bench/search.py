"""Search over a large tree, beside ripgrep where it is installed.

    python bench/search.py                      200,000 files
    python bench/search.py --files 20000        a short look
    python bench/search.py --files 1000000      on demand; needs 4 GB of disk
    python bench/search.py --official           also search_files of the official server

Everything is made in a temporary folder and removed at the end. Times are the best of a few runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from octavo.core.ref import Ref
from octavo.sources.file import FileRoot, FileSource
from octavo.sources.file.search import ContentQuery, NameQuery

FILES_A_FOLDER = 50
RARE = "quetzalcoatl"
KOREAN = "분기예산안"
SCOPE = Ref("file")


def words(chance: random.Random) -> list[str]:
    letters = "eeeettaaooiinnsshhrrdlucmwfgypbvk"
    made = ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(4000)]
    return [*made, "예산", "검색", "회의록", "보고서", "마케팅", "고객", "계약", "문서"]


def folders(count: int, vocabulary: list[str]) -> Iterator[str]:
    for number in range(count):
        top, middle = divmod(number // 40, 40)
        yield f"{vocabulary[top]}-{top}/{vocabulary[40 + middle]}-{middle}/{vocabulary[number % 4000]}-{number % 40}"


def build(root: Path, files: int) -> int:
    chance = random.Random(7)
    vocabulary = words(chance)
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    text = chance.choices(vocabulary, weights, k=400_000)
    written = 0
    for folder in folders(-(-files // FILES_A_FOLDER), vocabulary):
        place = root / folder
        place.mkdir(parents=True)
        for _ in range(min(FILES_A_FOLDER, files - written)):
            begin = chance.randrange(len(text) - 5000)
            length = min(4000, int(60 * chance.paretovariate(1.2)))
            part = text[begin : begin + length]
            body = "\n".join(" ".join(part[k : k + 11]) for k in range(0, length, 11))
            if written % 20_000 == 777:
                body += f"\n{RARE} {KOREAN}\n"
            ending = ("md", "py", "ts", "json", "txt")[written % 5]
            (place / f"{chance.choice(vocabulary)}_{written}.{ending}").write_text(body + "\n", encoding="utf-8")
            written += 1
    return sum(entry.stat().st_size for entry in root.rglob("*") if entry.is_file())


async def best(name: str, work: Callable[[], Awaitable[Any]], runs: int = 3) -> float:
    times: list[float] = []
    result: Any = None
    for _ in range(runs):
        begun = time.perf_counter()
        result = await work()
        times.append(time.perf_counter() - begun)
    count = "" if result is None else f"  ({len(result.items)} on the page{', more' if result.cursor else ''})"
    print(f"{name:<58}{1000 * min(times):>10.1f} ms{count}", flush=True)
    return min(times)


def memory() -> float:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE") / 1e6


def ripgrep(root: Path, *arguments: str, runs: int = 3) -> float | None:
    program = shutil.which("rg")
    if program is None:
        return None
    times: list[float] = []
    for _ in range(runs):
        begun = time.perf_counter()
        subprocess.run([program, "-l", *arguments, str(root)], stdout=subprocess.DEVNULL, check=False)
        times.append(time.perf_counter() - begun)
    return min(times)


def forget(root: Path) -> None:
    """Out of the page cache, so that the next search reads from the disk."""
    os.sync()
    for folder, _, names in os.walk(root):
        for name in names:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


async def measure(root: Path, files: int) -> None:
    print(f"resident before the source opens: {memory():.0f} MB")
    before = memory()
    source = FileSource([FileRoot(root)], secret=b"bench", extensions=["*"])
    async with source:

        def search(query: NameQuery | ContentQuery) -> Callable[[], Awaitable[Any]]:
            return lambda: source.search(SCOPE, query, cursor=None, limit=100, deadline=600)

        await best("first look of the watch", source.armed, runs=1)
        print(f"resident: {memory():.0f} MB, {1e6 * (memory() - before) / files:.0f} bytes a file")
        await best("list, first page of 100", lambda: source.list(SCOPE, cursor=None, limit=100))
        await best("name, first search (makes the index)", search(NameQuery("zzzznowhere")), runs=1)
        print(f"resident: {memory():.0f} MB, {1e6 * (memory() - before) / files:.0f} bytes a file")
        await best("name: a word that no path has", search(NameQuery("zzzznowhere")))
        await best("name: one file", search(NameQuery(f"_{files // 2}.")))
        await best("name: *.md, the first 100", search(NameQuery("*.md")))
        await best("name: **/*_7777*.ts", search(NameQuery("**/*_7777*.ts")))
        await best("name: a pattern that nothing matches", search(NameQuery("nowhere/**/*.rst")))
        rare, korean = ContentQuery(text=RARE), ContentQuery(text=KOREAN)
        begun = time.perf_counter()
        await source.learned()
        learnt = time.perf_counter() - begun
        print(f"remembering what all files contain: {learnt:.1f} s of work, done at leisure after the first search")
        print(f"resident: {memory():.0f} MB, of which index {source._searcher._index.size / 1e6:.0f} MB")  # type: ignore
        indexed = await best("content, by the index: a rare word", search(rare))
        await best("content, by the index: a rare Korean word", search(korean))
        await best("content, by the index: a word that no file has", search(ContentQuery(text="xylophonist")))
        await best("content, by the index: a common word, the first 100", search(ContentQuery(text="검색")))
        beside_ripgrep("by the index", indexed, ripgrep(root, "-i", RARE))


async def scanning(root: Path) -> None:
    """With an index that remembers no contents, so that every file is read."""
    exact, any_case = ContentQuery(text=RARE, case=True), ContentQuery(text=RARE, case=False)
    expression = ContentQuery(text=f"{RARE[:4]}[a-z]*{RARE[-4:]}", regex=True, case=True)
    async with FileSource([FileRoot(root)], secret=b"bench", extensions=["*"], index_bytes=0) as source:
        await source.learned()

        def search(query: ContentQuery) -> Callable[[], Awaitable[Any]]:
            return lambda: source.search(SCOPE, query, cursor=None, limit=100, deadline=600)

        forget(root)
        ours = await best("content, from the disk: a rare word", search(exact), runs=1)
        forget(root)
        beside_ripgrep("from the disk", ours, ripgrep(root, "-s", RARE, runs=1))
        ours = await best("content, scanning all: a rare word", search(exact))
        beside_ripgrep("scanning", ours, ripgrep(root, "-s", RARE))
        ours = await best("content, scanning all: a rare word in any case", search(any_case))
        beside_ripgrep("scanning, any case", ours, ripgrep(root, "-i", RARE))
        ours = await best("content, scanning all: an expression", search(expression))
        beside_ripgrep("scanning, expression", ours, ripgrep(root, "-s", expression.text))


def beside_ripgrep(name: str, ours: float, theirs: float | None) -> None:
    if theirs is not None:
        print(f"    {name}: ours {ours:.3f} s, ripgrep {theirs:.3f} s, ours / ripgrep {ours / theirs:.3f}")


def official(root: Path, word: str) -> float:
    """One `search_files` of the official file server, which walks the tree for each."""
    from candidates import official_command  # needs node; only where it is asked for

    def message(method: str, params: dict[str, Any], **number: int) -> bytes:
        return json.dumps({"jsonrpc": "2.0", **number, "method": method, "params": params}).encode() + b"\n"

    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    arguments = {"path": str(root), "pattern": word}
    with subprocess.Popen(official_command(root), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(message("initialize", hello, id=1) + message("notifications/initialized", {}))
        server.stdin.flush()
        server.stdout.readline()
        begun = time.perf_counter()
        server.stdin.write(message("tools/call", {"name": "search_files", "arguments": arguments}, id=2))
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        spent = time.perf_counter() - begun
        server.terminate()
    print(f"official search_files {word!r}: {1000 * spent:.0f} ms, {answer['result']['content'][0]['text'][-80:]!r}")
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--official", action="store_true", help="also time search_files of the official server")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="octavo-search-") as folder:
        root = Path(folder) / "tree"
        root.mkdir()
        size = build(root, arguments.files)
        print(f"{arguments.files} files, {size / 1e6:.0f} MB, {os.cpu_count()} processors")
        asyncio.run(measure(root, arguments.files))
        asyncio.run(scanning(root))
        if arguments.official:
            official(root, "zzzznowhere")
            official(root, f"**/*_{arguments.files // 2}.*")


if __name__ == "__main__":
    main()
