"""`octavo doctor` says what a machine gives, and fails only where something needed is missing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.services.fixtures import Service, valkey

from octavo.ops import doctor
from octavo.sandbox import landlock

pytestmark = pytest.mark.seed("F10")
__all__ = ["valkey"]


def findings(run: Run, *args: object) -> tuple[int, dict[str, Any]]:
    result = run("doctor", *args, "--json")
    told = json.loads(result.stdout)
    assert told["ok"] is (result.exit_code == 0)
    return result.exit_code, {one["about"]: one for one in told["findings"]}


def test_a_sound_machine_is_told_in_lines_and_leaves_no_trace(run: Run, empty: Path) -> None:
    served = empty / "served"
    served.mkdir()
    result = run("doctor", served, "--write")
    assert result.exit_code == 0, result.stdout
    for about in ("python", "clock", "kernel", "landlock", "root", "writing", "state", "extra pdf"):
        assert f" {about}: " in result.stdout
    assert list(served.iterdir()) == [] and not (empty / "state").exists()


def test_a_configuration_is_examined_as_it_stands(run: Run, folder: Path) -> None:
    code, told = findings(run)
    assert code == 0 and str(folder) in told["root"]["found"]


def test_the_store_is_named_and_not_made_and_one_that_cannot_be_reached_is_said(
    run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = empty / "octavo.yaml"
    config.write_text("sources: {d: {kind: memory, scheme: note}}\n", encoding="utf-8")
    code, told = findings(run)
    assert code == 0 and told["store"]["found"].endswith("store.db will be made")
    assert not (empty / ".octavo").exists()
    monkeypatch.setenv("STORE", "postgresql://octavo:hunter2@db.invalid/x")
    config.write_text(
        "sources: {d: {kind: memory, scheme: note}}\nstore: {kind: postgres, url: '${STORE}', schema: acme}\n",
        encoding="utf-8",
    )
    code, told = findings(run)
    assert code == 1 and told["store"]["found"].startswith("PostgreSQL, in the schema acme: ")
    assert told["keys"]["state"] == "problem" and "hunter2" not in str(told)
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    code, told = findings(run)
    assert code == 1 and "extra postgres" in told["store"]["advice"] and "hunter2" not in str(told)


def test_what_servers_share_is_asked_whether_it_answers(
    run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch, valkey: Service
) -> None:
    (empty / "octavo.yaml").write_text(
        "sources: {d: {kind: memory, scheme: note}}\nshared: {kind: redis, url: '${SHARED}'}\n", encoding="utf-8"
    )
    monkeypatch.setenv("SHARED", valkey.url)
    code, told = findings(run)
    assert code == 0 and (told["shared"]["state"], "answers" in told["shared"]["found"]) == ("ok", True)
    monkeypatch.setenv("SHARED", valkey.url.replace("unix://:", "unix://:hunter2"))
    code, told = findings(run)
    assert code == 0 and told["shared"]["state"] == "less" and "password" in told["shared"]["found"]
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    code, told = findings(run)
    assert code == 1 and "extra redis" in told["shared"]["advice"] and "hunter2" not in str(told)


def test_what_is_weaker_than_it_could_be_is_no_failure_and_says_what_to_do(
    run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b/c"):
        (empty / "served" / name).mkdir(parents=True)
    state = empty / "served" / "shared"
    state.mkdir(mode=0o755)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(doctor, "inotify_limit", lambda _: 2)
    monkeypatch.setattr(doctor, "has_tmpfile", lambda _: False)
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    monkeypatch.setattr(doctor, "state_directory", lambda _: state)
    code, told = findings(run, empty / "served", "--write")
    assert code == 0
    weaker = {about for about, one in told.items() if one["state"] == "less"}
    assert {"landlock", "writing", "queue", "state", "extra pdf", "extra sheets", "extra images"} <= weaker
    assert all(told[about]["advice"] for about in weaker)
    assert "0755" in told["state"]["found"]
    if "changes" in told:
        assert "max_user_watches" in told["changes"]["advice"]


def test_a_required_wall_that_cannot_be_and_a_clock_that_is_wrong_are_problems(
    run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty / "octavo.yaml").write_text(
        "sources: {d: {kind: file, roots: [.]}}\nserve: {landlock: require}\n", encoding="utf-8"
    )
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(doctor, "BEGINNING", 1e12)
    code, told = findings(run)
    assert code == 1
    assert told["landlock"]["state"] == told["clock"]["state"] == "problem"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_folder_that_cannot_be_made_is_a_problem(run: Run, empty: Path) -> None:
    (empty / "octavo.yaml").write_text(
        "sources: {d: {kind: file, roots: [.]}}\nstate: {path: /proc/none/state}\n", encoding="utf-8"
    )
    code, told = findings(run)
    assert code == 1 and told["state"]["state"] == "problem"


@pytest.mark.skipif(sys.platform != "linux", reason="programs of Linux")
def test_what_confines_programs_is_found_by_running_one(run: Run, folder: Path) -> None:
    file = folder / "octavo.yaml"
    programs = "\ntoolsets: [files, process]\ncommands: {programs: {say: {run: /bin/echo}}}\n"
    file.write_text(file.read_text(encoding="utf-8") + programs, encoding="utf-8")
    _, told = findings(run)
    assert told["commands"]["found"].startswith("programs are confined by ")
