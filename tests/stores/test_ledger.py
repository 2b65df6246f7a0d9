"""Requirement A7 and B7: the audit log is complete, and a change to it is found."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.clock import FrozenClock
from octavo.core.errors import InternalError, Unrecorded
from octavo.core.ports.audit import Ledger
from octavo.stores.audit.ledger import FileLedger, MemoryLedger, verify

KEY = b"k" * 32


def write(directory: Path, *batches: int, close: bool = True, max_bytes: int = 1 << 20, keep: int = 16) -> FileLedger:
    ledger = FileLedger(directory, KEY, max_bytes=max_bytes, keep=keep, clock=FrozenClock())
    number = 0
    for size in batches:
        for _ in range(size):
            number += 1
            ledger.append(b'{"n":%d}' % number)
        ledger.flush()
    if close:
        ledger.close()
    return ledger


def parts(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.jsonl"), key=lambda file: (len(file.name), file.name))


def records(directory: Path) -> list[int]:
    found = []
    for file in parts(directory):
        for line in file.read_bytes().splitlines():
            value = json.loads(line)
            if "n" in value:
                found.append(value["n"])
    return found


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    return tmp_path / "audit"


@pytest.mark.seed("A7", "B7")
def test_a_closed_chain_verifies(audit: Path) -> None:
    ledger: Ledger = write(audit, 3, 1, 2)
    assert isinstance(ledger, FileLedger)
    report = verify(audit, KEY)
    (chain,) = report.chains
    assert (report.ok, chain.chain, chain.records, chain.batches, chain.end) == (True, ledger.chain, 6, 3, "closed")
    assert (chain.warnings, chain.lost, chain.files, report.records) == ((), 0, 1, 6)
    assert records(audit) == [1, 2, 3, 4, 5, 6]


def test_files_are_for_their_owner_only_and_named_by_their_beginning(audit: Path) -> None:
    write(audit, 1)
    assert stat.S_IMODE(audit.stat().st_mode) == 0o700
    names = sorted(file.name for file in audit.iterdir())
    assert all(name.startswith(f"20251115T094640Z-{os.getpid()}-") for name in names)
    assert [Path(name).suffix for name in names] == [".head", ".jsonl"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in audit.iterdir()} == {0o600}


def test_nothing_is_made_before_there_is_a_record(audit: Path) -> None:
    ledger = FileLedger(audit, KEY)
    ledger.flush()
    ledger.close()
    assert not audit.exists()


def test_a_batch_is_one_write(audit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = os.write

    def counted(fd: int, data: bytes) -> int:
        sizes.append(len(data))
        return real(fd, data)

    monkeypatch.setattr(os, "write", counted)
    ledger = write(audit, 5, close=False)
    assert len(sizes) == 1
    ledger.flush()
    assert len(sizes) == 1


def test_an_open_chain_verifies_as_open(audit: Path) -> None:
    write(audit, 2, close=False)
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.end, chain.records, chain.warnings) == (True, "open", 2, ())


def test_each_process_has_a_chain_and_all_are_walked(audit: Path) -> None:
    write(audit, 2)
    write(audit, 3)
    report = verify(audit, KEY)
    assert (report.ok, report.records) == (True, 5)
    assert sorted(chain.records for chain in report.chains) == [2, 3]


def test_a_record_cannot_pass_for_a_line_of_the_chain(audit: Path) -> None:
    ledger = FileLedger(audit, KEY)
    ledger.append(b'{"chain":"close","number":1,"mac":"00"}')
    ledger.append(b'{\n"n":\n1}')
    ledger.close()
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.records, chain.end) == (True, 2, "closed")
    assert records(audit) == [1]


def test_another_key_is_not_called_tampering_by_an_edit(audit: Path) -> None:
    write(audit, 1)
    (chain,) = verify(audit, b"o" * 32).chains
    assert chain.broken is not None
    assert chain.broken.reason == "sealed with another key"


@pytest.mark.seed("B7")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [*lines[:1], lines[1].replace(b"1", b"9"), *lines[2:]], "edited"),
        (lambda lines: [*lines[:2], *lines[3:]], "deleted"),
        (lambda lines: [*lines[:2], lines[2], *lines[2:]], "added"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "swapped"),
        (lambda lines: [*lines[:4], *lines[7:]], "deleted: batch 2"),
        (lambda lines: [lines[0], *lines[4:7], *lines[1:4], *lines[7:]], "edited or swapped"),
        (lambda lines: lines[1:], "opening line"),
        (lambda lines: lines[:7], "truncated"),
        (lambda lines: [*lines, b'{"n":7}\n'], "behind the end"),
        (lambda lines: [], "emptied"),
    ],
)
def test_a_change_is_named(audit: Path, change, reason: str) -> None:  # type: ignore[no-untyped-def]
    write(audit, 2, 2, 2)
    (file,) = audit.glob("*.jsonl")
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))
    (chain,) = verify(audit, KEY).chains
    assert chain.broken is not None
    assert reason in chain.broken.reason


def test_a_break_says_where_and_what_was_sound_before_it(audit: Path) -> None:
    write(audit, 2, 2, 2)
    (file,) = audit.glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b'{"n":4}', b'{"n":0}'))
    (chain,) = verify(audit, KEY).chains
    assert chain.broken is not None
    assert (chain.broken.file, chain.broken.line, chain.records, chain.batches) == (file.name, 5, 2, 1)


@pytest.mark.seed("B7")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_random_change_of_a_closed_chain_is_found(data: st.DataObject) -> None:
    """Goal R11: edits, deletions, swaps, truncations, in one file or over several."""
    with TemporaryDirectory() as folder:
        audit = Path(folder)
        batches = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6), label="batches")
        write(audit, *batches, max_bytes=data.draw(st.sampled_from([300, 1 << 20]), label="max_bytes"))
        files = parts(audit)
        file = data.draw(st.sampled_from(files), label="file")
        before = file.read_bytes()
        lines = before.splitlines(keepends=True)
        kind = data.draw(st.sampled_from(["edit", "delete", "swap", "double", "cut", "remove"]), label="kind")
        at = data.draw(st.integers(0, len(lines) - 1), label="line")
        if kind == "edit":
            place = data.draw(st.integers(0, len(before) - 1), label="byte")
            after = before[:place] + bytes([data.draw(st.integers(0, 255))]) + before[place + 1 :]
        elif kind == "delete":
            after = b"".join(lines[:at] + lines[at + 1 :])
        elif kind == "swap":
            other = data.draw(st.integers(0, len(lines) - 1), label="other")
            lines[at], lines[other] = lines[other], lines[at]
            after = b"".join(lines)
        elif kind == "double":
            after = b"".join([*lines[: at + 1], *lines[at:]])
        elif kind == "cut":
            after = before[: data.draw(st.integers(0, len(before) - 1), label="cut")]
        else:
            after = None
        if after is None:
            file.unlink()
        else:
            file.write_bytes(after)
        assert verify(audit, KEY).ok is (after == before)


@pytest.mark.seed("B7")
def test_swapped_renamed_and_transplanted_files_are_found(audit: Path) -> None:
    write(audit, 2, 2, 2, max_bytes=1)
    one, two, *_ = parts(audit)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    assert not verify(audit, KEY).ok
    one.write_bytes(first)
    two.write_bytes(second)
    assert verify(audit, KEY).ok
    two.rename(audit / "20200101T000000Z-1-00000000.jsonl")
    report = verify(audit, KEY)
    assert [chain.ok for chain in report.chains] == [False, False]


def test_a_changed_head_is_found(audit: Path) -> None:
    write(audit, 2)
    (head,) = audit.glob("*.head")
    head.write_bytes(head.read_bytes().replace(b'"number":2', b'"number":1'))
    (chain,) = verify(audit, KEY).chains
    assert chain.broken is not None
    assert "head" in chain.broken.reason


def test_a_deleted_chain_is_missed_while_its_head_is_there(audit: Path) -> None:
    write(audit, 2)
    next(audit.glob("*.jsonl")).unlink()
    assert not verify(audit, KEY).ok


def test_what_cannot_be_found_without_a_checkpoint_is_reported_as_open(audit: Path) -> None:
    """The limit that the module's docstring states."""
    write(audit, 2, 2)
    (file,) = audit.glob("*.jsonl")
    next(audit.glob("*.head")).unlink()
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:4]))
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.end, chain.records) == (True, "open", 2)


@pytest.mark.parametrize(
    "content", (b"", bytes(500), b"\n", b'{"chain":"open"'), ids=("nothing", "zeros", "a line", "half")
)
def test_an_open_chain_whose_file_was_emptied_is_broken(audit: Path, content: bytes) -> None:
    """Its file was made with its first batch in it, so a kill leaves none of these."""
    write(audit, 2, 2, close=False)
    (file,) = audit.glob("*.jsonl")
    file.write_bytes(content)
    assert not verify(audit, KEY).ok


def test_a_part_that_was_overwritten_with_zeros_is_broken(audit: Path) -> None:
    write(audit, 1, 1, max_bytes=1, close=False)
    parts(audit)[-1].write_bytes(bytes(500))
    assert not verify(audit, KEY).ok


def test_a_kill_before_the_first_batch_leaves_no_chain(audit: Path, disk: Disk) -> None:
    disk.full, disk.grace = True, 100
    ledger = FileLedger(audit, KEY)
    ledger.append(b'{"n":1}')
    with pytest.raises(Unrecorded):
        ledger.flush()
    assert verify(audit, KEY).chains == ()
    disk.full = False
    ledger.flush()
    assert records(audit) == [1] and verify(audit, KEY).ok


@pytest.mark.parametrize("left", (0, 1, 2, 3))
@pytest.mark.parametrize("closed", (True, False))
def test_what_is_cut_off_a_live_chain_is_noticed_and_marked_in_it(
    audit: Path, left: int, closed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FrozenClock(1_763_200_000.0)
    ledger = FileLedger(audit, KEY, clock=clock, fail_closed=closed)
    for number in range(2):
        ledger.append(b'{"n":%d}' % number)
        ledger.flush()
    (file,) = audit.glob("*.jsonl")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:left]))
    with pytest.raises(Unrecorded) if closed else contextlib.nullcontext():
        ledger.check()
    assert "cut off" in caplog.text
    assert not verify(audit, KEY).ok, "without any further record"
    ledger.append(b'{"n":3}')
    with pytest.raises(Unrecorded) if closed else contextlib.nullcontext():
        ledger.flush()
    assert closed or 3 in records(audit)
    with contextlib.suppress(Unrecorded):
        ledger.close()
    assert not verify(audit, KEY).ok and caplog.text.count("cut off") == (2 if closed else 1)


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_torn_tail_is_a_warning_and_not_tampering(audit: Path, cut: int) -> None:
    write(audit, 2, 2, close=False)
    (file,) = audit.glob("*.jsonl")
    os.truncate(file, file.stat().st_size - cut)
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.records) == (True, 2)
    assert "incomplete tail" in chain.warnings[0]


def test_a_chain_goes_on_in_a_new_file_when_one_is_full(audit: Path) -> None:
    write(audit, *[1] * 10, max_bytes=600)
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.records, chain.batches, chain.end) == (True, 10, 10, "closed")
    assert chain.files > 2
    assert records(audit) == list(range(1, 11))


@pytest.mark.seed("B7")
def test_retention_is_part_of_the_chain_and_other_deletions_are_not(audit: Path) -> None:
    write(audit, *[1] * 10, max_bytes=1, keep=3)
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.files, chain.end) == (True, 3, "closed")
    first, second, _ = parts(audit)
    kept = first.read_bytes()
    first.unlink()
    (chain,) = verify(audit, KEY).chains
    assert chain.broken is not None
    assert "missing" in chain.broken.reason
    first.write_bytes(kept)
    second.unlink()
    (chain,) = verify(audit, KEY).chains
    assert chain.broken is not None
    assert "is missing" in chain.broken.reason


def test_chains_that_ended_are_forgotten_oldest_first_when_all_take_too_much_room(audit: Path) -> None:
    """A process that still runs keeps its chain, and so does one that was closed while there is room."""
    clock = FrozenClock()

    def chain(*, close: bool) -> str:
        clock.advance(60)
        ledger = FileLedger(audit, KEY, max_bytes=1200, keep=2, clock=clock)
        ledger.append(b'{"n":%b}' % (b"1" * 500))
        ledger.flush()
        if close:
            ledger.close()
        return ledger.chain

    running, *closed = chain(close=False), *(chain(close=True) for _ in range(4))
    assert {report.chain for report in verify(audit, KEY).chains} == {running, *closed[-2:]}
    assert {file.name.partition(".")[0] for file in audit.glob("*.head")} == set(closed[-2:])
    assert verify(audit, KEY).ok


def test_chains_that_ended_are_forgotten_when_they_are_too_old(audit: Path) -> None:
    clock = FrozenClock()
    for age in (5000, 50):
        old = write(audit, 1)
        for file in audit.glob(f"{old.chain}*"):
            os.utime(file, (clock.wall() - age, clock.wall() - age))
    fresh = FileLedger(audit, KEY, max_age=1000, clock=clock)
    fresh.append(b"{}")
    fresh.close()
    report = verify(audit, KEY)
    assert (report.ok, {chain.chain for chain in report.chains}) == (True, {old.chain, fresh.chain})


def test_a_part_that_was_begun_long_ago_is_continued_and_what_is_too_old_goes(audit: Path) -> None:
    clock = FrozenClock()
    ledger = FileLedger(audit, KEY, max_age=250, clock=clock)
    for number in range(6):
        ledger.append(b'{"n":%d}' % number)
        ledger.flush()
        ledger.rotate(older=100)
        clock.advance(101)
        ledger.rotate(older=100)
    ledger.close()
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.end, records(audit)) == (True, "closed", [3, 4, 5])


def test_a_kill_while_a_new_part_is_made_is_forgiven(audit: Path) -> None:
    ledger = write(audit, 1, 1, max_bytes=1, close=False)
    files = parts(audit)
    assert files[-1].stat().st_size == 0
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.records, chain.end, len(chain.warnings)) == (True, 2, "open", 1)
    files[-1].unlink()
    assert not verify(audit, KEY).ok
    assert ledger.chain in files[-1].name


class Disk:
    """Refuses to write while `full`, after letting `grace` bytes through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full, self.grace, self.step = False, 0, 1 << 30
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, fd: int, data: bytes) -> int:
        if self.full and not self.grace:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = self._write(fd, data[: min(self.step, self.grace or 1 << 30)])
        self.grace = 0
        return count


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_short_writes_are_completed(audit: Path, disk: Disk) -> None:
    disk.step = 7
    write(audit, 3, 2)
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.records, chain.end) == (True, 5, "closed")


@pytest.mark.seed("A7")
@pytest.mark.parametrize("grace", [0, 1, 50])
def test_a_full_disk_stops_answers_and_loses_nothing(audit: Path, disk: Disk, grace: int) -> None:
    ledger = write(audit, 2, close=False)
    disk.full, disk.grace = True, grace
    ledger.append(b'{"n":3}')
    for _ in range(2):
        with pytest.raises(InternalError, match="The audit log cannot be written"):
            ledger.flush()
    disk.full = False
    ledger.append(b'{"n":4}')
    ledger.flush()
    ledger.close()
    assert records(audit) == [1, 2, 3, 4]
    assert verify(audit, KEY).ok


def test_a_ledger_that_may_fail_open_says_what_it_lost(
    audit: Path, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = FileLedger(audit, KEY, fail_closed=False)
    disk.full = True
    for _ in range(3):
        ledger.append(b"{}")
        ledger.flush()
    disk.full = False
    ledger.append(b'{"n":1}')
    ledger.close()
    (chain,) = verify(audit, KEY).chains
    assert (chain.ok, chain.records, chain.lost) == (True, 1, 3)
    assert len(caplog.records) == 1


def test_a_ledger_that_is_closed_refuses(audit: Path) -> None:
    ledger = write(audit, 1)
    ledger.close()
    ledger.append(b"{}")
    with pytest.raises(InternalError):
        ledger.flush()
    assert verify(audit, KEY).ok


def test_sync_always_reaches_the_disk_before_flush_returns(audit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fdatasync

    def noted(fd: int) -> None:
        synced.append(os.fstat(fd).st_size)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", noted)
    ledger = FileLedger(audit, KEY, sync="always")
    ledger.append(b'{"n":1}')
    ledger.flush()
    (file,) = audit.glob("*.jsonl")
    assert synced == [file.stat().st_size]


def test_a_flush_waits_for_the_one_that_is_under_way(audit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an answer could leave before its record, which another thread is still writing."""
    inside, go_on = threading.Event(), threading.Event()
    real = os.write

    def slow(fd: int, data: bytes) -> int:
        inside.set()
        assert go_on.wait(5)
        return real(fd, data)

    monkeypatch.setattr(os, "write", slow)
    ledger = FileLedger(audit, KEY)
    ledger.append(b'{"n":1}')
    first, second = threading.Thread(target=ledger.flush), threading.Thread(target=ledger.flush)
    first.start()
    assert inside.wait(5)
    second.start()
    assert second.is_alive()
    go_on.set()
    first.join(5)
    second.join(5)
    assert records(audit) == [1]


@pytest.mark.seed("A7", "F9")
def test_after_a_kill_every_flushed_record_is_there_exactly_once(audit: Path) -> None:
    """The child says what it flushed, as a server says it by answering; then it is killed in mid-work."""
    program = """
import pathlib, sys
from octavo.stores.audit.ledger import FileLedger
ledger = FileLedger(pathlib.Path(sys.argv[1]), b"k" * 32, max_bytes=20_000, keep=1000)
number = 0
while True:
    for _ in range(number % 7 + 1):
        number += 1
        ledger.append(b'{"n":%d}' % number)
    ledger.flush()
    print(number, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program, str(audit)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(500)]
    process.send_signal(signal.SIGKILL)
    lines += [line for line in process.stdout if line.endswith("\n")]
    process.wait(10)
    process.stdout.close()
    report = verify(audit, KEY)
    assert report.ok
    found = records(audit)
    assert set(range(1, int(lines[-1]) + 1)) <= set(found)
    assert len(found) == len(set(found))


def test_memory_keeps_what_was_flushed(audit: Path) -> None:
    ledger = MemoryLedger(keep=2)
    for number in range(3):
        ledger.append(b"%d" % number)
    assert not ledger.records
    ledger.flush()
    assert ledger.records == (b"1", b"2")
