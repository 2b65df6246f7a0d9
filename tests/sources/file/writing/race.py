"""Writes while somebody swaps directories, files and links: python -m tests.sources.file.writing.race

Whatever is asked for and however it ends, nothing outside the root changes and nothing from outside comes
in: the links that the other process puts in place of directories and files all lead there.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.sources.file.writing.engines import Hand, hand

from octavo.core.errors import OctavoError
from octavo.sources._shared.fs import syscalls
from octavo.sources._shared.fs.confine import Confinement

OUTSIDE = b"from outside"
MODES: tuple[Confinement, ...] = ("openat2", "walk")
# Swapped for each other, over and over: a directory or a file, and a link that leads outside.
PAIRS = (("d", "d-link"), ("d/s", "d/s-link"), ("f.md", "f-link.md"), ("d/g.md", "d/g-link.md"), ("d", "e"))


def prepared(place: Path) -> tuple[Path, Path]:
    root, outside = place / "root", place / "outside"
    for folder in (root / "d/s", root / "e/s", outside / "s"):
        folder.mkdir(parents=True)
    for name in ("f.md", "g.md", "h.md", "s/g.md", "s/h.md"):
        (outside / name).write_bytes(OUTSIDE)
    (root / "f.md").write_bytes(b"inside")
    (root / "d/g.md").write_bytes(b"inside")
    for name, target in (("d-link", "."), ("d/s-link", "s"), ("e/s-link", "s"), ("f-link.md", "f.md")):
        (root / name).symlink_to(outside / target)
    (root / "d/g-link.md").symlink_to(outside / "g.md")
    return root, outside


def swap_for_ever(root: Path, seed: int) -> None:
    dice = random.Random(seed)
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    while True:
        one, other = dice.choice(PAIRS)
        try:
            syscalls.renameat2(here, one.encode(), here, other.encode(), syscalls.RENAME_EXCHANGE)
        except OSError:  # not there now
            continue


def one_operation(one: Hand, dice: random.Random) -> tuple[str, Callable[[], object]]:
    files = ["f.md", "d/g.md", "d/h.md", "d/s/g.md", "d/s/h.md", "e/s/g.md", "e/k.md", "d-link/h.md"]
    path, other = dice.choice(files), dice.choice(files)
    folder = dice.choice(["d", "d/s", "e/s", "n"])
    return dice.choice(
        [
            ("write", lambda: one.write(path, b"inside %d" % dice.randrange(10))),
            ("write", lambda: one.write(path, b"inside")),
            ("append", lambda: one.write(path, b".", append=True)),
            ("delete", lambda: one.delete(path)),
            ("move", lambda: one.move(path, other, overwrite=True)),
            ("copy", lambda: one.copy(path, other, overwrite=True)),
            ("make directory", lambda: one.make_directory(folder)),
            ("copy directory", lambda: one.copy(folder, "d/n" if folder == "e/s" else "n")),
            ("move directory", lambda: one.move(folder, "m")),
            ("move directory", lambda: one.move("m", folder)),
            ("delete directory", lambda: one.delete(dice.choice(["n", "m", "d/n", "d/s"]))),
            ("undo", lambda: one.undo()),
        ]
    )


def facts(outside: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for place in [outside, *sorted(outside.rglob("*"))]:
        known = place.lstat()
        found[str(place)] = (known.st_ino, known.st_mode, known.st_mtime_ns, known.st_ctime_ns, known.st_size)
    return found


def come_in(root: Path) -> list[str]:
    """Files of the root, and what it keeps in the journal, with something from outside."""
    places = [Path(folder, name) for folder, _, names in os.walk(root) for name in names]
    return [str(place) for place in places if not place.is_symlink() and OUTSIDE in place.read_bytes()]


def run(operations: int, place: Path, confinement: Confinement, seed: int) -> Counter[str]:
    root, outside = prepared(place)
    before = facts(outside)
    rival = os.fork()
    if rival == 0:
        try:
            swap_for_ever(root, seed)
        finally:
            os._exit(1)
    tally: Counter[str] = Counter()
    dice = random.Random(seed)
    try:
        with hand(root, place / "journal", confinement) as one:
            for number in range(operations):
                name, attempt = one_operation(one, dice)
                try:
                    attempt()
                    tally[f"{name} done"] += 1
                except (OSError, OctavoError):
                    tally[f"{name} refused"] += 1
                if number % 500 == 0:
                    assert facts(outside) == before, f"operation {number} changed something outside"
    finally:
        os.kill(rival, signal.SIGKILL)
        os.waitpid(rival, 0)
    assert facts(outside) == before, "something outside has changed"
    assert not come_in(place / "journal") and not come_in(root), "something from outside came in"
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--operations", type=int, default=100_000, help="in each way of confinement")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--where", type=Path, help="a directory on the file system to try")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    for confinement in MODES:
        began = time.monotonic()
        with TemporaryDirectory(dir=options.where) as place:
            tally = run(options.operations, Path(place), confinement, options.seed)
        rate = options.operations / (time.monotonic() - began)
        print(f"{confinement}: {', '.join(f'{n} {name}' for name, n in sorted(tally.items()))}")
        print(f"{confinement}: 0 changes outside, 0 bytes from outside; {rate:.0f} operations a second", flush=True)
        if not any(name.endswith("done") for name in tally) or not any(name.endswith("refused") for name in tally):
            sys.exit("the race was not close: raise --operations")


if __name__ == "__main__":
    main()
