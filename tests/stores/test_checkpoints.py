"""Requirement B7: signed checkpoints at a second place find what the chain alone cannot."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from octavo.core.clock import FrozenClock
from octavo.stores.audit.checkpoints import CheckpointFile, read_checkpoints
from octavo.stores.audit.keeper import DAY, Keeper
from octavo.stores.audit.ledger import FileLedger
from octavo.stores.audit.verify import Report, verify

KEY, SEED = b"k" * 32, b"s" * 32


class Desk:
    """A ledger and its keeper, whose rounds are made by hand."""

    def __init__(self, base: Path, *, max_bytes: int = 1 << 20, keep: int = 16, max_age: float | None = None) -> None:
        self.audit, self.second = base / "audit", base / "second" / "checkpoints.jsonl"
        self.second.parent.mkdir(exist_ok=True)
        self.clock = FrozenClock()
        self._options = {"max_bytes": max_bytes, "keep": keep, "max_age": max_age}
        self.number = 0
        self.begin()

    def begin(self) -> None:
        """A new process."""
        self.clock.advance(1)
        self.ledger = FileLedger(self.audit, KEY, clock=self.clock, kept=True, **self._options)  # type: ignore[arg-type]
        self.points = CheckpointFile(self.second, SEED, self.ledger.chain, clock=self.clock)
        room = int(self._options["max_bytes"] or 0) * int(self._options["keep"] or 0)
        self.keeper = Keeper(
            self.ledger, self.audit, every=3600, max_bytes=room, max_age=self._options["max_age"],
            checkpoints=self.points, clock=self.clock,
        )  # fmt: skip

    def write(self, *batches: int, look: bool = True) -> None:
        for size in batches:
            for _ in range(size):
                self.number += 1
                self.ledger.append(b'{"n":%d}' % self.number)
            self.ledger.flush()
        if look:
            self.keeper.look()

    def close(self) -> None:
        self.ledger.close()
        self.keeper.look()

    def report(self) -> Report:
        return verify(self.audit, KEY, read_checkpoints(self.second, SEED))

    def parts(self) -> list[Path]:
        return sorted(self.audit.glob("*.jsonl"), key=lambda file: (len(file.name), file.name))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def reseal(desk: Desk, *batches: int) -> None:
    """What somebody can do who has the folder and the key: a new chain in place of the old one, by the same name."""
    chain = desk.ledger.chain
    for file in desk.audit.glob(f"{chain}*"):
        file.unlink()
    forged = FileLedger(desk.audit, KEY, clock=desk.clock)
    forged.chain = chain
    for size in batches:
        for _ in range(size):
            forged.append(b'{"n":0}')
        forged.flush()
    forged.close()


@pytest.mark.seed("B7")
def test_a_chain_that_reaches_its_checkpoints_verifies(desk: Desk) -> None:
    desk.write(2, 3)
    desk.write(1)
    desk.close()
    report = desk.report()
    (chain,) = report.chains
    assert (report.ok, chain.records, chain.witnessed, chain.warnings) == (True, 6, 6, ())
    assert [json.loads(line)["number"] for line in desk.second.read_bytes().splitlines()] == [2, 3, 4]


def test_the_file_is_for_its_owner_and_has_no_line_where_nothing_is_new(desk: Desk) -> None:
    desk.keeper.look()
    assert not desk.second.exists()
    desk.write(1)
    desk.keeper.look()
    assert len(desk.second.read_bytes().splitlines()) == 1
    assert stat.S_IMODE(desk.second.stat().st_mode) == 0o600


def test_what_came_after_the_last_checkpoint_is_counted_apart(desk: Desk) -> None:
    desk.write(2)
    desk.write(3, look=False)
    (chain,) = desk.report().chains
    assert (chain.ok, chain.records, chain.witnessed) == (True, 5, 2)


@pytest.mark.seed("B7")
def test_an_open_chain_that_was_cut_behind_a_batch_is_found(desk: Desk) -> None:
    desk.write(2, 2)
    (file,) = desk.parts()
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:4]))
    assert verify(desk.audit, KEY).ok
    (chain,) = desk.report().chains
    assert chain.broken is not None
    assert "truncated: a checkpoint vouches for number 2, and the chain ends with 1" in chain.broken.reason


@pytest.mark.seed("B7")
def test_a_closed_chain_that_was_cut_and_has_no_head_any_more_is_found(desk: Desk) -> None:
    desk.write(2, 2)
    desk.close()
    (file,) = desk.parts()
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    next(desk.audit.glob("*.head")).unlink()
    assert verify(desk.audit, KEY).ok
    assert not desk.report().ok


@pytest.mark.seed("B7")
def test_a_deleted_chain_is_found(desk: Desk) -> None:
    desk.write(1)
    desk.close()
    for file in desk.audit.iterdir():
        file.unlink()
    assert verify(desk.audit, KEY).ok
    (chain,) = desk.report().chains
    assert chain.broken is not None
    assert (chain.broken.file, "deleted: all files" in chain.broken.reason) == ("checkpoints.jsonl", True)


@pytest.mark.seed("B7")
@pytest.mark.parametrize("batches", [(2, 2), (2,), (4,), (1, 1, 1, 1)])
def test_a_chain_that_was_written_anew_with_the_key_is_found(desk: Desk, batches: tuple[int, ...]) -> None:
    desk.write(2, 2)
    desk.close()
    reseal(desk, *batches)
    assert verify(desk.audit, KEY).ok
    (chain,) = desk.report().chains
    assert chain.broken is not None
    assert chain.broken.file == "checkpoints.jsonl"


@pytest.mark.seed("B7")
def test_a_checkpoint_that_was_signed_later_for_a_forged_chain_does_not_help(desk: Desk) -> None:
    """Somebody who has the secret, and can append to the second place."""
    desk.write(2, 2)
    desk.close()
    reseal(desk, 2, 1)
    lines = (desk.audit / f"{desk.ledger.chain}.jsonl").read_bytes().splitlines()
    head = desk.ledger.head()
    assert head is not None
    desk.points.head(head._replace(mac=bytes.fromhex(json.loads(lines[-1])["mac"])))
    (chain,) = desk.report().chains
    assert chain.broken is not None
    assert (chain.broken.line, "replaced" in chain.broken.reason) == (1, True)


def test_a_chain_that_was_said_to_be_deleted_and_was_not_is_told(desk: Desk) -> None:
    desk.write(1)
    desk.points.forgot(desk.ledger.chain)
    report = desk.report()
    assert (report.ok, report.forgotten) == (True, (desk.ledger.chain,))
    assert "still there" in report.chains[0].warnings[0]


def test_a_chain_without_a_checkpoint_is_told(desk: Desk) -> None:
    desk.write(1)
    added = FileLedger(desk.audit, KEY)
    added.append(b"{}")
    added.close()
    report = desk.report()
    assert report.ok
    assert [chain.warnings for chain in report.chains if chain.chain == added.chain] == [
        (f"{added.chain}: no checkpoint vouches for it",)
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [lines[0].replace(b'"number":1', b'"number":9'), *lines[1:]], "changed, or signed with another"),
        (lambda lines: [b"nonsense\n", *lines[1:]], "no checkpoint"),
        (lambda lines: [lines[0], *lines[2:]], "checkpoint 2 of"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "checkpoint 3 of"),
        (lambda lines: [lines[0], *lines], "checkpoint 2 of"),
    ],
)
def test_a_changed_file_of_checkpoints_is_found(desk: Desk, change, reason: str) -> None:  # type: ignore[no-untyped-def]
    for _ in range(3):
        desk.write(1)
    desk.second.write_bytes(b"".join(change(desk.second.read_bytes().splitlines(keepends=True))))
    report = desk.report()
    assert not report.ok
    assert reason in report.broken[0].reason


def test_checkpoints_of_another_secret_are_not_believed(desk: Desk) -> None:
    """As when the whole state folder, keys included, was put in the place of another."""
    desk.write(1)
    assert "another key" in verify(desk.audit, KEY, read_checkpoints(desk.second, b"t" * 32)).broken[0].reason


def test_the_half_of_a_last_line_is_a_warning(desk: Desk) -> None:
    desk.write(1)
    desk.write(1)
    os.truncate(desk.second, desk.second.stat().st_size - 20)
    report = desk.report()
    assert (report.ok, report.warnings) == (True, ("checkpoints.jsonl: line 2 is not complete",))


@pytest.mark.seed("B7")
def test_retention_is_announced_before_a_part_goes(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_bytes=1, keep=3)
    for _ in range(6):
        desk.write(1)
    desk.close()
    assert desk.parts()[0].name.endswith(".00004.jsonl")
    assert desk.report().ok
    desk.parts()[0].unlink()
    (chain,) = desk.report().chains
    assert chain.broken is not None
    assert "missing" in chain.broken.reason


@pytest.mark.seed("B7")
def test_parts_that_the_key_alone_says_are_gone_are_missed(tmp_path: Path) -> None:
    """Whoever has the key can write an opening line that declares earlier parts to be gone."""
    desk = Desk(tmp_path, max_bytes=1, keep=3)
    for _ in range(4):
        desk.write(1, look=False)
    desk.keeper.look()
    desk.ledger.prune(99)
    desk.second.write_bytes(b"")
    points = CheckpointFile(desk.second, SEED, desk.ledger.chain)
    head = desk.ledger.head()
    assert head is not None and head.first == 2
    points.head(head._replace(first=0))
    assert verify(desk.audit, KEY).ok
    (chain,) = desk.report().chains
    assert chain.broken is not None
    assert "the parts before are missing, from 0 on" in chain.broken.reason


def test_a_chain_that_was_forgotten_is_not_missed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_age=30 * DAY)
    desk.write(1)
    desk.close()
    old = desk.ledger.chain
    for file in desk.audit.iterdir():
        os.utime(file, (desk.clock.wall(), desk.clock.wall()))
    desk.clock.advance(31 * DAY)
    desk.begin()
    desk.write(1)
    report = desk.report()
    assert (report.ok, [chain.chain for chain in report.chains]) == (True, [desk.ledger.chain])
    assert [json.loads(line)["chain"] for line in desk.second.read_bytes().splitlines() if b"forgot" in line] == [old]


def test_while_the_second_place_is_away_nothing_is_deleted_and_no_request_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(tmp_path, max_bytes=1, keep=2)
    away = desk.second.parent.rename(tmp_path / "away")
    for _ in range(5):
        desk.write(1)
    assert len(desk.parts()) == 6
    assert [record.getMessage() for record in caplog.records] == [
        "The audit log has no new checkpoint: No such file or directory"
    ]
    away.rename(desk.second.parent)
    desk.write(1)
    desk.close()
    assert (desk.report().ok, len(desk.parts())) == (True, 2)


def test_a_second_place_that_is_full_gets_whole_lines_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def full(fd: int, data: bytes) -> int:
        if b'"checkpoint"' not in data:
            return real(fd, data)
        monkeypatch.setattr(os, "write", refuse)
        return real(fd, data[:30])

    def refuse(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    desk.write(1)
    monkeypatch.setattr(os, "write", real)
    desk.write(1)
    report = desk.report()
    assert [chain.witnessed for chain in report.chains] == [2]
    assert [broken.reason for broken in report.broken] == ["no checkpoint: changed, or torn by a full disk"]


def test_parts_that_are_too_old_are_deleted_while_the_server_runs(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_age=3 * DAY)
    for _ in range(8):
        desk.write(1)
        desk.clock.advance(DAY + 60)
        desk.keeper.look()
    assert len(desk.parts()) <= 5
    desk.write(1)
    desk.close()
    report = desk.report()
    assert report.ok
    assert report.chains[0].records < 9


def test_the_thread_signs_the_end(desk: Desk) -> None:
    """The last round is made after the ledger was closed."""
    running = threading.active_count()
    desk.keeper.start()
    desk.write(1, look=False)
    desk.ledger.close()
    desk.keeper.close()
    assert threading.active_count() == running
    (line,) = desk.second.read_bytes().splitlines()
    assert (json.loads(line)["number"], json.loads(line)["end"]) == (2, "closed")
    assert desk.report().ok
