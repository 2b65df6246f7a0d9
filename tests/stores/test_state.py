from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from octavo.app import Octavo
from octavo.app.configuration import zero
from octavo.core.arguments import OwnArguments
from octavo.core.clock import FrozenClock
from octavo.core.private_folders import make_private
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail
from octavo.stores.state import Purpose, StateDirectory

PURPOSES = get_args(Purpose)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "deep" / ".octavo"


def test_a_new_directory_is_for_its_owner_only(home: Path) -> None:
    StateDirectory.open(home)
    assert mode(home) == 0o700
    assert {file.name: mode(file) for file in home.iterdir()} == {"lock": 0o600, "secret": 0o600, "version": 0o600}
    assert (home / "version").read_text(encoding="ascii") == "1\n"
    assert len((home / "secret").read_bytes()) == 32


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_folders_of_the_state_are_for_their_owner_whatever_the_umask(home: Path, umask: int) -> None:
    """Also those above it that had to be made: what others may rename, others may replace."""
    before = os.umask(umask)
    try:
        make_private(home / "journal" / "work")
    finally:
        os.umask(before)
    assert [mode(folder) for folder in (home.parent, home, *home.rglob("*"))] == [0o700] * 4


@pytest.mark.anyio
async def test_a_server_that_writes_and_searches_leaves_no_folder_open_to_others(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    before = os.umask(0)
    try:
        home = tmp_path / "new" / "state"
        async with Octavo(zero(tmp_path / "docs", write=True, environ={"XDG_STATE_HOME": str(home)})) as house:
            for tool, arguments in (("write", {"target": "a.md", "content": "a"}), ("search", {"query": "a"})):
                uri = f"tool://{tool}"
                who = house.works.identity.launched(None)
                await house.works.ask(
                    Call("invoke", Ref.parse(uri), who, Trail(), uri, arguments=OwnArguments(arguments))
                )
            house.ledger.flush()
    finally:
        os.umask(before)
    folders = [folder for folder in (tmp_path / "new", *(tmp_path / "new").rglob("*")) if folder.is_dir()]
    assert {folder.name for folder in folders} >= {"new", "state", "octavo", "audit", "journal", "files"}
    assert {str(folder): oct(mode(folder)) for folder in folders if mode(folder) != 0o700} == {}


def test_keys_survive_a_restart_and_differ_by_purpose(home: Path) -> None:
    first, second = StateDirectory.open(home), StateDirectory.open(home)
    assert [first.key(p) for p in PURPOSES] == [second.key(p) for p in PURPOSES]
    assert len({first.key(p) for p in PURPOSES} | {(home / "secret").read_bytes()}) == len(PURPOSES) + 1
    assert first.audit == home / "audit"


def test_processes_that_start_together_share_one_secret(home: Path) -> None:
    program = (
        "import sys, pathlib; from octavo.stores.state import StateDirectory; sys.stdin.readline();"
        "print(StateDirectory.open(pathlib.Path(sys.argv[1])).key('audit').hex())"
    )
    command = [sys.executable, "-c", program, str(home)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    keys = {process.communicate(timeout=30)[0] for process in processes}
    assert len(keys) == 1
    assert sorted(file.name for file in home.iterdir()) == ["lock", "secret", "version"]


@pytest.mark.parametrize(("name", "damage"), [("secret", b"short"), ("secret", b"x" * 33), ("version", b"\xff\xfe")])
def test_a_damaged_file_is_set_aside_and_said(
    home: Path, name: str, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    StateDirectory.open(home)
    (home / name).write_bytes(damage)
    state = StateDirectory.open(home, clock=FrozenClock(1234.0))
    assert state.path == home
    assert (home / f"{name}.corrupt-1234").read_bytes() == damage
    assert f"{name}.corrupt-1234" in caplog.text
    assert StateDirectory.open(home).key("mark") == state.key("mark")


def test_two_damaged_files_of_one_second_are_both_kept(home: Path) -> None:
    StateDirectory.open(home)
    for damage in (b"one", b"two"):
        (home / "secret").write_bytes(damage)
        StateDirectory.open(home, clock=FrozenClock(1234.0))
    assert {file.read_bytes() for file in home.glob("secret.corrupt-*")} == {b"one", b"two"}


def test_a_secret_that_others_could_read_is_not_used_again(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A repository can carry a state directory whose secret its author knows. Our choice."""
    before = StateDirectory.open(home).key("cursor")
    (home / "secret").chmod(0o644)
    assert StateDirectory.open(home).key("cursor") != before
    assert len(list(home.glob("secret.exposed-*"))) == 1
    assert "could be read by others" in caplog.text


def test_a_secret_that_is_a_link_is_set_aside(home: Path, tmp_path: Path) -> None:
    StateDirectory.open(home)
    planted = tmp_path / "planted"
    planted.write_bytes(b"p" * 32)
    (home / "secret").unlink()
    (home / "secret").symlink_to(planted)
    StateDirectory.open(home)
    assert not (home / "secret").is_symlink()
    assert planted.read_bytes() == b"p" * 32


def test_what_a_killed_process_left_half_written_is_cleared(home: Path) -> None:
    StateDirectory.open(home)
    (home / "secret.new-1-abcd").write_bytes(b"ha")
    StateDirectory.open(home)
    assert not list(home.glob("*.new-*"))


def test_a_directory_of_a_newer_octavo_is_left_alone(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    StateDirectory.open(home)
    (home / "version").write_text("99\n", encoding="ascii")
    secret = (home / "secret").read_bytes()
    assert StateDirectory.open(home).path is None
    assert "newer Octavo" in caplog.text
    assert ((home / "version").read_text(encoding="ascii"), (home / "secret").read_bytes()) == ("99\n", secret)


def test_without_a_place_to_write_state_is_kept_in_memory_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.WARNING):
        state = StateDirectory.open(tmp_path / "file" / ".octavo")
    assert (state.path, state.audit) == (None, None)
    assert "Nothing is kept" in caplog.text
    assert state.key("cursor") != StateDirectory.in_memory().key("cursor")


def test_the_secret_does_not_show(home: Path) -> None:
    state = StateDirectory.open(home)
    assert repr(state) == f"StateDirectory({home})"
    assert repr(StateDirectory.in_memory()) == "StateDirectory(in memory)"
    assert os.fspath(home) in repr(state)
