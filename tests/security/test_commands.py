"""Small counts of `python -m tests.security.commands`, and that its trace would see a breach."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.security import command_sight
from tests.security.commands import Wire
from tests.security.injections import strings

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="ptrace")


def module(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a tracer waits for all children that there are."""
    command = [sys.executable, "-m", f"tests.security.{name}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120, check=False)


@linux
@pytest.mark.slow
@pytest.mark.seed("T7")
def test_no_text_in_any_argument_starts_a_program_that_is_not_listed() -> None:
    done = module("commands", "--strings", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 unlisted, 0 with other words, 0 canaries, 0 incidents" in done.stdout


@linux
def test_the_trace_sees_what_a_shell_starts(tmp_path: Path) -> None:
    done = module("tracing", "/bin/sh", "-c", f"touch {tmp_path}/canary; (setsid ls | cat) > /dev/null")
    names = {os.path.basename(json.loads(line)[1][0]) for line in done.stdout.splitlines()}
    assert {"sh", "touch", "ls", "cat"} <= names
    assert (tmp_path / "canary").exists()


def test_there_are_enough_different_strings() -> None:
    assert len({*strings(2000, "/c")}) == 2000


@linux
@pytest.mark.slow
@pytest.mark.seed("T9")
def test_parallel_calls_leave_nothing_behind() -> None:
    done = module("parallel_calls", "--calls", "60")
    assert done.returncode == 0, done.stdout + done.stderr


@linux
@pytest.mark.slow
def test_a_server_that_is_killed_takes_its_programs_along(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    file = tmp_path / "octavo.yaml"
    file.write_text(
        """
version: 1
sources: {work: {kind: file, roots: [./work]}}
toolsets: [process]
policy: [{who: "*", may: "*", what: "**", approve: never}]
commands: {programs: {hang: {run: [sleep, "1000"]}}}
""",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "octavo", "serve", "--config", str(file)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    wire = Wire(process)
    wire.ask("tools/call", {"name": "start_process", "arguments": {"program": "hang"}})
    wire.all_answered()
    family = below(process.pid)
    assert len(family) >= 1
    process.kill()
    process.wait(20)
    wire.close()
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in family):
        assert time.monotonic() < deadline, "a program outlived its server"
        os.sched_yield()


def below(pid: int) -> set[int]:
    """All descendants, as /proc tells them."""
    found, new = set[int](), {pid}
    while new:
        told = [Path(f"/proc/{one}/task/{one}/children").read_text(encoding="ascii") for one in new]
        new = {int(child) for text in told for child in text.split()} - found
        found |= new
    return found


@linux
@pytest.mark.seed("T7")
def test_no_program_tells_or_changes_what_its_caller_may_not() -> None:
    """A few random policies; `python -m tests.security.command_sight` has hundreds."""
    figures = asyncio.run(command_sight.run(2, seed=4))
    assert figures.faults == [] and figures.shown and figures.withheld, str(figures)


@linux
def test_a_few_policies_are_no_fault() -> None:
    done = module("command_sight", "--policies", "1", "--over", "http", "--era", "handshake")
    assert done.returncode == 0 and ", 0 faults" in done.stdout, done.stdout + done.stderr
