"""Changes audit logs at random, as somebody would who has the folder, the key of the chain, or the second place.

    python -m tests.audit.tampers --count 10000

Prints one line of JSON: for each kind of tamper how often the chain alone found it, how often only the checkpoints
did, and how often nobody (which must be never). The last checkpoint of each log is of its end: what is written
behind the last checkpoint is what no checkpoint can find, and docs/audit.md says so.
"""

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from octavo.core.clock import FrozenClock
from octavo.stores.audit.checkpoints import CheckpointFile, read_checkpoints
from octavo.stores.audit.ledger import FileLedger
from octavo.stores.audit.verify import verify

KEY, SEED = b"k" * 32, b"s" * 32
PER_LOG = 25

Files = dict[str, bytes]


class Log:
    """One chain and its checkpoints, as bytes by name."""

    def __init__(self, place: Path, chance: random.Random) -> None:
        self.audit, self.second = place / "audit", place / "checkpoints"
        self.max_bytes = chance.choice([300, 1 << 20])
        self.closed = chance.random() < 0.5
        self.batches = [
            [chance.randrange(10**6) for _ in range(chance.randint(1, 4))] for _ in range(chance.randint(2, 8))
        ]
        ledger = FileLedger(self.audit, KEY, max_bytes=self.max_bytes, keep=100, clock=FrozenClock())
        self.chain = ledger.chain
        points = CheckpointFile(self.second, SEED, self.chain, clock=FrozenClock())
        for batch in self.batches:
            write(ledger, batch)
            if chance.random() < 0.5:
                sign(ledger, points)
        if self.closed:
            ledger.close()
        sign(ledger, points)
        self.files: Files = {file.name: file.read_bytes() for file in self.audit.iterdir()}
        self.points = self.second.read_bytes()

    def put(self, files: Files, points: bytes) -> None:
        for file in self.audit.iterdir():
            file.unlink()
        for name, body in files.items():
            (self.audit / name).write_bytes(body)
        self.second.write_bytes(points)

    def found(self) -> str:
        if not verify(self.audit, KEY).ok:
            return "chain"
        return "missed" if verify(self.audit, KEY, read_checkpoints(self.second, SEED)).ok else "checkpoint"

    def parts(self) -> list[str]:
        return sorted((name for name in self.files if name.endswith(".jsonl")), key=lambda name: (len(name), name))


def write(ledger: FileLedger, batch: list[int]) -> None:
    for number in batch:
        ledger.append(b'{"n":%d}' % number)
    ledger.flush()


def sign(ledger: FileLedger, points: CheckpointFile) -> None:
    head = ledger.head()
    assert head is not None
    points.head(head)


# -- of somebody who has the folder


def edit(log: Log, chance: random.Random) -> Files:
    name = chance.choice([*log.files])
    body = bytearray(log.files[name])
    if body:
        body[chance.randrange(len(body))] = chance.randrange(256)
    return {**log.files, name: bytes(body)}


def of_lines(change: Callable[[list[bytes], random.Random], None]) -> Callable[[Log, random.Random], Files]:
    def tamper(log: Log, chance: random.Random) -> Files:
        name = chance.choice(log.parts())
        lines = log.files[name].splitlines(keepends=True)
        if lines:
            change(lines, chance)
        return {**log.files, name: b"".join(lines)}

    return tamper


def delete_lines(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    del lines[at : at + chance.randint(1, 4)]


def swap_lines(lines: list[bytes], chance: random.Random) -> None:
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def add_line(lines: list[bytes], chance: random.Random) -> None:
    made_up = chance.choice([b'{"n":1}\n', chance.choice(lines)])
    lines.insert(chance.randrange(len(lines)), made_up)  # behind the end of an open chain it is an incomplete tail


def truncate(log: Log, chance: random.Random) -> Files:
    name = chance.choice(log.parts())
    return {**log.files, name: log.files[name][: chance.randint(0, len(log.files[name]))]}


def cut_behind_a_batch(log: Log, chance: random.Random) -> Files:
    """The later parts too, and the head, so that it looks like a process that was killed earlier."""
    parts = log.parts()
    at = chance.randrange(len(parts))
    lines = log.files[parts[at]].splitlines(keepends=True)
    ends = [number + 1 for number, line in enumerate(lines) if line.startswith(b'{"chain":"batch"')]
    if not ends:
        return log.files
    return {**{name: log.files[name] for name in parts[:at]}, parts[at]: b"".join(lines[: chance.choice(ends)])}


def remove_file(log: Log, chance: random.Random) -> Files:
    """A head alone says nothing that a closed chain does not say itself: its absence is a warning."""
    gone = chance.choice([name for name in log.parts() if log.files[name]])
    return {name: body for name, body in log.files.items() if name != gone}


def swap_files(log: Log, chance: random.Random) -> Files:
    one, other = chance.choice(log.parts()), chance.choice(log.parts())
    return {**log.files, one: log.files[other], other: log.files[one]}


def remove_chain(log: Log, chance: random.Random) -> Files:
    return {}


# -- of somebody who has the key of the chain too


def with_the_key(change: Callable[[list[list[int]], random.Random], None]) -> Callable[[Log, random.Random], Files]:
    def tamper(log: Log, chance: random.Random) -> Files:
        batches = [[*batch] for batch in log.batches]
        change(batches, chance)
        if batches == log.batches:
            return log.files
        with tempfile.TemporaryDirectory() as folder:
            forged = FileLedger(Path(folder), KEY, max_bytes=log.max_bytes, keep=100)
            forged.chain = log.chain
            for batch in batches:
                write(forged, batch)
            if log.closed:
                forged.close()
            return {file.name: file.read_bytes() for file in Path(folder).iterdir()}

    return tamper


def edit_record(batches: list[list[int]], chance: random.Random) -> None:
    batch = chance.choice(batches)
    batch[chance.randrange(len(batch))] = chance.randrange(10**6)


def delete_record(batches: list[list[int]], chance: random.Random) -> None:
    batch = chance.choice(batches)
    del batch[chance.randrange(len(batch))]


def swap_records(batches: list[list[int]], chance: random.Random) -> None:
    one, other = chance.choice(batches), chance.choice(batches)
    one[0], other[-1] = other[-1], one[0]


def truncate_records(batches: list[list[int]], chance: random.Random) -> None:
    del batches[chance.randrange(1, len(batches)) :]


# -- of somebody who can rewrite the second place, without the key that signs


def edit_checkpoint(log: Log, chance: random.Random) -> bytes:
    points = bytearray(log.points)
    points[chance.randrange(len(points) - 1)] = chance.randrange(256)
    return bytes(points)


def delete_checkpoint(log: Log, chance: random.Random) -> bytes:
    lines = log.points.splitlines(keepends=True)
    if len(lines) > 2:
        del lines[chance.randrange(1, len(lines) - 1)]
    return b"".join(lines)


def swap_checkpoints(log: Log, chance: random.Random) -> bytes:
    lines = log.points.splitlines(keepends=True)
    swap_lines(lines, chance)
    return b"".join(lines)


LOG_TAMPERS: dict[str, Callable[[Log, random.Random], Files]] = {
    "edit a byte": edit,
    "delete lines": of_lines(delete_lines),
    "swap lines": of_lines(swap_lines),
    "add a line": of_lines(add_line),
    "truncate a file": truncate,
    "cut behind a batch, head removed": cut_behind_a_batch,
    "remove a file": remove_file,
    "swap files": swap_files,
    "remove the chain": remove_chain,
    "edit a record, sealed with the key": with_the_key(edit_record),
    "delete a record, sealed with the key": with_the_key(delete_record),
    "swap records, sealed with the key": with_the_key(swap_records),
    "truncate, sealed with the key": with_the_key(truncate_records),
}
POINT_TAMPERS: dict[str, Callable[[Log, random.Random], bytes]] = {
    "edit a checkpoint": edit_checkpoint,
    "delete a checkpoint": delete_checkpoint,
    "swap checkpoints": swap_checkpoints,
}


def run(count: int, seed: int) -> dict[str, Counter[str]]:
    """By kind: who found how many. A change that changes nothing is drawn again."""
    chance = random.Random(seed)
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in (*LOG_TAMPERS, *POINT_TAMPERS)}
    done = 0
    while done < count:
        with tempfile.TemporaryDirectory() as folder:
            log = Log(Path(folder), chance)
            assert verify(log.audit, KEY, read_checkpoints(log.second, SEED)).ok
            for _ in range(min(PER_LOG, count - done)):
                kind, files, points = _different(log, chance)
                log.put(files, points)
                counts[kind][log.found()] += 1
                done += 1
    return counts


def _different(log: Log, chance: random.Random) -> tuple[str, Files, bytes]:
    while True:
        kind = chance.choice([*LOG_TAMPERS, *POINT_TAMPERS])
        files = LOG_TAMPERS[kind](log, chance) if kind in LOG_TAMPERS else log.files
        points = POINT_TAMPERS[kind](log, chance) if kind in POINT_TAMPERS else log.points
        if (files, points) != (log.files, log.points):
            return kind, files, points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts = run(asked.count, asked.seed)
    missed = sum(found["missed"] for found in counts.values())
    print(json.dumps({"tampers": asked.count, "seed": asked.seed, "missed": missed, "kinds": counts}))
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
