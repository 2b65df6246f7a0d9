"""README.md and README.ko.md, command by command in a fresh copy of this checkout, up to the first surprise.

    python bench/readme.py [--only README.md]

Each fenced command is typed as it stands, and what the page shows below it has to be printed (`...` is anything). Three
things are other than on the page, and each line says so: what is installed is that of the Python that runs this, so
that nothing is downloaded; the port of the demo is a free one; a folder of ours stands for DIR. Not run are `make
test`, which runs this, and the programs of others (`claude`, `gemini`, `npx`): their lines must be those that the demo
prints, or end in a command of ours that is run. Prints seconds, lines and command; exits with 1 at a surprise.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "README.ko.md")
PARTS = ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock", *PAGES, "src", "examples")
NEVER = shutil.ignore_patterns("__pycache__", ".octavo", ".keys", "*.egg-info")
PORT, FOLDER = "8321", "DIR"
LIMIT = 60.0  # seconds for a line to appear, on a machine that is busy
OTHERS = ("claude", "gemini", "npx")
_FENCE = re.compile(r"^```(bash|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`(handbook/[\w/.-]+\.md)`")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
ASKED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "readme", "version": "1"}},
}


class Surprise(Exception):
    """What nobody would have expected, with what was printed."""


@dataclass(frozen=True)
class Command:
    """As it stands, what is shown below it, and the file that the text above it says to change."""

    line: str
    shown: tuple[str, ...]
    edits: str | None

    @property
    def typed(self) -> str:
        return re.sub(r"\s+# .*", "", self.line)


def commands(page: str) -> Iterator[Command]:
    end = 0
    for fence in _FENCE.finditer(page):
        above = page[end : fence.start()].rstrip().rpartition("\n\n")[2]
        end, named = fence.end(), _FILE.search(above)
        lines = fence[2].splitlines()
        if fence[1] == "bash":
            yield from (Command(line, (), None) for line in lines if line.strip())
            continue
        for block in re.split(r"^\$ ", fence[2], flags=re.MULTILINE)[1:]:
            line, *shown = block.splitlines()
            yield Command(line, tuple(shown), named[1] if named else None)


class Reader:
    """Somebody who does what the page says: one terminal for the demo, and another that keeps its folder and names."""

    def __init__(self, page: str, base: Path) -> None:
        self.page, self.base = page, base
        self.commands = self.lines = 0
        self.seconds = 0.0
        self.port = _free_port()
        self.folder = base / "notes"
        self.folder.mkdir()
        (self.folder / "plan.md").write_text("# Plan\n", encoding="utf-8")
        self._state = base / "terminal"
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        self._environment = {**kept, "HOME": str(base), "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": str(base / "state")}
        self._within = self.copy = _copied(base)
        self._demo: subprocess.Popen[str] | None = None
        self._printed = ""

    # -- the lines

    def do(self, command: Command) -> None:
        first, typed = command.typed.split()[0], command.typed
        if typed == "make demo":
            self._serve(command)
        elif typed == "make test":
            self._run(command, "make --dry-run test >/dev/null", note="not run: it runs this")
        elif first in OTHERS:
            self._compare(command)
        elif typed.startswith("octavo serve"):
            self._ask(command, typed)
        elif command.edits:
            self._watch(command, command.edits)
        else:
            self._run(command, typed.replace(PORT, self.port))

    def _serve(self, command: Command) -> None:
        begun = time.perf_counter()
        self._demo = subprocess.Popen(
            ["make", "demo", f"PORT={self.port}"], cwd=self.copy, env=self._environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
        )  # fmt: skip
        assert self._demo.stdout is not None
        serves = connects = False
        for line in self._demo.stdout:
            self._printed += line
            serves, connects = serves or "serving MCP at" in line, connects or line.startswith("    curl ")
            if serves and connects:
                break
        self._step(command, begun, self._printed, fine=serves and connects, note=f"PORT={self.port}")

    def _run(self, command: Command, typed: str, note: str = "") -> None:
        begun = time.perf_counter()
        done = self._terminal(typed)
        printed = done.stdout + done.stderr
        refused = any(line.startswith("octavo: error: ") for line in command.shown) or " may not " in printed
        good = done.returncode == int(refused)  # `explain` exits with what it tells
        note = note or (f"port {self.port}" if typed != command.typed else "")
        self._step(command, begun, printed, fine=good and _shows(printed, command.shown), note=note)

    def _watch(self, command: Command, edits: str) -> None:
        """When it says that it watches the file is changed, and when that has come Ctrl-C ends it."""
        begun, printed = time.perf_counter(), ""
        watching = self._started(command.typed)
        assert watching.stdout is not None and watching.stderr is not None
        try:
            printed = watching.stderr.readline()
            with (self._within / edits).open("a", encoding="utf-8") as file:
                file.write("\nOne more line.\n")
            if select.select([watching.stdout], [], [], LIMIT)[0]:
                printed += watching.stdout.readline()
        finally:
            watching.send_signal(signal.SIGINT)
            out, err = watching.communicate(timeout=LIMIT)
        printed += out + err
        fine = watching.returncode == 130 and _shows(printed, command.shown)
        self._step(command, begun, printed, fine=fine, note=f"{edits} changed")

    def _ask(self, command: Command, typed: str) -> None:
        """Begins a server as a client would, asks, and closes its input."""
        begun = time.perf_counter()
        typed = re.sub(rf"\b{FOLDER}\b", f"'{self.folder}'", typed)
        done = self._terminal(typed, said=json.dumps(ASKED) + "\n")
        good = done.returncode == 0 and '"serverInfo"' in done.stdout
        note = f"{FOLDER} is a folder of ours, asked once"
        self._step(command, begun, done.stdout + done.stderr, fine=good, note=note)

    def _compare(self, command: Command) -> None:
        begun, (before, dashes, ours) = time.perf_counter(), command.typed.partition(" -- ")
        if dashes:
            self._ask(Command(command.line, command.shown, None), ours)
            return
        told = [_ADDRESS.sub("", line.strip()) for line in self._printed.splitlines()]
        fine = _ADDRESS.sub("", before) in told
        printed = "" if fine else self._printed
        self._step(command, begun, printed, fine=fine, note="not run: the line that the demo prints")

    def _step(self, command: Command, begun: float, printed: str, *, fine: bool, note: str = "") -> None:
        seconds, lines = time.perf_counter() - begun, len(printed.splitlines())
        self.commands, self.lines, self.seconds = self.commands + 1, self.lines + lines, self.seconds + seconds
        aside = f"   ({note})" if note else ""
        print(f"{self.page:12} {seconds:6.2f}s {lines:4} lines  {command.typed}{aside}", flush=True)
        if not fine or "Traceback" in printed:
            raise Surprise(f"{command.line}\n{printed}")

    # -- the second terminal

    def _started(self, typed: str) -> subprocess.Popen[str]:
        """Where the last command has left off; what this one exports and where it goes is kept for the next."""
        kept = f"declare -px > '{self._state}'; echo \"cd '$PWD'\" >> '{self._state}'"
        before = f". '{self._state}'" if self._state.exists() else ":"
        exec_ = "exec " if typed.startswith("octavo watch") else ""  # so that a signal finds it
        return subprocess.Popen(
            ["bash", "-c", f"{before}\n{exec_}{typed}\ncode=$?\n{kept}\nexit $code"],
            cwd=self.copy, env=self._environment, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _terminal(self, typed: str, said: str = "") -> subprocess.CompletedProcess[str]:
        process = self._started(typed)
        out, err = process.communicate(said, timeout=LIMIT)
        if found := re.search(r"^cd '(.*)'$", self._state.read_text(encoding="utf-8"), re.MULTILINE):
            self._within = Path(found[1])
        return subprocess.CompletedProcess(typed, process.returncode, out, err)

    def close(self) -> None:
        if self._demo is not None:
            with self._demo:
                os.killpg(self._demo.pid, signal.SIGINT)


def _shows(printed: str, shown: tuple[str, ...]) -> bool:
    return all(re.search(re.escape(line).replace(r"\.\.\.", ".*"), printed) for line in shown)


def _copied(base: Path) -> Path:
    """What `git clone` would give, with what `make` would install: that which is installed here, and the copy's own."""
    copy = base / "octavo"
    copy.mkdir()
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=NEVER, symlinks=True)
        else:
            shutil.copy2(source, copy / name)
    place = copy / ".venv"
    venv.create(place, with_pip=False, symlinks=True)
    paths = (copy / "src", sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    inside = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    (inside / "octavo.pth").write_text("".join(f"{one}\n" for one in dict.fromkeys(paths)), encoding="utf-8")
    program = place / "bin" / "octavo"
    program.write_text(f"#!{place}/bin/python\nfrom octavo.cli import main\nmain()\n", encoding="utf-8")
    program.chmod(0o755)
    for mark in ("base", "dev"):  # as make leaves them when all is installed
        (place / mark).touch()
    return copy


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return str(one.getsockname()[1])


@contextmanager
def reader(page: str) -> Iterator[Reader]:
    with tempfile.TemporaryDirectory() as base:
        made = Reader(page, Path(base))
        try:
            yield made
        finally:
            made.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PAGES, help="one of the two pages")
    given = parser.parse_args()
    surprised = False
    for page in PAGES if given.only is None else (given.only,):
        with reader(page) as one:
            try:
                for command in commands((ROOT / page).read_text(encoding="utf-8")):
                    one.do(command)
                end = "no surprise"
            except Surprise as surprise:
                surprised, end = True, f"SURPRISE: {surprise}"
            print(f"{page:12} {one.seconds:6.2f}s {one.lines:4} lines  {one.commands} commands, {end}\n", flush=True)
    return int(surprised)


if __name__ == "__main__":
    sys.exit(main())
