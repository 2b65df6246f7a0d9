"""Reads while another process swaps directories and files for links that lead out of the root.

    python -m tests.security.race --reads 1000000 --mode openat2

`--mode naive` shows that the race is real: it checks the real path and then opens, as most servers do.
Prints one line of JSON; `leaks` counts answers with a byte or a name from outside.
"""

import argparse
import asyncio
import ctypes
import json
import os
import random
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.sources.file import FileRoot, FileSource

CANARY = "CANARY-outside"
INSIDE = "inside"
READ = ("swap/x.md", "file.md", "a/b/swap/x.md", "moved/up.md", "moved/x.md", "kind.md/x.md", "kind.md")
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@dataclass(kw_only=True)
class Figures:
    mode: str
    reads: int = 0
    served: int = 0
    refused: int = 0
    listings: int = 0
    leaks: int = 0
    swaps: int = 0


def plant(base: Path) -> Path:
    """A root in which four things have a twin that leads out, and a directory that comes and goes."""
    root, outside = base / "root", base / "outside"
    for folder in (root / "swap", root / "a" / "b" / "swap", root / "moved", root / "kind.md", outside / "moved"):
        folder.mkdir(parents=True)
        (folder / "x.md").write_text(INSIDE, encoding="utf-8")
    (outside / "moved" / "x.md").unlink()
    (outside / "moved").rmdir()
    for name in ("x.md", "outside-only.md"):
        (outside / name).write_text(CANARY, encoding="utf-8")
    for name in ("file.md", "x.md", "kind-twin"):
        (root / name).write_text(INSIDE, encoding="utf-8")
    (root / "swap-twin").symlink_to(outside)
    (root / "file-twin").symlink_to("../outside/x.md")
    (root / "a" / "b" / "swap-twin").symlink_to("../../../outside")
    (root / "moved" / "up.md").symlink_to("../x.md")  # outside, when its directory is
    return root


def swap_until_told(base: Path) -> int:
    """Swaps in a tight loop with uneven pauses until standard input ends. Gives the number of swaps."""
    libc = ctypes.CDLL(None, use_errno=True)
    root, outside = base / "root", base / "outside"
    pairs = [
        (os.fsencode(root / name), os.fsencode(root / twin))
        for name, twin in (
            ("swap", "swap-twin"), ("file.md", "file-twin"), ("a/b/swap", "a/b/swap-twin"), ("kind.md", "kind-twin"),
        )
    ]  # fmt: skip
    home, away = os.fsencode(root / "moved"), os.fsencode(outside / "moved")
    chance = random.Random(1)
    swaps = 0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(64):
            one, two = chance.choice(pairs)
            if libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, two, _RENAME_EXCHANGE):
                raise OSError(ctypes.get_errno(), "renameat2")
            if chance.random() < 0.25:
                os.rename(home, away)
                home, away = away, home
            swaps += 1
            for _ in range(chance.randrange(2000)):  # up to some 50 microseconds
                pass
    return swaps


@contextmanager
def racing(base: Path, figures: Figures) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.security.race", "--swap", str(base)]
    here = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=here) as racer:
        assert racer.stdin and racer.stdout
        try:
            assert racer.stdout.readline() == b"ready\n"
            yield
        finally:
            racer.stdin.close()
            figures.swaps = int(racer.stdout.readline() or 0)


async def run(mode: str, reads: int, base: Path) -> Figures:
    figures = Figures(mode=mode)
    root = plant(base)
    with racing(base, figures):
        if mode == "naive":
            _read_naively(root, reads, figures)
        else:
            async with FileSource([FileRoot(root)], secret=b"s", confinement=mode) as source:  # type: ignore[arg-type]
                await _read(source, reads, figures)
    return figures


async def _read(source: FileSource, reads: int, figures: Figures) -> None:
    refs = [Ref.of("file", path.split("/")) for path in READ]
    for number in range(reads):
        figures.reads += 1
        try:
            content = await source.read(refs[number % len(refs)], max_bytes=1000)
        except OctavoError:
            figures.refused += 1
        else:
            figures.served += 1
            figures.leaks += content.body != INSIDE
        if number % 200 == 0:
            figures.listings += 1
            page = await source.list(Ref("file"), cursor=None, limit=100)
            figures.leaks += any(entry.name == "outside-only.md" or "outside" in str(entry) for entry in page.items)


def _read_naively(root: Path, reads: int, figures: Figures) -> None:
    for number in range(reads):
        figures.reads += 1
        path = root / READ[number % len(READ)]
        try:
            if not os.path.realpath(path).startswith(f"{root}/"):
                raise PermissionError
            body = path.read_text(encoding="utf-8")
        except OSError:
            figures.refused += 1
        else:
            figures.served += 1
            figures.leaks += body != INSIDE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reads", type=int, default=20_000)
    parser.add_argument("--mode", choices=["openat2", "walk", "naive"], default="openat2")
    parser.add_argument("--swap", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.swap:
        print(swap_until_told(arguments.swap), flush=True)
        return
    with tempfile.TemporaryDirectory() as base:
        figures = asyncio.run(run(arguments.mode, arguments.reads, Path(base)))
    print(json.dumps(asdict(figures)))
    sys.exit(1 if figures.leaks and arguments.mode != "naive" else 0)


if __name__ == "__main__":
    main()
