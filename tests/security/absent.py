"""Whether what a rule hides can be told from what is not there: by code, text and length, and by time.

    python -m tests.security.absent --pairs 2000

asks for hidden and for absent things in turn and prints, for every way to ask, the medians and how often a hidden one
took longer than an absent one (0.5: nobody can tell; the further from it, the better one could guess).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.gate.doors import Pipe
from tests.gate.twins import INITIALIZED, META, frame, initialize

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.stores.state import StateDirectory

ERAS = ("modern", "2025-11-25")
HIDDEN, ABSENT = "board/merger", "bored/merges"  # of one length
CONFIGURATION = """
version: 1
sources:
  files: {kind: file, roots: [./files], extensions: ["*"], write: true}
  mem: {kind: memory, scheme: mem, resources: {board/merger: {text: secret}, open/plan: {text: plan}}}
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook, path: sops}
agents: {brand: {}}
prompts: {dirs: [./prompts]}
policy:
  - {who: brand, may: "*", what: "**"}
  - {who: brand, may: "*", what: "*://board/*", effect: deny, hide: true}
  - {who: brand, may: "*", what: ["tool://undo", "tool://file-reader", "prompt://secret"], effect: deny, hide: true}
  - {who: brand, may: "*", what: "sop://*", effect: deny, hide: true, when: {metadata: {confidentiality: secret}}}
"""
SOP = "---\nid: {0}\ntitle: {0}\nversion: 1.0.0\nstatus: active\nfunction: func-brand\n{1}---\nwords\n"
FILES = {
    "files/board/merger": "secret",
    "files/open/plan": "plan",
    "handbook/sops/board/merger.md": SOP.format("merger", ""),
    "handbook/sops/brand/sealed.md": SOP.format("sealed", "confidentiality: secret\n"),
    "handbook/sops/brand/plain.md": SOP.format("plain", ""),
    "prompts/secret.json": json.dumps(
        {"id": "secret", "description": "x", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}
    ),
}


class Way(NamedTuple):
    """One way to ask for a thing, by a text of which only the thing differs."""

    method: str
    params: Callable[[str], Mapping[str, Any]]
    hidden: str = HIDDEN
    absent: str = ABSENT


def _tool(name: str, **arguments: Any) -> Callable[[str], Mapping[str, Any]]:
    def params(what: str) -> Mapping[str, Any]:
        return {"name": name, "arguments": json.loads(json.dumps(arguments).replace("WHAT", what))}

    return params


def _read(uri: str) -> Callable[[str], Mapping[str, Any]]:
    return lambda what: {"uri": uri.replace("WHAT", what)}


def _completion(what: str) -> Mapping[str, Any]:
    argument = {"name": "path", "value": what[:-2]}
    return {"ref": {"type": "ref/resource", "uri": "file://{+path}"}, "argument": argument}


def _argument(what: str) -> Mapping[str, Any]:
    return {"ref": {"type": "ref/prompt", "name": what}, "argument": {"name": "topic", "value": "a"}}


def _encoded(what: str) -> str:
    return "".join(f"%{byte:02X}" if chr(byte) not in "/." else chr(byte) for byte in what.encode())


WAYS: dict[str, Way] = {
    **{f"read {scheme}": Way("resources/read", _read(f"{scheme}://WHAT")) for scheme in ("file", "mem", "sop")},
    "read, escaped": Way("resources/read", lambda what: {"uri": f"file://{_encoded(what)}"}),
    "read, absolute": Way("resources/read", _read("file://ROOT/WHAT")),
    "read, of a root": Way("resources/read", _read("file://WHAT?root=1")),
    "read, a version": Way("resources/read", _read("sop://WHAT?version=1.0.0")),
    "read, a view": Way("resources/read", _read("sop://WHAT?view=parsed")),
    "read, below": Way("resources/read", _read("file://WHAT/more")),
    "read, by metadata": Way("resources/read", _read("sop://WHAT"), "brand/sealed", "brand/absent"),
    "read, by metadata, a version": Way(
        "resources/read", _read("sop://WHAT?version=1.0.0"), "brand/sealed", "brand/absent"
    ),
    "list below": Way("resources/list", lambda what: {"_meta": {"dev.octavo/filter": {"under": f"file://{what[:5]}"}}}),
    "complete": Way("completion/complete", _completion),
    "complete, of a prompt": Way("completion/complete", _argument, "secret", "absent"),
    "directory": Way("resources/directory/read", _read("file://WHAT")),
    "directory of a catalog": Way("resources/directory/read", _read("sop://WHAT"), "board", "bored"),
    "subscribe": Way("resources/subscribe", _read("file://WHAT")),
    "tool read": Way("tools/call", _tool("read", targets=["file://WHAT"])),
    "tool list": Way("tools/call", _tool("list", target="file://WHAT")),
    "tool info": Way("tools/call", _tool("info", target="file://WHAT")),
    **{
        f"tool search, {kind}": Way("tools/call", _tool("search", query="secret", target="file://WHAT", kind=kind))
        for kind in ("ranked", "content", "names")
    },
    "tool edit": Way("tools/call", _tool("edit", target="file://WHAT", edits=[{"old": "a", "new": "b"}])),
    "tool delete": Way("tools/call", _tool("delete", target="file://WHAT")),
    "tool move": Way("tools/call", _tool("move", target="file://WHAT", to="file://open/new")),
    "tool copy": Way("tools/call", _tool("copy", target="file://WHAT", to="file://open/new")),
    "a tool": Way("tools/call", lambda what: {"name": what, "arguments": {}}, "undo", "udno"),
    "a tool of the lane": Way(
        "tools/call", lambda what: {"name": what, "arguments": {"path": "x"}}, "file-reader", "file-raeder"
    ),
    "a prompt": Way("prompts/get", lambda what: {"name": what, "arguments": {}}, "secret", "absent"),
}


class Client:
    def __init__(self, pipe: Pipe, era: str, root: Path) -> None:
        self._pipe, self._era, self._root = pipe, era, root

    async def ask(self, way: Way, what: str) -> str:
        """The answer, with the thing that was asked for taken out."""
        params = json.loads(json.dumps({**way.params(what)}).replace("ROOT", str(self._root).lstrip("/")))
        if self._era == "modern":
            params["_meta"] = {**META, **params.get("_meta", {})}
        (answer,) = await self._pipe.ask(frame(way.method, params))
        text = answer.text
        for spelling in (_encoded(what), what, what[:-2], what[:5]):
            text = text.replace(spelling, "*" * len(spelling))
        return text


@asynccontextmanager
async def client(base: Path, era: str) -> AsyncIterator[Client]:
    for name, text in FILES.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text, encoding="utf-8")
    state = base / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    loaded = load_text(CONFIGURATION, file=base / "octavo.yaml", environ={})
    async with (
        Octavo(loaded, state=StateDirectory(state, b"s" * 32)) as octavo,
        Pipe(octavo, octavo.works.identity.launched("brand"), lane=True) as pipe,
    ):
        if era != "modern":
            await pipe.ask(initialize(era))
            await pipe.ask(INITIALIZED)
        yield Client(pipe, era, base / "files")


class Timing(NamedTuple):
    hidden: float  # medians, in microseconds
    absent: float
    longer: float  # how often a hidden one took longer than an absent one


async def timing(asking: Client, way: Way, pairs: int) -> Timing:
    taken: dict[str, list[float]] = {way.hidden: [], way.absent: []}
    order = random.Random(pairs)  # or what a process does now and then could always meet the same one
    for _ in range(pairs):
        for what in order.sample((way.hidden, way.absent), 2):
            begun = time.perf_counter()
            await asking.ask(way, what)
            taken[what].append((time.perf_counter() - begun) * 1e6)
    hidden, absent = taken[way.hidden], taken[way.absent]
    return Timing(statistics.median(hidden), statistics.median(absent), _rank(hidden, absent))


def _rank(ones: list[float], others: list[float]) -> float:
    """The share of pairs of which the first is greater: Mann and Whitney's U, over all pairs."""
    order = sorted([(value, True) for value in ones] + [(value, False) for value in others])
    below, won = 0, 0
    for _, first in order:
        if first:
            won += below
        else:
            below += 1
    return won / (len(ones) * len(others))


async def main(pairs: int) -> None:
    print(f"{'asked':32} {'era':12} {'hidden µs':>10} {'absent µs':>10} {'longer':>7}")
    for era in ERAS:
        with tempfile.TemporaryDirectory() as base:
            async with client(Path(base), era) as asking:
                for name, way in WAYS.items():
                    told = await timing(asking, way, pairs)
                    print(f"{name:32} {era:12} {told.hidden:10.0f} {told.absent:10.0f} {told.longer:7.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=500)
    asyncio.run(main(parser.parse_args().pairs))
