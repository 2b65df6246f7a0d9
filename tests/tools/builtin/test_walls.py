"""Programs where the kernel gives less: what still holds, and what is said."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.tools.builtin.conftest import Serve
from tests.tools.builtin.test_commands import (
    ENDLESS,
    HOSTILE,
    configuration,
    contained,
    printed,
    processes_with,
    python,
    until,
)

from octavo.core.errors import SourceUnavailable
from octavo.tools.builtin.process import running

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="programs of Linux")]

WITHOUT = """
import importlib.util
found = importlib.util.spec_from_file_location("launch", {launch!r})
launch = importlib.util.module_from_spec(found)
found.loader.exec_module(launch)
{change}
launch.main()
"""
NAMESPACES = "launch._apart = lambda order: []"
LANDLOCK = "launch.landlock.version = lambda: 0"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No namespaces, as in many containers."""
    change_launcher(monkeypatch, tmp_path, NAMESPACES)


def change_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str) -> None:
    file = tmp_path / "launch.py"
    file.write_text(WITHOUT.format(launch=running._LAUNCH, change=change), encoding="utf-8")
    monkeypatch.setattr(running, "_LAUNCH", str(file))


@pytest.mark.parametrize("kind", HOSTILE)
async def test_without_namespaces_hostile_programs_are_contained_too(
    serve: Serve, kind: str, tmp_path: Path, without: None
) -> None:
    _, result = await contained(serve, kind, tmp_path)
    assert (result.structured or {})["confined"] == ["landlock"]


async def test_without_namespaces_too_a_program_ends_when_the_server_is_killed(
    serve: Serve, tmp_path: Path, without: None
) -> None:
    """Which kills the launcher: the program must not outlive that."""
    mark = f"mark-{tmp_path.name}"
    code = f'# {mark}\nopen("up", "w")\n{ENDLESS}'
    tools = await serve(configuration(f"bad: {python(code, ', write: true')}", write=True))
    call = asyncio.ensure_future(tools("run_command", program="bad"))
    await until((tools.root / "up").exists)
    for launcher in processes_with(str(tmp_path / "launch.py")):
        os.kill(int(launcher), signal.SIGKILL)
    await until(lambda: not processes_with(mark))
    await call


async def test_without_namespaces_landlock_still_refuses_tcp_and_files(
    serve: Serve, tmp_path: Path, without: None
) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    code = (
        'import socket\ntry: socket.create_connection(("127.0.0.1", 9), 5)\nexcept OSError as e: print(e)\n'
        f'open("{tmp_path}/secret")'
    )
    tools = await serve(configuration(f"try: {python(code)}"))
    told = printed(await tools("run_command", program="try"))
    assert "[Errno 13]" in told and "PermissionError" in told


@pytest.mark.parametrize("change", [NAMESPACES, LANDLOCK], ids=["namespaces", "landlock"])
async def test_what_is_required_and_lacking_keeps_programs_from_running(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    change_launcher(monkeypatch, tmp_path, change)
    tools = await serve(configuration("say: {run: echo}", commands="confine: require"))
    with pytest.raises(SourceUnavailable, match=r"commands\.confine requires"):
        await tools("run_command", program="say")


async def test_where_all_walls_stand_requiring_them_changes_nothing(serve: Serve) -> None:
    tools = await serve(configuration("say: {run: echo}", commands="confine: require"))
    result = await tools("run_command", program="say")
    assert {"landlock", "network", "processes"} <= {*(result.structured or {})["confined"]}


async def test_a_program_that_went_away_since_the_start_is_told(serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "tool.sh"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    script.chmod(0o755)
    tools = await serve(configuration(f"tool: {{run: {script}}}, wait: {python(ENDLESS)}"))
    script.unlink()
    with pytest.raises(SourceUnavailable, match="could not be started"):
        await tools("run_command", program="tool")
