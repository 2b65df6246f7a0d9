"""Lists over a large tree: a page of resources/list, and the tool `list` at several depths, with the memory they need.

    python bench/listing.py                     200,000 files
    python bench/listing.py --files 20000       a short look

Everything is made in a temporary folder and removed at the end. Each run is a process of its own. The first time is
that of the first call, while the watch still walks through the whole tree; the second that of one when it has, without
the cache. Times are the best of three runs, memory is the most of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.arguments import OwnArguments
from octavo.core.ports.source import Ready
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, Call, Change, Trail
from octavo.stores.state import StateDirectory
from search import build

CALLS: dict[str, dict[str, Any]] = {
    "resources/list, first page of 100": {},
    "list, depth 1": {"depth": 1},
    "list, depth 2": {"depth": 2},
    "list, all, first 100": {"depth": 0},
}


async def measure(root: Path, name: str) -> dict[str, Any]:
    configuration = f'sources: {{files: {{kind: file, roots: ["{root}"], extensions: ["*"]}}}}\n'
    loaded = load_text(configuration, file=root / "octavo.yaml", environ={})
    async with Octavo(loaded, state=StateDirectory.in_memory()) as house:
        works = house.works
        who, asked = works.identity.launched(None), CALLS[name]
        call = Call("invoke", Ref.of("tool", ("list",)), who, Trail(), "tool://list", OwnArguments(asked))
        if not asked:
            call = Call("list", EVERYTHING, who, Trail(), "*")
        begun = time.perf_counter()
        reply = await works.ask(call)
        first = time.perf_counter() - begun
        shown = len(reply.items) if not asked else len(reply.structured["entries"])
        await cast(Ready, works.dispatch.source("file")).armed()
        works.cache.forget(Change(kind="updated", ref=Ref("file"), at=0.0))
        begun = time.perf_counter()
        await works.ask(call._replace(trail=Trail()))
        later = time.perf_counter() - begun
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"first": first, "later": later, "shown": shown, "rss": most}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--files", type=int, default=200_000)
    asked.add_argument("--one", nargs=2, metavar=("ROOT", "NAME"), help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.one:
        print(json.dumps(asyncio.run(measure(Path(options.one[0]), options.one[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        size = build(Path(folder), options.files)
        print(f"{options.files:,} files, {size / 1e6:,.0f} MB", flush=True)
        for name in CALLS:
            runs = [
                json.loads(subprocess.check_output([sys.executable, __file__, "--one", folder, name])) for _ in range(3)
            ]
            first, later = (1000 * min(run[when] for run in runs) for when in ("first", "later"))
            shown, rss = runs[0]["shown"], max(run["rss"] for run in runs) / 1024
            print(f"{name:<36}{first:>8.1f} ms {later:>8.1f} ms  {shown:>4} shown {rss:>5.0f} MB", flush=True)


if __name__ == "__main__":
    main()
