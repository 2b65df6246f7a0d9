"""The way of one request through the house, as function calls: `python bench/walk.py`.

A read of a catalog's document that is kept and of one that is not, an edit of a file, and a prompt of a file, over the
example organisation in a temporary folder. What is counted are calls of functions of Octavo, in all threads, and the
modules that they are in: how much whoever follows a request has to read, and in how many files. With `--modules` each
of them with its number.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import octavo
from octavo.app import Octavo
from octavo.app.configuration import load_text

PACKAGE = os.path.dirname(os.path.abspath(octavo.__file__))
EXAMPLE = Path(__file__).parents[1] / "examples" / "maison-haru" / "handbook"
CONFIG = """
version: 1
sources:
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook, path: sops}
  work: {kind: file, roots: [./work], write: true}
agents: {a: {key: "${A_KEY}"}}
policy: [{who: a, may: "*", what: "**", approve: never}]
prompts: {dirs: [./prompts]}
"""
PROMPT = "id: greet\ndescription: A greeting.\nmessages: [{role: user, content: [{type: text, text: hello}]}]\n"


class Walk:
    """What is called between `begin` and `end`."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def _seen(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.calls[os.path.relpath(frame.f_code.co_filename, PACKAGE)] += 1

    def __enter__(self) -> Walk:
        threading.setprofile(self._seen)
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


async def walked(ask: Callable[[], Awaitable[Any]]) -> Counter[str]:
    with Walk() as walk:
        await ask()
    return walk.calls


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        shutil.copytree(EXAMPLE, folder / "handbook")
        for name in ("work", "prompts"):
            (folder / name).mkdir()
        (folder / "work" / "a.md").write_text("# A\n\none two three\n", encoding="utf-8")
        (folder / "prompts" / "greet.yaml").write_text(PROMPT, encoding="utf-8")
        loaded = load_text(CONFIG, file=folder / "octavo.yaml", environ={"A_KEY": "key-of-a-0123456789"})
        async with Octavo(loaded) as house:
            works = house.works
            who = works.identity.launched("a")
            listed = await works.ask(works.calls.at("list", who, "sop://"))
            first, second = (str(entry.ref) for entry in listed.items[:2])

            def read(uri: str) -> Callable[[], Awaitable[Any]]:
                return lambda: works.ask(works.calls.read(who, uri))

            def edit(old: str, new: str) -> Callable[[], Awaitable[Any]]:
                asked = {"target": "file://a.md", "edits": [{"old": old, "new": new}]}
                return lambda: works.ask(works.calls.invoke(who, "edit", asked))

            def prompt() -> Awaitable[Any]:
                return works.ask(works.calls.render(who, "greet", {}))

            for warm in (read(first), read(first), edit("one", "four"), prompt):  # what is made when it is first needed
                await warm()
            ways = {
                "read, kept": read(first),
                "read, not kept": read(second),
                "edit": edit("two", "five"),
                "prompt": prompt,
            }
            print(f"{'':16} {'calls':>6} {'modules':>8}")
            for name, way in ways.items():
                calls = await walked(way)
                print(f"{name:16} {calls.total():6,} {len(calls):8}")
                if options.modules:
                    for module, count in calls.most_common():
                        print(f"{'':16} {count:6,}          {module}")


if __name__ == "__main__":
    asyncio.run(main())
