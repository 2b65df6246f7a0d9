"""Whether any byte that leaves holds a content that its asker may not read, whatever else the asker may do.

    python -m tests.security.verbs                     2,000 policies with their verbs split
    python -m tests.security.verbs --policies 50       a short look

Every file has a word of its own in its content. The rules are random and split the verbs: `write` without `read`,
`delete` without `read`, `list` or `search` without `read`, `invoke` alone. Each caller tries every operation and every
tool, read-only and with `--write`, on what it may and may not read, and then reads whatever it has made of that. What
the rules mean is worked out here a second time, by a plainer way.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.gate.world import SUMMARISE
from tests.security.ways import WAYS, Way, add_ways, caller, chosen

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.stores.state import StateDirectory

TOGETHER: Final = 20  # callers in one house
FOLDERS: Final = ("hr", "pub", "drop", "pub/in")
NAMES: Final = ("note.md", "data.json", "table.csv", "raw.bin")
SPLIT: Final = (
    ("write",), ("write", "list"), ("write", "delete"), ("write", "delete", "list"), ("write", "search"),
    ("delete",), ("delete", "list"), ("list",), ("list", "search", "watch"), ("search",), ("watch",), ("read",),
    ("read", "write"), ("list", "read", "search", "watch"), ("list", "read", "search", "watch", "write", "delete"),
)  # fmt: skip
TOOLSETS: Final = ("files", "filesystem", "seed", "data", "prompts")
MARK: Final = "zqx"  # how each word begins
_WORD: Final = re.compile(MARK.encode() + rb"[a-z]{11}")
_BLOB: Final = re.compile(rb'"(?:blob|data)": ?"([A-Za-z0-9+/]+)=*"')

Request = tuple[str, dict[str, Any]]


class Rule(NamedTuple):
    verbs: tuple[str, ...]
    pattern: str
    allow: bool = True
    hide: bool = False

    def covers(self, uri: str) -> bool:
        scheme, _, path = uri.partition("://")
        ours, _, pattern = self.pattern.partition("://")
        if ours != scheme:
            return False
        names, parts = path.split("/"), pattern.split("/")
        if parts[-1] == "*":
            parts.pop()
            names = names[: len(parts)]
        return len(names) == len(parts) and all(map(fnmatchcase, names, parts))

    def written(self, who: str) -> dict[str, Any]:
        written = {"who": who, "may": [*self.verbs], "what": self.pattern}
        return written if self.allow else {**written, "effect": "deny", "hide": self.hide}


class Asker(NamedTuple):
    """One caller with a folder of its own, and what it may do there."""

    who: str
    rules: Sequence[Rule]
    contents: Mapping[str, str]  # by address: the word that nothing else has

    def may(self, verb: str, uri: str) -> bool:
        mine = [rule for rule in self.rules if verb in rule.verbs and rule.covers(uri)]
        return any(rule.allow for rule in mine) and all(rule.allow for rule in mine)


def word(chance: random.Random) -> str:
    return MARK + "".join(chance.choices("abcdefghijkmnpqrstuvwxyz", k=11))


def body(name: str, canary: str) -> bytes:
    if name.endswith(".json"):
        return json.dumps({"name": canary, "rows": [1, 2]}).encode()
    if name.endswith(".csv"):
        return f"name,count\n{canary},3\n".encode()
    if name.endswith(".bin"):
        return b"\0\1" + canary.encode() + b"\xff\xfe\0"
    return f"Shared words of the house.\nThe line {canary} ends here\nThe last line.\n".encode()


def made_rules(chance: random.Random, who: str) -> list[Rule]:
    def pattern() -> str:
        kind, folder, name = chance.random(), chance.choice(FOLDERS), chance.choice(NAMES)
        if kind < 0.15:
            return f"sop://{who}/*"
        if kind < 0.35:
            return f"file://{who}/*"
        if kind < 0.75:
            return f"file://{who}/{folder}/*"
        return f"file://{who}/{folder}/{name}" if kind < 0.9 else f"file://{who}/*/{name}"

    rules = [Rule(chance.choice(SPLIT), pattern()) for _ in range(chance.randint(2, 6))]
    rules += [
        Rule(chance.choice((*SPLIT, ("read", "search"), ("read",))), pattern(), False, chance.random() < 0.25)
        for _ in range(chance.randint(0, 3))
    ]
    rules.append(Rule(("list", "read", "write", "delete"), f"file://{who}/mine/*"))  # somewhere to bring things
    if chance.random() < 0.85:
        rules.append(Rule(("invoke",), "tool://*"))
    return [*rules, Rule(("render",), "prompt://*")] if chance.random() < 0.7 else rules


def lay_out(home: Path, chance: random.Random, who: str) -> Asker:
    contents: dict[str, str] = {}
    for folder in FOLDERS:
        for name in NAMES:
            contents[f"file://{who}/{folder}/{name}"] = canary = word(chance)
            file = home / "work" / who / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body(name, canary))
    for name in ("one", "two"):
        contents[f"sop://{who}/{name}"] = canary = word(chance)
        file = home / "sops" / who / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"---\ntitle: Shared {name}\nfunction: {who}\nstatus: active\n---\n# {canary}\n", encoding="utf-8"
        )
    return Asker(who, made_rules(chance, who), contents)


def requests(asker: Asker, chance: random.Random, *, data: bool) -> Iterator[Request]:
    """Every operation and every tool, each on something that was chosen for it."""
    root, files = f"{asker.who}", [uri for uri in asker.contents if uri.startswith("file://")]
    numbers = iter(range(1000))

    def tool(name: str, /, **arguments: Any) -> Request:
        return "tools/call", {"name": name, "arguments": arguments}

    def one() -> str:
        return chance.choice(files).removeprefix("file://")

    def folder() -> str:
        return chance.choice((root, *(f"{root}/{name}" for name in FOLDERS)))

    def place() -> str:
        kind = chance.random()
        return one() if kind < 0.2 else f"{chance.choice((f'{root}/mine', folder()))}/m{next(numbers)}.md"

    def uri() -> str:
        return chance.choice([*asker.contents])

    edits = (
        [{"old": " ", "new": "_", "expected": "all"}],
        [{"old": "The line aaaa ends her", "new": "x"}],
        [{"old": "\n", "new": " ", "expected": "all"}],
        [{"old": "\0", "new": ""}],
        [{"old": "name", "new": "NAME", "expected": 7}],
    )
    patch = "@@ -1,2 +1,2 @@\n Shared words of the house.\n-The line aaa ends here\n+x\n"
    yield "resources/read", {"uri": uri()}
    yield "resources/read", {"uri": f"{uri()}?range=1-40"}
    yield "resources/read", {"uri": f"sop://{root}"}
    yield "resources/read", {"uri": f"changes://file/{root}"}
    yield "resources/list", {}
    yield "resources/templates/list", {}
    yield "resources/directory/read", {"uri": f"file://{folder()}"}
    yield "resources/subscribe", {"uri": uri()}
    yield "resources/subscribe", {"uri": f"file://{folder()}/*"}
    yield (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "file://{+path}"}, "argument": {"name": "path", "value": root}},
    )
    yield "prompts/get", {"name": "summarise", "arguments": {"uri": uri()}}
    yield tool("list", target=folder(), depth=0)
    yield tool("read", target=one())
    yield tool("read", targets=[uri(), uri(), uri()])
    yield tool("read", target=one(), shape="resource")
    yield tool("info", target=uri())
    yield tool("search", query=chance.choice(("words", "line", "[a-z]{14}")), target=folder(), regex=True, context=3)
    yield tool("search", query="*", kind="names", target=folder())
    yield tool("search", query="shared line", kind="ranked")
    yield tool("changes", target=folder(), after=0)
    for shown in edits:
        yield tool("edit", target=one(), edits=shown, dry_run=chance.random() < 0.7)
    yield tool("edit", target=one(), patch=patch, dry_run=True)
    yield tool("write", target=one(), content=" and more", mode="append")
    yield tool("write", target=one(), base64="AAAA", mode="append")
    yield tool("write", target=one(), content="mine", if_match="0" * 16)
    yield tool("write", target=one(), content="mine", mode=chance.choice(("create", "overwrite")))
    yield tool("write", target=place(), content="mine", mode="upsert")
    for act in ("move", "copy", "move", "copy"):
        yield tool(act, target=one(), to=place(), overwrite=chance.random() < 0.5)
    yield tool(chance.choice(("move", "copy")), target=folder(), to=f"{root}/mine/d{next(numbers)}")
    yield tool("undo", count=chance.randint(1, 3))
    yield tool("create_directory", target=chance.choice((one(), f"{folder()}/new")))
    yield tool("delete", target=chance.choice((one(), one(), folder())), **({"if_match": "x"} if data else {}))
    yield tool("delete", target=one())
    yield tool("undo")
    for name in ("read_file", "read_text_file", "read_media_file", "get_file_info", "file-reader", "readFile"):
        yield tool(name, path=one())
    yield tool("read_multiple_files", paths=[one(), one(), one()])
    for name in ("list_directory", "list_directory_with_sizes", "directory_tree"):
        yield tool(name, path=folder())
    yield tool("search_files", path=folder(), pattern="**/*")
    yield tool("list_allowed_directories")
    yield tool("edit_file", path=one(), edits=[{"oldText": " ", "newText": ""}], dryRun=True)
    yield tool("edit_file", path=one(), edits=[{"oldText": "The line a ends here", "newText": ""}])
    yield tool("move_file", source=one(), destination=place())
    yield tool("write_file", path=one() if chance.random() < 0.3 else place(), content="mine")
    yield tool("writeFile", path=place(), content="mine")
    yield tool("createDirectory", path=f"{folder()}/made")
    yield tool("deleteFile", path=one())
    yield tool("get_prompt", name="summarise", arguments={"uri": uri()})
    yield tool("conversation", action="begin")
    if data:  # each of them starts a process
        table = f"{root}/{chance.choice(FOLDERS)}/{chance.choice(('data.json', 'table.csv'))}"
        yield chance.choice(
            (
                tool("validate", target=table, schema={"type": "number"}),
                tool("convert", target=table, to="yaml", save_as=place()),
                tool("profile", target=table, chart=False),
                tool("query", target=table, sql="select * from data"),
            )
        )


def sweep(asker: Asker, root: Path) -> Iterator[Request]:
    """In the end, all that is there is asked for by its address."""
    for file in sorted((root / asker.who).rglob("*")):
        if file.is_file():
            yield "resources/read", {"uri": f"file://{file.relative_to(root).as_posix()}"}
    yield "tools/call", {"name": "search", "arguments": {"query": "[a-z]{14}", "regex": True, "kind": "content"}}
    yield "tools/call", {"name": "undo", "arguments": {"count": 100}}


def words_in(told: bytes) -> set[str]:
    """Those that stand in what left, as they are or in base64."""
    blobs = b" ".join(base64.b64decode(blob[: len(blob) // 4 * 4]) for blob in _BLOB.findall(told))
    return {found.decode() for found in _WORD.findall(told + blobs)}


class Seen(NamedTuple):
    leaks: list[str]
    answers: Counter[str]  # how many were given, refused, and told a content that may be read
    ways: Counter[Way]  # by which they were asked for


async def looked(
    home: Path, chance: random.Random, count: int, *, write: bool, seen: Seen, ways: Sequence[Way]
) -> None:
    """So many callers in one house."""
    askers = [lay_out(home, chance, f"a{number}") for number in range(count)]
    (home / "prompts").mkdir()
    (home / "prompts" / "summarise.json").write_text(json.dumps(SUMMARISE), encoding="utf-8")
    (home / "state").mkdir(mode=0o700)
    written = {
        "version": 1,
        "sources": {
            "work": {"kind": "file", "roots": ["./work"], "extensions": ["*"], "write": write},
            "sops": {"kind": "sop", "store": "handbook", "path": ""},
            "handbook": {"kind": "file", "roots": ["./sops"], "expose": False},
        },
        "toolsets": [*TOOLSETS],
        "prompts": {"dirs": ["./prompts"]},
        "agents": {asker.who: {} for asker in askers},
        "policy": [rule.written(asker.who) for asker in askers for rule in asker.rules],
    }
    loaded = load_text(json.dumps(written), file=home / "octavo.yaml", environ={})
    places = {canary: uri for asker in askers for uri, canary in asker.contents.items()}
    async with Octavo(loaded, state=StateDirectory(home / "state", b"s" * 32)) as house:

        async def tries(asker: Asker, chance: random.Random, *, data: bool) -> None:
            asked = [*requests(asker, chance, data=data)]
            chance.shuffle(asked)
            readable = {uri for uri in asker.contents if asker.may("read", uri)}
            way, lane = chance.choice(ways), chance.random() < 0.5
            async with caller(house, asker.who, way, lane=lane) as ask:
                for method, params in (*asked, *sweep(asker, home / "work")):
                    told = await ask(method, params)
                    seen.ways[way] += 1
                    failed = b'"error":' in told or b'"isError":true' in told
                    seen.answers["refused" if failed else "given"] += 1
                    for uri in (places[found] for found in words_in(told) if found in places):
                        if uri in readable:
                            seen.answers["told"] += 1
                        else:
                            seen.leaks.append(f"{way}: {asker.who} {[*asker.rules]}: {method} {params} told {uri}")

        async with asyncio.TaskGroup() as all_at_once:
            for number, asker in enumerate(askers):
                own = random.Random(chance.random())
                all_at_once.create_task(tries(asker, own, data=number % 5 == 0))


async def leaks(home: Path, *, policies: int, seed: int = 7, ways: Sequence[Way] = WAYS) -> Seen:
    chance, seen = random.Random(seed), Seen([], Counter(), Counter())
    for number, first in enumerate(range(0, policies, TOGETHER)):
        place = home / str(number)
        place.mkdir()
        await looked(place, chance, min(TOGETHER, policies - first), write=number % 4 != 3, seen=seen, ways=ways)
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--policies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    add_ways(parser)
    options = parser.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="octavo-verbs-") as folder:
        seen = asyncio.run(leaks(Path(folder), policies=options.policies, seed=options.seed, ways=chosen(options)))
    for leak in seen.leaks[:20]:
        print(leak)
    told = ", ".join(f"{seen.answers[kind]} {kind}" for kind in ("given", "refused", "told"))
    print(
        f"{options.policies} policies, seed {options.seed}: {len(seen.leaks)} leaks "
        f"({told} what may be read), {time.perf_counter() - begun:.0f} s"
    )
    print(", ".join(f"{count} requests in the {way}" for way, count in sorted(seen.ways.items())))
    return 1 if seen.leaks else 0


if __name__ == "__main__":
    sys.exit(main())
