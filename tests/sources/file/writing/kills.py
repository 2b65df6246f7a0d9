"""Kills a writer at random moments, again and again: python -m tests.sources.file.writing.kills --kills 10000

After each kill every file is a complete version, the one before or after the operation that was cut off;
nothing that was acknowledged is lost; nothing visible is left over. Now and then the directory is opened
anew: then nothing hidden is left either, and undo gives what was before.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.sources.file.writing.engines import Hand, hand

from octavo.sources.file.writing import staging

State = dict[str, bytes]
Act = list[str | int]
MOST_WORDS = 12  # that a writer says before it is killed: two for each operation


def body(serial: int) -> bytes:
    size = random.Random(serial).choice([0, 10, 1000, 70_000, 300_000])
    return b"%d:" % serial + b"x" * size + b":%d\n" % serial


def perform(writer: Hand, act: Act) -> None:
    match act:
        case ["write", str(path), int(serial)]:
            writer.write(path, body(serial))
        case ["append", str(path), int(serial)]:
            writer.write(path, b"%d\n" % serial, append=True)
        case ["move", str(path), str(to)]:
            writer.move(path, to, overwrite=True)
        case ["delete", str(path)]:
            writer.delete(path)


def applied(state: State, act: Act) -> State:
    after = dict(state)
    match act:
        case ["write", str(path), int(serial)]:
            after[path] = body(serial)
        case ["append", str(path), int(serial)]:
            after[path] = after.get(path, b"") + b"%d\n" % serial
        case ["move", str(path), str(to)]:
            after[to] = after.pop(path)
        case ["delete", str(path)]:
            if path == "d":
                after = {name: raw for name, raw in after.items() if not name.startswith("d/")}
            else:
                del after[path]
    return after


def acts(state: State, serial: int) -> Iterator[Act]:
    """What a writer does, as long as it lives: every kind, on files that exist by then."""
    dice = random.Random(serial)
    while True:
        serial += 1
        kind = dice.choice(["write", "write", "append", "move", "delete", "folder"])
        files = sorted(state)
        if kind == "append":
            act: Act = ["append", "log.md", serial]
        elif kind == "move" and files:
            act = ["move", dice.choice(files), f"m{dice.randrange(4)}.md"]
            if act[1] == act[2]:
                continue
        elif kind == "delete" and files:
            act = ["delete", dice.choice(files)]
        elif kind == "folder" and any(name.startswith("d/") for name in files):
            act = ["delete", "d"]
        else:
            act = ["write", dice.choice(["a.md", "b.md", f"d/{serial % 3}.md", f"d/e/{serial % 3}.md"]), serial]
        state = applied(state, act)
        yield act


def writer(root: Path, journal: Path, state: State, serial: int, out: int) -> None:
    os.write(out, b"ready\n")
    with hand(root, journal) as one:
        for act in acts(state, serial):
            os.write(out, json.dumps(act).encode() + b"\n")
            perform(one, act)
            os.write(out, b"done\n")


def on_disk(root: Path) -> State:
    visible: State = {}
    for place, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".octavo-")]
        for name in files:
            if not name.startswith(".octavo-"):
                path = Path(place, name)
                visible[path.relative_to(root).as_posix()] = path.read_bytes()
    return visible


def lived(root: Path, journal: Path, state: State, serial: int, dice: random.Random) -> list[str]:
    """One life of a writer: what it said until it was killed."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ours)
            writer(root, journal, state, serial, theirs)
        finally:
            os._exit(1)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as said:
        # After some words, and then within the time that one takes: on a slow disk as well as on a fast one.
        words = [said.readline()]
        pause = 0.001
        for _ in range(dice.randrange(MOST_WORDS)):
            began = time.monotonic()
            words.append(said.readline())
            pause = max(pause, time.monotonic() - began)
        select.select([], [], [], dice.uniform(0, pause))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (
            "the writer failed before it was killed"
        )
        return b"".join((*words, said.read())).decode().splitlines()


def run(kills: int, place: Path, seed: int, look_every: int = 8) -> dict[str, int]:
    root, journal = place / "root", place / "journal"
    root.mkdir()
    dice = random.Random(seed)
    state: State = {}
    past: list[State] = []  # what was before each operation that is not undone
    tally = {"kills": 0, "acknowledged": 0, "cut off, done": 0, "cut off, not done": 0, "undone": 0, "strays": 0}
    for number in range(kills):
        lines = lived(root, journal, state, number * 1000, dice)
        tally["kills"] += 1
        open_act: Act | None = None
        for line in lines:
            if line == "done":
                assert open_act is not None
                past.append(state)
                state, open_act = applied(state, open_act), None
                tally["acknowledged"] += 1
            elif line.endswith("]"):
                open_act = json.loads(line)
        now = on_disk(root)
        if open_act is not None and now == applied(state, open_act) != state:
            past.append(state)
            state = now
            tally["cut off, done"] += 1
        elif open_act is not None:
            tally["cut off, not done"] += 1
        assert now == state, f"kill {number}: {difference(now, state)} after {open_act}"
        tally["strays"] += any(name.startswith(".octavo-") for _, d, f in os.walk(root) for name in (*d, *f))
        if number % look_every == look_every - 1:
            with hand(root, journal) as one:
                left = [name for _, d, f in os.walk(root) for name in (*d, *f) if name.startswith(".octavo-")]
                assert not left, f"kill {number}: {left} stayed"
                assert on_disk(root) == state, f"kill {number}: opening changed something"
                count = dice.randrange(4)
                undone = one.undo(count) if past else 0
                assert undone == min(count, len(past), 40), f"kill {number}: {undone} of {count} undone"
                for _ in range(undone):
                    state = past.pop()
                tally["undone"] += undone
                assert on_disk(root) == state, f"kill {number}: undo: {difference(on_disk(root), state)}"
                del past[:-40]
    return tally


def difference(now: State, expected: State) -> list[str]:
    names = sorted(now.keys() | expected.keys())
    return [
        f"{name}: {now.get(name, b'absent')[:12]!r} in place of {expected.get(name, b'absent')[:12]!r}"
        for name in names
        if now.get(name) != expected.get(name)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--where", type=Path, help="a directory on the file system to try")
    parser.add_argument("--named", action="store_true", help="as on file systems without unnamed files")
    options = parser.parse_args()
    if options.named:
        staging._TMPFILE = None  # type: ignore[misc]
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    with TemporaryDirectory(dir=options.where) as place:
        tally = run(options.kills, Path(place), options.seed)
    seconds = time.monotonic() - began
    print(", ".join(f"{value} {name}" for name, value in tally.items()))
    print(f"0 torn, 0 lost, 0 left over; {options.kills / seconds:.0f} kills a second")
    if options.kills >= 500 and not (tally["cut off, done"] and tally["cut off, not done"]):
        sys.exit("no operation was cut off on both sides of its effect: raise --kills")


if __name__ == "__main__":
    main()
