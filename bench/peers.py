"""What file servers do with the same files: Octavo and three peers, as a Markdown table. See README.md beside it.

Every case has a folder and a process of its own and a deadline; what was done to a file is read from its bytes.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from cases import CASES, Case, Scene, judged
from dialects import NAMES, Dialect, dialect
from dialogue import Unanswered, dialogue


def verdict(name: str, case: Case, folder: Path) -> str:
    root, outside, home = folder / "root", folder / "outside", folder / "home"
    for made in (root, outside, home):
        made.mkdir()
    case.prepare(root, outside)
    try:
        with dialogue(dialect(name, root), home, case.seconds) as talk:
            return judged(case, Scene(talk, root, outside)).replace(str(folder), "…").replace("|", "/")
    except Unanswered as silence:
        return str(silence)


def table(chosen: list[Case], servers: list[Dialect], temporary: Path) -> str:
    lines = [
        "| | " + " | ".join(server.software for server in servers) + " |",
        "|---|" + "---|" * len(servers),
    ]
    for number, case in enumerate(chosen):
        cells = []
        for server in servers:
            folder = temporary / f"{number}-{server.name}"
            folder.mkdir()
            cells.append(verdict(server.name, case, folder))
            (folder / "root" / "a.txt").unlink(missing_ok=True)  # may be large
            print(f"{case.title}: {server.name}: {cells[-1]}", file=sys.stderr, flush=True)
        lines.append(f"| {case.group}: {case.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases with this in their name or group: edits, encodings, CRLF, …")
    parser.add_argument("--servers", default=",".join(NAMES), help=f"comma-separated, of {', '.join(NAMES)}")
    args = parser.parse_args()
    chosen = [case for case in CASES if args.only in f"{case.group}: {case.title}"]
    if not chosen:
        raise SystemExit(f"--only {args.only}: there are {', '.join(case.title for case in CASES)}")
    with tempfile.TemporaryDirectory(prefix="octavo-peers-") as temporary:
        servers = [dialect(name, Path(temporary)) for name in args.servers.split(",") if name]
        print(table(chosen, servers, Path(temporary)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
