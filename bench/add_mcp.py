"""The same servers installed by Octavo and by add-mcp, each in a home of its own: python bench/add_mcp.py

Tells where both write, and where the entries differ. Needs node and the npm registry once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from octavo.cli.client_files.records import CLIENTS

BUILD = Path(__file__).resolve().parent / ".build" / "add-mcp"
ADD_MCP = "add-mcp@2.4.0"
URL = "http://127.0.0.1:8321/mcp"
OCTAVO = Path(sys.executable).parent / "octavo"


def main() -> None:
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--prefix", str(BUILD), ADD_MCP], check=True)
    program = ("node", BUILD / "node_modules" / "add-mcp" / "dist" / "index.js")
    same = differing = 0
    for client in CLIENTS.values():
        for project in (False, True) if client.project else (False,):
            for remote in (False, True) if client.remote else (False,):
                key = remote and client.reference is not None
                ours = ("--url", URL, *(("--key-env", "OCTAVO_KEY") if key else ())) if remote else ("DIR",)
                header = ("-h", "Authorization: Bearer ${OCTAVO_KEY}") if key else ()
                theirs = (URL, *header) if remote else (OCTAVO, "--args", "serve", "--args", "DIR")
                scope = "--project" if project else "--yes"
                mine = written((OCTAVO, "install", client.name, *ours, "--yes", scope), client)
                other = written(
                    (*program, *theirs, "-n", "octavo", "-y", "-a", client.name, *(() if project else ("-g",))), client
                )
                title = f"{client.title}, {'project' if project else 'user'}, {'address' if remote else 'command'}"
                if mine == other:
                    same += 1
                else:
                    differing += 1
                    print(f"{title}\n  octavo   {mine}\n  add-mcp  {other}")
    print(f"{same} the same in place and entry, {differing} that differ")


def written(command: Sequence[object], client: Any) -> Mapping[str, Any]:
    """What a command leaves in a new home: files, and what they say."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        (home / "project" / ".vscode").mkdir(parents=True)
        environ = {"HOME": made, "PATH": os.environ["PATH"], "XDG_STATE_HOME": f"{made}/.state"}
        full = [str(one).replace("DIR", "/srv") for one in command]
        subprocess.run(full, cwd=home / "project", env=environ, check=True, capture_output=True)
        found = (path for path in home.rglob("*") if path.is_file() and ".state" not in path.parts)
        return {
            str(path.relative_to(home)): client.format.read(path.read_text(encoding="utf-8"))
            for path in found
            if "octavo" in path.read_text(encoding="utf-8") and ".npm" not in path.parts
        }


if __name__ == "__main__":
    main()
