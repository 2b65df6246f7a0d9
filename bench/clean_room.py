"""Octavo in fresh environments, from its wheel and its sdist, without a cache: python bench/clean_room.py

    --python PATH      an interpreter, several times for several; default: this one
    --extra NAME       only this extra, several times for several; default: none, each of them, and all together
    --peers            also what fastmcp and the official file server take

In each of them `octavo -V`, `--help`, `demo --no-serve`, `check`, `serve` (a handshake, a list and a read over stdio)
and, for an extra, what `doctor` says of it. What pip and npm download comes from wherever they are configured to look.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "room", "version": "1"}}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
PEERS = ("fastmcp",)
OFFICIAL = "@modelcontextprotocol/server-filesystem"


def run(command: Sequence[str | Path], **more: Any) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, encoding="utf-8", check=False, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def built(into: Path) -> tuple[Path, Path]:
    run([sys.executable, "-m", "uv", "build", "--no-build-isolation", "--out-dir", into, ROOT])
    return next(into.glob("*.whl")), next(into.glob("*.tar.gz"))


def room(python: str, what: str, folder: Path) -> tuple[Path, float]:
    """An environment with that alone, and the seconds it took."""
    began = time.monotonic()
    run([python, "-m", "venv", folder])
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    run([*pip, "install", "--no-cache-dir", what])
    return folder, time.monotonic() - began


def size(folder: Path) -> str:
    bytes_ = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    patterns = ("lib/python*/site-packages/*.dist-info", "*/package.json", "@*/*/package.json")
    return f"{bytes_ / 1e6:.0f} MB, {sum(len([*folder.glob(one)]) for one in patterns)} packages"


def tried(environment: Path, extra: str | None, folder: Path) -> Iterator[str]:
    """Each thing that works; raises SystemExit at the first that does not."""
    octavo = environment / "bin" / "octavo"
    environ = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C"}
    yield run([octavo, "-V"], env=environ).strip()
    assert "Usage: octavo" in run([octavo, "--help"], env=environ)
    run([octavo, "demo", "--no-serve", "--dir", folder / "demo"], env=environ)
    run([octavo, "check"], cwd=folder / "demo", env=environ)
    run([octavo, "schema"], env=environ)
    run([octavo, "install", "cursor", folder, "--yes"], env=environ)
    run([octavo, "uninstall", "cursor", "--yes"], env=environ)
    yield "help, demo, check, schema, install"
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("# One\n", encoding="utf-8")
    assert '"serverInfo"' in asked([octavo, "serve", folder / "notes"], "initialize", HANDSHAKE, environ)
    assert "a.md" in asked([octavo, "serve", folder / "notes"], "resources/list", {}, environ)
    assert "# One" in asked([octavo, "serve", folder / "notes"], "resources/read", {"uri": "file://a.md"}, environ)
    yield "serve"
    if extra:
        found = json.loads(run([octavo, "doctor", "--json", folder / "notes"], env=environ))
        if lines := [one for one in found["findings"] if one["about"] == f"extra {extra}"]:
            assert "not installed" not in str(lines), lines
            yield "doctor knows the extra"


def asked(command: Sequence[str | Path], method: str, params: dict[str, Any], environ: dict[str, str]) -> str:
    envelope = {} if method == "initialize" else {"_meta": META}
    question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **envelope}}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    with subprocess.Popen([*map(str, command)], env=environ, **pipes) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(question) + "\n")
        server.stdin.flush()
        answer: str = server.stdout.readline()
        server.stdin.close()
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    extras = [*tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]]
    chosen = [name if name != "all" else ",".join(extras) for name in options.extra] or ["", *extras, ",".join(extras)]
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        wheel, sdist = built(work / "dist")
        print(f"wheel {wheel.stat().st_size / 1e6:.1f} MB, sdist {sdist.stat().st_size / 1e6:.1f} MB", flush=True)
        for python in options.python or [sys.executable]:
            version = run([python, "-c", "import platform; print(platform.python_version())"]).strip()
            packages = [(wheel, extra) for extra in chosen] + [(sdist, "")]
            for number, (package, extra) in enumerate(packages):
                folder = work / f"{version}-{number}"
                folder.mkdir()
                what = f"{package}[{extra}]" if extra else str(package)
                environment, seconds = room(python, what, folder / "venv")
                works = "; ".join(tried(environment, extra if "," not in extra else None, folder))
                title = f"{package.suffix.lstrip('.')}[{extra}]" if extra else package.suffix.lstrip(".")
                print(f"{version} {title}: {seconds:.0f} s, {size(environment)}: {works}", flush=True)
        if options.peers:
            for peer in PEERS:
                environment, seconds = room((options.python or [sys.executable])[0], peer, work / peer)
                print(f"{peer}: {seconds:.0f} s, {size(environment)}", flush=True)
            began = time.monotonic()
            run(["npm", "install", "--prefix", work / "npm", "--cache", work / "npm-cache", OFFICIAL])
            took = time.monotonic() - began
            print(f"{OFFICIAL}: {took:.0f} s, {size(work / 'npm' / 'node_modules')}", flush=True)


if __name__ == "__main__":
    main()
