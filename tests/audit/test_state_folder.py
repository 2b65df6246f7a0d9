"""`fail_closed` means it: a state folder that cannot be used, or vanishes, made for real."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.audit.disks import small_disk
from tests.e2e.harness import LIMIT, Place, Server, octavo

from octavo.stores.audit.ledger import FileLedger
from octavo.stores.state import StateDirectory

CONFIGURATION = "version: 1\nsources: {work: {kind: file, roots: [./root], write: true}}\n"
pytestmark = pytest.mark.seed("A7")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.edit("guide.md", "x")
    (tmp_path / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    return made


def a_file(state: Path) -> None:
    state.write_text("x", encoding="utf-8")


def of_a_newer_layout(state: Path) -> None:
    state.mkdir(mode=0o700)
    (state / "version").write_text("99\n", encoding="utf-8")


def that_cannot_be_locked(state: Path) -> None:
    (state / "lock").mkdir(parents=True)
    state.chmod(0o700)


def of_another_user(state: Path) -> None:
    state.mkdir(mode=0o700)
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    os.chown(state, 12345, 12345)


FAULTS: dict[str, Callable[[Path], None]] = {
    "a file": a_file,
    "a newer layout": of_a_newer_layout,
    "no locks": that_cannot_be_locked,
    "another user's": of_another_user,
}


def started(place: Place, *more: str | Path, within: Sequence[str] = ()) -> subprocess.CompletedProcess[bytes]:
    """On stdio, with a client that leaves at once."""
    return subprocess.run(
        [*within, *octavo("serve", *more)],
        cwd=place.base,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_state_folder_that_cannot_be_used_stops_the_start_unless_it_may_fail(place: Place, fault: str) -> None:
    FAULTS[fault](place.base / ".octavo")
    config = place.base / "octavo.yaml"
    done = started(place, "--config", config)
    assert done.returncode == 1, done.stderr
    assert b"cannot be used" in done.stderr and b"Traceback" not in done.stderr
    config.write_text(f"{CONFIGURATION}audit: {{fail_closed: false}}\n", encoding="utf-8")
    done = started(place, "--config", config)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"Nothing is kept") == 1


def a_file_for_the_log(state: Path) -> None:
    state.mkdir(mode=0o700)
    (state / "audit").write_text("x", encoding="utf-8")


def a_log_that_links_to_nothing(state: Path) -> None:
    state.mkdir(mode=0o700)
    (state / "audit").symlink_to(state / "nothing")


def a_log_that_cannot_be_written(state: Path) -> None:
    (state / "audit").mkdir(parents=True)
    state.chmod(0o700)
    (state / "audit").chmod(0o500)
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")


LOGS = (a_file_for_the_log, a_log_that_links_to_nothing, a_log_that_cannot_be_written)


@pytest.mark.parametrize("spoil", LOGS)
def test_an_audit_log_that_cannot_be_used_stops_the_start_unless_it_may_fail(
    place: Place, spoil: Callable[[Path], None]
) -> None:
    spoil(place.base / ".octavo")
    config = place.base / "octavo.yaml"
    done = started(place, "--config", config)
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.decode().splitlines()
    assert "The audit log" in line and "cannot be used" in line
    config.write_text(f"{CONFIGURATION}audit: {{fail_closed: false}}\n", encoding="utf-8")
    done = started(place, "--config", config)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"No request is on record") == 1


def a_lost_secret(state: Path) -> None:
    with contextlib.closing(FileLedger(StateDirectory.open(state).audit or state, b"k" * 32)) as ledger:
        ledger.append(b"{}")
    (state / "secret").unlink()


def test_a_lost_secret_stops_the_start_while_there_are_chains_that_it_sealed(place: Place) -> None:
    config, state = place.base / "octavo.yaml", place.base / ".octavo"
    with place.serve("--config", config, "--no-auth") as server:
        assert server.asking().ask("resources/read", {"uri": "file://guide.md"}).result
    kept = (state / "secret").read_bytes()
    (state / "secret").unlink()
    done = started(place, "--config", config)
    assert done.returncode == 1 and b"The secret of" in done.stderr, "what it sealed could never be verified again"
    assert not (state / "secret").exists()
    (state / "secret").write_bytes(kept)
    (state / "secret").chmod(0o600)
    assert started(place, "--config", config).returncode == 0
    assert place.run("audit", "verify", "--config", config).returncode == 0


def test_a_lost_secret_is_said_where_a_start_may_go_on(place: Place) -> None:
    config = place.base / "octavo.yaml"
    config.write_text(f"{CONFIGURATION}audit: {{fail_closed: false}}\n", encoding="utf-8")
    a_lost_secret(place.base / ".octavo")
    with place.serve("--config", config, "--no-auth") as server:
        assert server.log.wait_for("they no longer verify")
        assert readiness(server) == {"status": "ready", "audit": {"unverifiable": 1}}
    findings = json.loads(place.run("doctor", "--config", config, "--json").stdout)["findings"]
    assert "1 chain(s) were sealed with another secret" in [one["found"] for one in findings]
    assert b"another key" in place.run("audit", "verify", "--config", config).stdout.encode()


def test_a_state_folder_without_chains_may_lose_its_secret(place: Place) -> None:
    StateDirectory.open(place.base / ".octavo")
    (place.base / ".octavo" / "secret").unlink()
    assert started(place, "--config", place.base / "octavo.yaml").returncode == 0


def a_link_to_nothing(state: Path) -> None:
    state.symlink_to(state.parent / "nothing")


@pytest.mark.parametrize("spoil", (*FAULTS.values(), *LOGS, a_link_to_nothing, a_lost_secret))
@pytest.mark.parametrize("closed", (True, False))
def test_the_doctor_says_what_the_start_says(place: Place, spoil: Callable[[Path], None], closed: bool) -> None:
    spoil(place.base / ".octavo")
    config = place.base / "octavo.yaml"
    config.write_text(f"{CONFIGURATION}audit: {{fail_closed: {str(closed).lower()}}}\n", encoding="utf-8")
    before = sorted(place.base.rglob("*"))
    told = place.run("doctor", "--config", config, "--json")
    assert sorted(place.base.rglob("*")) == before
    (problem,) = (one for one in json.loads(told.stdout)["findings"] if one["about"] == "state")
    assert told.returncode == 1 and problem["state"] == "problem"
    said = started(place, "--config", config).stderr.decode()
    assert problem["found"] in said and problem["advice"] in said


def test_an_audit_log_on_a_disk_that_can_only_be_read_stops_the_start(place: Place) -> None:
    log = place.base / ".octavo" / "audit"
    log.parent.mkdir(mode=0o700)
    with small_disk(log) as disk:
        subprocess.run([*disk.enter, "mount", "-o", "remount,ro", str(log)], check=True, timeout=30)
        done = started(place, "--config", place.base / "octavo.yaml", within=disk.enter)
    assert done.returncode == 1 and b"Read-only file system" in done.stderr


def test_a_log_whose_place_is_taken_before_the_first_record_ends_readiness(place: Place) -> None:
    with place.serve("--config", place.base / "octavo.yaml", "--no-auth") as server:
        assert status(server) == 200
        (place.base / ".octavo" / "audit").write_text("in the way", encoding="utf-8")
        assert status(server) == 503


def test_a_state_folder_that_can_only_be_read_stops_the_start(place: Place) -> None:
    with small_disk(place.base / ".octavo") as disk:
        subprocess.run([*disk.enter, "mount", "-o", "remount,ro", str(place.base / ".octavo")], check=True, timeout=30)
        done = started(place, "--config", place.base / "octavo.yaml", within=disk.enter)
    assert done.returncode == 1 and b"Read-only file system" in done.stderr


def test_without_a_configuration_a_home_that_cannot_be_written_stops_nobody(place: Place) -> None:
    (place.base / "state").write_text("in the way", encoding="utf-8")
    done = started(place, place.root)
    assert done.returncode == 0
    (line,) = done.stderr.decode().splitlines()
    assert "Nothing is kept" in line


def status(server: Server) -> int:
    address = server.url.removesuffix("/mcp") + "/readyz"
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def readiness(server: Server) -> object:
    with urllib.request.urlopen(server.url.removesuffix("/mcp") + "/readyz", timeout=30) as answer:
        return json.load(answer)


@pytest.mark.parametrize("closed", (True, False))
def test_a_state_folder_that_vanishes_ends_readiness_and_answers_unless_it_may_fail(place: Place, closed: bool) -> None:
    config = place.base / "octavo.yaml"
    config.write_text(f"{CONFIGURATION}audit: {{fail_closed: {str(closed).lower()}}}\n", encoding="utf-8")
    state, away = place.base / ".octavo", place.base / "away"
    writing = {"name": "write", "arguments": {"target": "new.md", "content": "x"}}
    with place.serve("--config", config, "--no-auth") as server:
        asking = server.asking()
        assert asking.ask("resources/read", {"uri": "file://guide.md"}).result and status(server) == 200
        state.rename(away)
        if not closed:
            assert asking.ask("resources/read", {"uri": "file://guide.md"}).result and status(server) == 200
            assert server.log.wait_for("its file is gone")
            return
        assert status(server) == 503
        answer = asking.ask("tools/call", writing)
        assert answer.status == 503 or answer.result["isError"]
        assert asking.ask("resources/read", {"uri": "file://guide.md"}).status == 503
        assert not (place.root / "new.md").exists() and not state.exists()
        away.rename(state)
        assert asking.ask("resources/read", {"uri": "file://guide.md"}).result and status(server) == 200
    done = place.run("audit", "verify", "--config", config)
    assert done.returncode == 0, done.stdout
