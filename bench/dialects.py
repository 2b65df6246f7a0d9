"""How each file server is asked for the same things: read, head, tail, edit, tree, names, contents.

A server that has no tool for something says so with `None`.
"""

import json
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from candidates import HERE, Candidate, Json, installed, node_home, official_command

Asked = tuple[str, Json]  # a tool and its arguments
Pair = tuple[str, str]  # old and new text

J0HANZ = "@j0hanz/filesystem-mcp"
PYTHON_PEER, PYTHON_PEER_VERSION = "mcp-workspace", "0.1.13"


@dataclass(frozen=True)
class Dialect(Candidate):
    """Octavo's own tools."""

    root: Path = Path()

    def reading(self, name: str) -> Asked:
        return "read", {"target": name}

    def beginning(self, name: str, lines: int) -> Asked | None:
        return "read", {"target": name, "head": lines}

    def ending(self, name: str, lines: int) -> Asked | None:
        return "read", {"target": name, "tail": lines}

    def editing(self, name: str, edits: Sequence[Pair]) -> Asked | None:
        return "edit", {"target": name, "edits": [{"old": old, "new": new} for old, new in edits]}

    def tree(self) -> Asked:
        return "list", {"depth": 0, "form": "tree"}

    def named(self, pattern: str) -> Asked:
        return "search", {"query": pattern, "kind": "names"}

    def containing(self, text: str) -> Asked | None:
        return "search", {"query": text}


@dataclass(frozen=True)
class OfficialDialect(Dialect):
    def reading(self, name: str) -> Asked:
        return "read_text_file", {"path": str(self.root / name)}

    def beginning(self, name: str, lines: int) -> Asked | None:
        return "read_text_file", {"path": str(self.root / name), "head": lines}

    def ending(self, name: str, lines: int) -> Asked | None:
        return "read_text_file", {"path": str(self.root / name), "tail": lines}

    def editing(self, name: str, edits: Sequence[Pair]) -> Asked | None:
        wanted = [{"oldText": old, "newText": new} for old, new in edits]
        return "edit_file", {"path": str(self.root / name), "edits": wanted}

    def tree(self) -> Asked:
        return "directory_tree", {"path": str(self.root)}

    def named(self, pattern: str) -> Asked:
        return "search_files", {"path": str(self.root), "pattern": f"**/{pattern}"}

    def containing(self, text: str) -> Asked | None:
        return None


@dataclass(frozen=True)
class J0hanzDialect(Dialect):
    def reading(self, name: str) -> Asked:
        return "read", {"path": str(self.root / name)}

    def beginning(self, name: str, lines: int) -> Asked | None:
        return "read", {"path": str(self.root / name), "head": lines}

    def ending(self, name: str, lines: int) -> Asked | None:
        return "read", {"path": str(self.root / name), "tail": lines}

    def editing(self, name: str, edits: Sequence[Pair]) -> Asked | None:
        wanted = [{"oldText": old, "newText": new} for old, new in edits]
        return "edit", {"path": str(self.root / name), "edits": wanted}

    def tree(self) -> Asked:
        return "list", {"path": str(self.root), "maxDepth": 50}

    def named(self, pattern: str) -> Asked:
        return "find_files", {"path": str(self.root), "pattern": pattern}

    def containing(self, text: str) -> Asked | None:
        return "search_text", {"path": str(self.root), "searchPattern": text}


@dataclass(frozen=True)
class WorkspaceDialect(Dialect):
    """One edit a call, and lines only from a start to an end: it has no tail."""

    def reading(self, name: str) -> Asked:
        return "read_file", {"file_path": name}

    def beginning(self, name: str, lines: int) -> Asked | None:
        slice_ = {"start_line": 1, "end_line": lines, "with_line_numbers": False}
        return "read_file", {"file_path": name, **slice_}

    def ending(self, name: str, lines: int) -> Asked | None:
        return None

    def editing(self, name: str, edits: Sequence[Pair]) -> Asked | None:
        if len(edits) != 1:
            return None
        ((old, new),) = edits
        return "edit_file", {"file_path": name, "old_string": old, "new_string": new}

    def tree(self) -> Asked:
        return "list_directory", {}

    def named(self, pattern: str) -> Asked:
        return "search_files", {"glob": f"**/{pattern}"}

    def containing(self, text: str) -> Asked | None:
        return "search_files", {"pattern": text}


NAMES = ("octavo", "official", "j0hanz", "mcp-workspace")


def dialect(name: str, root: Path) -> Dialect:
    """A server over `root`, installed if it is not there yet."""
    command: tuple[str, ...]
    match name:
        case "octavo":
            command = (sys.executable, "-m", "octavo", "serve", str(root), "--write")
            return Dialect(name, installed("octavo"), command, root=root)
        case "official":
            command = official_command(root)
            return OfficialDialect(name, _npm_version(Path(command[1])), command, root=root)
        case "j0hanz":
            program = _npm_installed(HERE / "peers" / "node", J0HANZ) / "dist" / "index.js"
            command = (str(node_home() / "bin" / "node"), str(program), str(root))
            return J0hanzDialect(name, _npm_version(program), command, root=root)
        case "mcp-workspace":
            home = _python_peer()
            command = (str(home / "bin" / PYTHON_PEER), "--console-only", "--log-level", "ERROR")
            software = f"{PYTHON_PEER} {PYTHON_PEER_VERSION}, mcp {_version_in(home, 'mcp')}"
            return WorkspaceDialect(name, software, (*command, "--project-dir", str(root)), root=root)
    raise SystemExit(f"unknown server {name!r}; there are: {', '.join(NAMES)}")


def _npm_version(program: Path) -> str:
    manifest = json.loads((program.parent.parent / "package.json").read_text(encoding="utf-8"))
    return f"{manifest['name']} {manifest['version']}"


def _npm_installed(folder: Path, package: str) -> Path:
    wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"][package]
    found = folder / "node_modules" / package
    manifest = found / "package.json"
    if not manifest.exists() or json.loads(manifest.read_text(encoding="utf-8"))["version"] != wanted:
        print(f"installing {package} {wanted} (npm ci) ...", file=sys.stderr, flush=True)
        npm = node_home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
        subprocess.run([node_home() / "bin" / "node", npm, "ci", *quiet], cwd=folder, check=True, stdout=sys.stderr)
    return found


def _python_peer() -> Path:
    """A virtual environment of its own: the peer needs other versions of what Octavo uses."""
    home = HERE / ".build" / PYTHON_PEER
    if _version_in(home, PYTHON_PEER) != PYTHON_PEER_VERSION:
        print(f"installing {PYTHON_PEER} {PYTHON_PEER_VERSION} (pip) ...", file=sys.stderr, flush=True)
        venv.create(home, with_pip=True, clear=True)
        pip = [
            str(home / "bin" / "python"),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--no-input",
            "install",
            "--quiet",
        ]
        subprocess.run([*pip, f"{PYTHON_PEER}=={PYTHON_PEER_VERSION}"], check=True, stdout=sys.stderr)
    return home


def _version_in(home: Path, package: str) -> str:
    folders = [str(path) for path in home.glob("lib/python*/site-packages")]
    found = (one.version for one in distributions(path=folders) if one.metadata["Name"] == package)
    return next(found, "") if folders else ""
