"""What is told as failed has not happened: an audit log on a small disk of its own that fills up for real."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.audit.disks import SmallDisk, small_disk
from tests.e2e.harness import ERAS, Place, Server, octavo

KEY = "octavo_writer-key-for-tests-0123456789"
CONFIGURATION = """\
version: 1
sources:
  work: {kind: file, roots: [./root], write: true}
agents:
  writer: {key: "file:keys/writer"}
policy:
  - {who: "*", may: "*", what: "**"}
limits: {per_principal: off}
"""
pytestmark = pytest.mark.seed("A7")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "keys/writer").write_text(f"{KEY}\n", encoding="utf-8")
    (tmp_path / "keys/writer").chmod(0o600)
    (tmp_path / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / ".octavo").mkdir(mode=0o700)
    return made


@pytest.fixture
def disk(place: Place) -> Iterator[SmallDisk]:
    with small_disk(place.base / ".octavo/audit") as mounted:
        yield mounted


def serving(place: Place, disk: SmallDisk) -> Any:
    config = place.base / "octavo.yaml"
    return place.start(*disk.enter, *octavo("serve", "--config", config, "--http", "127.0.0.1:0"))


def verified(place: Place, disk: SmallDisk) -> Any:
    """Of a copy, which another machine could have made."""
    copy = place.base / "copy"
    shutil.copytree(place.base / ".octavo", copy, ignore=shutil.ignore_patterns("audit"))
    shutil.copytree(disk.seen(), copy / "audit", ignore=shutil.ignore_patterns("ballast"))
    file = place.base / "copy.yaml"
    file.write_text(f"{CONFIGURATION}state: {{path: ./copy}}\n", encoding="utf-8")
    done = place.run("audit", "verify", "--config", file, "--json")
    shutil.rmtree(copy)
    return json.loads(done.stdout)


def write(server: Server, number: int, era: str = "modern") -> Any:
    asking = server.asking(KEY, era).open()
    return asking.ask("tools/call", {"name": "write", "arguments": {"target": f"{number}.md", "content": "x"}})


def failed(answer: Any) -> bool:
    return "error" in answer.body or answer.result.get("isError", False)


def fill_the_last_page(server: Server) -> set[str]:
    """What the log has of its last page is room as well. Gives what was written until it was full."""
    for number in range(100, 200):
        if failed(write(server, number)):
            return {f"{one}.md" for one in range(100, number)}
    raise AssertionError("the disk never filled up")


@pytest.mark.parametrize("era", ERAS)
def test_on_a_full_disk_nothing_is_changed_and_every_client_gets_a_whole_answer(
    place: Place, disk: SmallDisk, era: str
) -> None:
    with serving(place, disk) as server:
        server.ready()
        assert not failed(write(server, 0, era))
        opened = [server.asking(KEY, era).open() for _ in range(12)]
        disk.fill()
        done = fill_the_last_page(server)
        with ThreadPoolExecutor(12) as clients:
            asked = [
                clients.submit(
                    asking.ask, "tools/call", {"name": "write", "arguments": {"target": f"{n}.md", "content": "x"}}
                )
                for n, asking in enumerate(opened, start=1)
            ]
            answers = [one.result() for one in asked]
        assert [answer.status for answer in answers] == [503] * 12
        assert {answer.error["data"]["reason"] for answer in answers} == {"unrecorded"}
        assert {file.name for file in place.root.iterdir()} == {"0.md", *done}
        disk.empty()
        assert not failed(write(server, 13, era)), "it goes on by itself"
    assert {file.name for file in place.root.iterdir()} == {"0.md", "13.md", *done}
    assert verified(place, disk)["ok"]


def test_while_a_disk_fills_up_what_is_told_as_failed_was_not_done(place: Place, disk: SmallDisk) -> None:
    with serving(place, disk) as server:
        server.ready()
        assert not failed(write(server, 0))
        disk.fill(leave=16 << 10)
        with ThreadPoolExecutor(4) as clients:
            answers = list(clients.map(lambda number: write(server, number), range(1, 101)))
        told = {number: not failed(answer) for number, answer in enumerate(answers, start=1)}
        there = {number: (place.root / f"{number}.md").exists() for number in told}
        assert told == there
        assert 0 < sum(told.values()) < 100, "the disk filled up meanwhile"
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(30)
    report = verified(place, disk)
    assert report["ok"] and not any(chain["unfinished"] for chain in report["chains"])


def test_a_delete_that_was_told_as_failed_was_not_done(place: Place, disk: SmallDisk) -> None:
    kept = place.edit("kept.md", "x")
    with serving(place, disk) as server:
        server.ready()
        asking = server.asking(KEY)
        disk.fill()
        fill_the_last_page(server)
        assert failed(asking.ask("tools/call", {"name": "delete", "arguments": {"target": "kept.md"}}))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(30)
    assert kept.exists()


def test_commands_that_write_say_a_sentence_on_a_full_disk(place: Place, disk: SmallDisk) -> None:
    disk.fill()
    command = [*disk.enter, *octavo("keys", "new", "writer", "--config", place.base / "octavo.yaml")]
    done = subprocess.run(command, env=place.environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "octavo: error: The audit log cannot be written" in done.stderr
    assert done.stdout == "" and not (place.base / ".octavo/store.db").exists()
