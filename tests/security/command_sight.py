"""Programs under random policies: what they print and change is what their caller may read, list and write.

    python -m tests.security.command_sight --policies 300 --seed 1

Each policy has a tree of its own, in which every file holds a canary and every name is unlike all others: some denied,
some hidden by their names or kinds, some linked. Programs that search, walk, pack and read it run for one caller, and
one that writes. What the caller may see is what the served product itself lists and reads for it, call by call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.security.ways import WAYS, Asks, Way, add_ways, answer, chosen
from tests.security.ways import caller as coming_in

from octavo.app import Octavo
from octavo.app.composition import Composed
from octavo.app.configuration import load
from octavo.core.errors import OctavoError
from octavo.core.operations import arguments_of
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Op, Page, Trail

WALK = """
import os
for folder, folders, files in os.walk("."):
    for name in folders + files: print(os.path.join(folder, name))
    for name in files:
        try: print(open(os.path.join(folder, name), "rb").read())
        except OSError: pass
"""
WRITE = """
import os, sys
for path in sys.argv[1:]:
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        open(path, "a").write("changed")
    except OSError: pass
"""
ENOUGH = 30  # policies, of which some let a program show, withhold and write
TOP = Ref("file")
CANARY = re.compile(r"canary-\d+-")
NAME = re.compile(r"[a-z]+\d+q")


class Figures(NamedTuple):
    policies: int
    runs: int
    refused: int
    shown: int  # canaries that a program printed and its caller may read
    withheld: int  # canaries that there were and its caller may not read
    written: int  # files that a program changed where its caller may write
    faults: list[str]

    def __str__(self) -> str:
        return (
            f"{self.policies} policies, {self.runs} runs, {self.refused} refused, {self.shown} canaries shown, "
            f"{self.withheld} withheld, {self.written} files written, {len(self.faults)} faults"
        )


class Tree:
    """Names as `f7q.txt`: each is found in a text by itself."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self._chance, self._number = root, chance, 0
        self.folders, self.files = [""], list[str]()
        self.canaries: dict[str, str] = {}  # by path
        for _ in range(chance.randint(3, 7)):
            self.folders.append(os.path.join(chance.choice(self.folders), self._name("d")))
            (root / self.folders[-1]).mkdir(parents=True)
        for _ in range(chance.randint(8, 16)):
            kind = chance.choice([".txt"] * 6 + [".md"] * 3 + [".bin", ".pem", ".env"])
            self._file(os.path.join(chance.choice(self.folders), self._name("f") + kind))
        for name in chance.sample([".git/", ".ssh/", "id_rsa_"], chance.randint(0, 2)):
            self._file(os.path.join(chance.choice(self.folders), name + self._name("h")))
        for _ in range(chance.randint(0, 2)):
            target = root / chance.choice([*self.files, *self.folders[1:]])
            link = root / chance.choice(self.folders) / (self._name("l") + chance.choice([".txt", ""]))
            link.symlink_to(os.path.relpath(target, link.parent))
        for _ in range(chance.randint(0, 1)):
            link = root / chance.choice(self.folders) / (self._name("k") + ".txt")
            os.link(root / chance.choice(self.files), link)

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"{kind}{self._number}q"

    def _file(self, path: str) -> None:
        self._number += 1
        canary = f"canary-{self._number}-"
        head = "---\nstatus: draft\n---\n" if path.endswith(".md") and self._chance.random() < 0.5 else ""
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(f"{head}{canary}\n", encoding="utf-8")
        self.files.append(path)
        self.canaries[path] = canary

    def now(self) -> dict[str, bytes]:
        found = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}


def configuration(tree: Tree, chance: random.Random) -> str:
    python = os.path.realpath(sys.executable)
    code = {"reads": [sys.base_prefix], "args": [{"name": "paths", "many": True}]}
    config = {
        "version": 1,
        "sources": {
            "work": {
                "kind": "file",
                "roots": [str(tree.root)],
                "extensions": chance.choice([["*"], [".txt", ".md"]]),
                "hard_links": chance.choice(["auto", "refuse"]),
                "symlinks": chance.choice(["inside", "inside", "refuse"]),
                "write": chance.random() < 0.7,
            }
        },
        "toolsets": ["files", "process"],
        "agents": {"ann": {}},
        "limits": {"answer": "1MB", "answer_tokens": 1_000_000},
        "policy": [{"who": "ann", "may": ["invoke"], "what": "tool://*", "approve": "never"}, *_rules(tree, chance)],
        "commands": {
            "programs": {
                "grep": {"run": ["grep", "-rn", "canary", "."]},
                "find": {"run": ["find", ".", "-printf", "%p %l\n"]},
                "tar": {"run": ["tar", "-cf", "-", "."]},
                "cat": {"run": ["cat"], "args": code["args"]},
                "walk": {"run": [python, "-S", "-B", "-c", WALK], "reads": code["reads"]},
                "write": {"run": [python, "-S", "-B", "-c", WRITE], "write": True, **code},
            }
        },
    }
    return json.dumps(config)


def _rules(tree: Tree, chance: random.Random) -> Iterator[dict[str, Any]]:
    verbs = ["list", "read", "write", "delete"]
    wide = chance.random() < 0.7
    what = "file://*" if wide else [_pattern(tree, chance) for _ in range(3)]
    yield {"who": "ann", "may": "*" if chance.random() < 0.6 else verbs[:3], "what": what, "approve": "never"}
    if not wide:  # or no folder could be worked in
        yield {"who": "ann", "may": ["list"], "what": chance.choice(["file://*", "file://"])}
    for _ in range(chance.randint(0, 3)):
        rule: dict[str, Any] = {
            "who": "ann",
            "may": chance.choice(["*", ["read"], ["read", "search"], ["list"], ["write"], ["list", "read"]]),
            "what": _pattern(tree, chance),
            "effect": "deny",
        }
        rule |= chance.choice([{}, {}, {"hide": True}])
        rule |= chance.choice([{}] * 6 + [{"when": {"metadata": {"status": "draft"}}}])
        rule |= chance.choice([{}] * 6 + [{"unless": {"time": {"hours": "00:00-24:00", "zone": "UTC"}}}])
        yield rule


def _pattern(tree: Tree, chance: random.Random) -> str:
    folder, file = chance.choice(tree.folders), chance.choice(tree.files)
    name = os.path.basename(folder) or "later"
    return chance.choice(
        [
            f"file://{folder}/*" if folder else "file://later/*",
            f"file://{folder}/later/*" if folder else "file://later/*",
            f"file://{file}",
            f"file://**/{name}/*",
            f"file://*/{name}/*",
            "file://**/*.md",
            f"file://{tree.root}/{folder}/*" if folder else f"file://{tree.root}/later/*",
        ]
    )


class Caller:
    def __init__(self, works: Composed, tell: Asks) -> None:
        self._works, self._tell, self.who = works, tell, works.identity.launched("ann")

    async def ask(self, op: Op, ref: Ref, arguments: dict[str, Any] | None = None, cursor: str | None = None) -> Any:
        call = Call(op, ref, self.who, Trail(), str(ref), arguments_of(op, arguments or {}))
        return await self._works.ask(call._replace(cursor=cursor, limit=100))

    async def names(self) -> set[str]:
        """Of all that it may see."""
        refs, cursor = list[Ref](), None
        while True:
            page: Page[Any] = await self.ask("list", TOP, cursor=cursor)
            for entry in page.items:
                refs += [entry.ref] if entry.target is None else [entry.ref, entry.target]
            cursor = page.cursor
            if cursor is None:
                break
        refs += await self.ask("folders", TOP, {"depth": None, "most": 10_000})
        return {name for ref in refs for segment in ref.segments for name in NAME.findall(segment)}

    async def readable(self, tree: Tree) -> set[str]:
        """The canaries that it may read, under any name of theirs."""
        found = set[str]()
        for path in tree.now():
            try:
                content: Content = await self.ask("read", Ref.of("file", path.split("/")))
            except OctavoError:
                continue
            body = content.body if isinstance(content.body, str) else content.body.decode()
            found |= {*CANARY.findall(body)}
        return found

    def writes(self, path: str) -> bool:
        return self._works.policy.allows(self.who, "write", Ref.of("file", path.split("/")))

    async def run(self, program: str, folder: str, paths: list[str]) -> str:
        """All that is answered; after a NUL where it is refused."""
        arguments: dict[str, Any] = {"program": program, "folder": folder or "."}
        if paths:
            arguments["args"] = {"paths": paths}
        told = answer(await self._tell("tools/call", {"name": "run_command", "arguments": arguments}))
        if "error" in told or told["result"].get("isError"):
            return f"\0{json.dumps(told)}"
        said = [block["text"] for block in told["result"]["content"] if block["type"] == "text"]
        return "".join([*said, json.dumps(told["result"].get("structuredContent"))])


def below(folder: str, paths: Iterable[str]) -> list[str]:
    return [os.path.relpath(path, folder or ".") for path in paths]


async def one(folder: Path, seed: int, way: Way) -> Figures:
    chance = random.Random(seed)
    (folder / "work").mkdir()
    tree = Tree(folder / "work", chance)
    file = folder / "octavo.yaml"
    file.write_text(configuration(tree, chance), encoding="utf-8")
    runs = refused = shown = written = 0
    faults = list[str]()
    async with (
        Octavo(load(file, environ={"PATH": "/usr/bin:/bin"})) as octavo,
        coming_in(octavo, "ann", way) as ask,
    ):
        caller = Caller(octavo.works, ask)
        names, readable = await caller.names(), await caller.readable(tree)
        withheld = {*tree.canaries.values()} - readable

        def check(program: str, where: str, told: str, known: set[str]) -> None:
            for leaked in ({*CANARY.findall(told)} - readable) | ({*NAME.findall(told)} - known):
                faults.append(f"seed {seed}, {way}: {program} in {where or 'the top'} tells {leaked}")

        for where in chance.sample(tree.folders, 2):
            inside = below(where, (*tree.files, *tree.folders[1:]))
            mine = {*NAME.findall(where)}
            for program in ("grep", "find", "tar", "walk", "cat"):
                told = await caller.run(program, where, inside if program == "cat" else [])
                runs, refused = runs + 1, refused + told.startswith("\0")
                shown += len({*CANARY.findall(told)})
                guessed = {name for path in inside for name in NAME.findall(path)} if program == "cat" else set[str]()
                check(program, where, told, names | mine | guessed)
            before = tree.now()
            further = [f"{path}/{name}".lstrip("/") for path in tree.folders for name in ("new1q.txt", "later/new.txt")]
            wanted = [*inside, *below(where, further)][:100]
            told = await caller.run("write", where, wanted)
            runs, refused = runs + 1, refused + told.startswith("\0")
            check("write", where, told, names | mine | {"new1q"})
            for path in [path for path, body in tree.now().items() if before.get(path) != body]:
                hidden = path in tree.canaries and tree.canaries[path] in withheld
                if hidden or not caller.writes(path):
                    faults.append(f"seed {seed}, {way}: {path} was written from {where or 'the top'}")
                written += 1
            for path in {*tree.now()} - {*before}:  # as they were, for the next one
                (tree.root / path).unlink()
            for path, body in before.items():
                (tree.root / path).write_bytes(body)
    return Figures(1, runs, refused, shown, len(withheld), written, faults)


async def run(count: int, seed: int, *, at_once: int = 2, ways: Sequence[Way] = WAYS) -> Figures:
    """The ways take turns."""
    room = asyncio.Semaphore(at_once)

    async def guarded(number: int) -> Figures:
        async with room:
            with tempfile.TemporaryDirectory() as folder:
                return await one(Path(folder), number, ways[number % len(ways)])

    done = await asyncio.gather(*(guarded(seed * 1_000_000 + number) for number in range(count)))
    return Figures(*(sum(one[k] for one in done) for k in range(6)), [fault for one in done for fault in one.faults])  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description="Programs under random policies.")
    parser.add_argument("--policies", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    add_ways(parser)
    asked = parser.parse_args()
    figures = asyncio.run(run(asked.policies, asked.seed, ways=chosen(asked)))
    print(figures)
    for fault in figures.faults[:20]:
        print(fault)
    empty = [kind for kind in ("shown", "withheld", "written") if not getattr(figures, kind)]
    if empty:
        print(f"nothing was {' or '.join(empty)}, so that much is not shown: take more policies")
    sys.exit(bool(figures.faults or (empty and asked.policies >= ENOUGH)))


if __name__ == "__main__":
    main()
