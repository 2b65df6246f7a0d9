"""What a hostile file costs: a FIFO, a device, 1 TiB of nothing, 400 MB of text, a very deep tree.

Each is asked for again and again while eight other reads are in flight on the same connection. The table says
how long the refusal took, whether it is a typed error, and what the other reads noticed. See README.md beside it.
With --starve: what one agent notices while another takes all it can of each pool that they share.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corpus as data
import report
import starve
from candidates import NAMES, OCTAVO, Candidate, Json, candidate

import wire

AT_ONCE_US = 50_000
NOTICED_US = 5_000  # below this, a slower p99 of the others is the machine
DEPTH = 3000
TIB = 1 << 40
TEXT = 400_000_000
OTHERS = 8
UNTYPED = (-32603, -32700, -32601)


def fifo(path: Path) -> str:
    os.mkfifo(path)
    return "a FIFO that nobody writes"


def device(path: Path) -> str:
    try:
        os.mknod(path, stat.S_IFCHR | 0o644, os.makedev(1, 5))
    except PermissionError:
        path.symlink_to("/dev/zero")
        return "a link to /dev/zero (no right to make a device)"
    return "a device like /dev/zero"


def sparse(path: Path) -> str:
    with path.open("wb") as file:
        file.truncate(TIB)
    return "a sparse file of 1 TiB"


def large(path: Path) -> str:
    block = "".join(data.text(random.Random(seed)) for seed in range(256)).encode()
    with path.open("wb") as file:
        for _ in range(TEXT // len(block) + 1):
            file.write(block)
    return f"a text of {path.stat().st_size // 1_000_000} MB"


def deep(path: Path) -> str:
    """Deeper than any path can say: made with directory descriptors."""
    path.mkdir()
    here = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("leaf.md", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)
    return f"a leaf {DEPTH} folders deep"


@dataclass(frozen=True)
class Case:
    name: str
    file: str
    make: Callable[[Path], str]
    address: str = ""
    listing: bool = False

    def request(self, who: Candidate, corpus: data.Corpus) -> Json:
        return who.page(corpus) if self.listing else who.read(corpus, self.address or self.file)


CASES = (
    Case("fifo", "pipe.md", fifo),
    Case("device", "device.md", device),
    Case("sparse", "sparse.md", sparse),
    Case("large", "large.md", large),
    Case("deep", "deep", deep, "deep/" + "d/" * DEPTH + "leaf.md"),
    Case("deep-list", "deep", deep, listing=True),
)


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="octavo-hostile-"))
    try:
        yield home
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=False)  # shutil gives up on the deep tree


def kind_of(sample: str, errors: int) -> tuple[str, bool]:
    """The answer in a few words, and whether it is a typed error."""
    if not sample:
        return "NO ANSWER", False
    if not errors:
        return "a result", False
    try:
        body: Any = json.loads(sample)
    except ValueError:
        return "an error (long)", False
    error = body.get("error", {})
    reason = (error.get("data") or {}).get("reason", "")
    return f"{error.get('code')} {reason or error.get('message', '')}"[:44], error.get("code", -32603) not in UNTYPED


def attack(case: Case, who: Candidate, corpus: data.Corpus, seconds: float, log: Path) -> Json:
    others = [who.read(corpus, name) for name in corpus.files]
    with tempfile.NamedTemporaryFile(suffix=".inject") as inject:
        request = wire.line(case.request(who, corpus))
        inject.write(request)
        inject.flush()
        bounds = ["--conc", OTHERS, "--warm-n", 200, "--warm-s", 0.3, "--s", seconds, "--max", seconds]
        return wire.measure(who, others, log, *bounds, "--inject", inject.name, "--gap", 20)


def row(case: Case, what: str, who: str, seen: Json) -> tuple[list[str], bool]:
    injected, before, during = seen["injected"], seen["before"], seen["while"]
    words, typed = kind_of(injected["sample"], injected["errors"])
    prompt = injected["answered"] > 0 and injected["max_us"] <= AT_ONCE_US and not injected["pending_us"] > AT_ONCE_US
    unharmed = not during["errors"] and not seen["unanswered"] and during["count"] > 0
    unharmed = unharmed and during["p99_us"] <= max(3 * before["p99_us"], NOTICED_US)
    fine = (typed or case.listing) and prompt and unharmed
    cells = [
        f"{who}: {what}" + (", listed" if case.listing else ""),
        words,
        f"{injected['answered']}",
        f"{injected['p50_us'] / 1000:.2f}",
        f"{injected['max_us'] / 1000:.2f}",
    ]
    for part in (before, during):
        cells += [f"{part['p50_us']:,.0f}", f"{part['p99_us']:,.0f}"]
    cells += [f"{during['rps'] / before['rps']:.0%}" if before["rps"] else "", f"{seen['rss_kb'] / 1024:.0f}"]
    return [*cells, "ok" if fine else "NOT OK"], fine


HEAD = [
    "asked for",
    "answer",
    "times",
    "p50 ms",
    "max ms",
    "others p50",
    "p99 us",
    "while p50",
    "p99 us",
    "rate",
    "RSS MB",
    "",
]


def starve_all(seconds: float, only: str) -> int:
    rows = list[list[str]]()
    for cells in starve.run(seconds, only):
        print(f"{cells[0]}: quiet {cells[1]} ms, starved {cells[3]} ms, {cells[-1]}", flush=True)
        rows.append(cells)
    print(f"\n{starve.title()}, load {os.getloadavg()[0]:.2f}\n{report.grid(starve.HEAD, rows)}")
    return 0 if all(row[-1] == "ok" for row in rows) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Figures for hostile files, through a real server on stdio.")
    parser.add_argument("--candidates", default="octavo,octavo-modern", help=f"comma-separated, of {', '.join(NAMES)}")
    parser.add_argument("--cases", default=",".join(c.name for c in CASES), help="comma-separated")
    parser.add_argument("--octavo", default=OCTAVO, help="Octavo's command, as in run.py")
    parser.add_argument("--starve", nargs="?", const="", metavar="POOL", help="one agent takes all it can of each pool")
    parser.add_argument("--seconds", type=float, default=2.0, help="before, and again while asking")
    args = parser.parse_args()
    if args.starve is not None:
        return starve_all(args.seconds, args.starve)
    chosen = [case for case in CASES if case.name in args.cases.split(",")]
    rows: list[list[str]] = []
    good = True
    wire.build()
    for case in chosen:
        with workplace() as home:  # one at a time, so that a row is about one file
            if case.make is large and shutil.disk_usage(home).free < 2 * TEXT:
                raise SystemExit(f"{home} has no room for {TEXT // 1_000_000} MB")
            corpus = data.make(home, 100)
            what = case.make(corpus.path(case.file))
            for name in args.candidates.split(","):
                who = candidate(name, corpus, args.octavo)
                log = home / "servers.log"
                try:
                    cells, fine = row(case, what, name, attack(case, who, corpus, args.seconds, log))
                except wire.Wrong as wrong:
                    cells, fine = [f"{name}: {what}", str(wrong).splitlines()[0][:44], *[""] * 9, "NOT OK"], False
                rows.append(cells)
                good = good and fine
                print(f"{name}, {case.name}: {cells[1]}, {cells[-1]}", flush=True)
    print(f"\nhostile files, {OTHERS} other reads in flight, load {os.getloadavg()[0]:.2f}\n{report.grid(HEAD, rows)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
