"""Keeps one server for as long as any process of the test run uses it, however these end.

    python -m tests.services.keeper NAME FOLDER

Every user holds a shared lock on `FOLDER/users`. The keeper asks for the lock alone, and so gets it when the last has
gone; then it stops the server and removes the folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.services.engines import Absent, Server, engine

ROOT = Path(__file__).parents[2]


def keep(name: str, folder: Path) -> None:
    told, server = folder / "server.json", None
    try:
        server = Server(engine(name), folder / "d")
        server.begin()
        _write(told, {"address": str(server.address), "socket": str(server.socket)})
    except Absent as error:
        _write(told, {"absent": str(error)})
    with (folder / "users").open("ab") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def used(name: str, folder: Path) -> tuple[dict[str, str], int]:
    """What the keeper tells of its server, and the lock to hold while it is used. Begins it where none has."""
    paths = [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    folder.parent.mkdir(mode=0o711, exist_ok=True)
    if (owner := folder.parent.stat().st_uid) != os.getuid():
        return {"absent": f"{folder.parent} belongs to user {owner}"}, -1
    with (folder.parent / "begin").open("ab") as beginning:
        fcntl.flock(beginning, fcntl.LOCK_EX)
        while True:
            folder.mkdir(mode=0o711, exist_ok=True)
            lock = os.open(folder / "users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_SH)  # waits for one that is ending
            if _same(lock, folder / "users"):
                break
            os.close(lock)
        told = folder / "server.json"
        if not told.exists():
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.services.keeper", name, str(folder)], cwd=ROOT, env=environ,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            assert process.stdout is not None
            process.stdout.readline()  # comes when it has told, or ends with it
            process.stdout.close()
            process.returncode = 0  # it outlives this process, and nobody waits for it
        if not told.exists():
            return {"absent": f"the keeper of {name} ended at once"}, lock
        return json.loads(told.read_text(encoding="utf-8")), lock


def _same(lock: int, path: Path) -> bool:
    try:
        return os.fstat(lock).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _write(path: Path, told: dict[str, str]) -> None:
    path.write_text(json.dumps(told), encoding="utf-8")
    print("told", flush=True)
    os.close(1)


if __name__ == "__main__":
    keep(sys.argv[1], Path(sys.argv[2]))
