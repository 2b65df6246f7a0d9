"""What one call of a trivial tool costs the server, in processor time, beside fastmcp and the plain SDK.

    python bench/tools.py                       about two minutes: medians of five rounds, the servers in turn
    python bench/tools.py --rounds 1            a short look
    python bench/tools.py --profile FILE        where Octavo's time goes, by cProfile

The tool adds two numbers. Octavo serves it from a plugin with everything on: rules, quota, redaction, audit, schemas
checked both ways. `octavo` says that its tool is lane safe, `octavo-sdk` does not: its calls take the way of the SDK.
Each answer is checked before anything is timed. The C compiler and the client are those of the other benches.
"""

from __future__ import annotations

import argparse
import json
import pstats
import sys
import tempfile
from itertools import product
from pathlib import Path
from statistics import median

from candidates import HERE, Candidate, Json, installed

from wire import Wrong, conversation, measure

PLUGIN = """
from octavo.core.tools import Hints

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
TAKES = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"],
         "additionalProperties": False}
GIVES = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}


def register(octavo):
    async def add(ctx, arguments):
        return {"result": arguments["a"] + arguments["b"]}

    schemas = {"input_schema": TAKES, "output_schema": GIVES}
    octavo.tool("add", add, description="Adds two numbers.", hints=HINTS, lane_safe=LANE, **schemas)
"""
CONFIGURATION = """\
version: 1
agents: {bench: {}}
policy:
  - {who: bench, may: invoke, what: "tool://add"}
  - {who: "*", may: "*", what: "tool://other", effect: deny}
plugins: [{path: ./plugin.py}]
limits: {per_principal: "off", in_flight: 1000}
"""
PEERS = ("fastmcp", "mcp")
AT_ONCE = (1, 32)


def octavo(base: Path, name: str, *, modern: bool, lane: bool, wrapper: tuple[str, ...] = ()) -> Candidate:
    folder = base / name
    folder.mkdir()
    (folder / "plugin.py").write_text(PLUGIN.replace("LANE", str(lane)), encoding="utf-8")
    (folder / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    serve = ("octavo", "serve", "--config", str(folder / "octavo.yaml"), "--as", "bench")
    return Candidate(name, installed("octavo"), (sys.executable, *wrapper, "-m", *serve), modern=modern)


def peer(name: str) -> Candidate:
    return Candidate(name, installed(name), (sys.executable, str(HERE / "peers" / f"tool_{name}.py")))


def calls(candidate: Candidate) -> list[Json]:
    return [candidate.request("tools/call", {"name": "add", "arguments": {"a": n, "b": n * n}}) for n in range(1000)]


def verify(candidate: Candidate, log: Path) -> None:
    with conversation(candidate, log) as talk:
        for number, request in enumerate(calls(candidate)[:20]):
            told = talk.result(request)
            if told.get("structuredContent") != {"result": number + number * number} or told.get("isError"):
                raise Wrong(f"{candidate.name}: {number} + {number * number} is answered with {told}")


def profile(base: Path, file: Path, log: Path) -> None:
    candidate = octavo(base, "profiled", modern=False, lane=True, wrapper=("-m", "cProfile", "-o", str(file)))
    measure(candidate, calls(candidate), log, "--conc", 32, "--n", 20_000, "--s", 0)
    pstats.Stats(str(file)).sort_stats("tottime").print_stats(30)


def costs(candidate: Candidate, log: Path, seconds: float) -> dict[int, float]:
    """Processor time of a call, in microseconds, by how many are under way."""
    bounds = ("--warm-s", 0.3, "--s", seconds, "--max", 2 * seconds)
    return {
        at_once: measure(candidate, calls(candidate), log, "--conc", at_once, *bounds)["run"]["cpu_us"]
        for at_once in AT_ONCE
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--profile", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="octavo-bench-tools-") as folder:
        base, log = Path(folder), Path(folder, "log")
        if asked.profile is not None:
            profile(base, asked.profile, log)
            return
        candidates = [
            octavo(base, "octavo", modern=False, lane=True),
            octavo(base, "octavo-modern", modern=True, lane=True),
            octavo(base, "octavo-sdk", modern=False, lane=False),
            *map(peer, PEERS),
        ]
        for candidate in candidates:
            verify(candidate, log)
        rounds = [{one.name: costs(one, log, asked.seconds) for one in candidates} for _ in range(asked.rounds)]
        print(f"{'server':16} {'software':18} {'us cpu, 1 at once':>18} {'us cpu, 32 at once':>19}")
        for one in candidates:
            first, second = (median(each[one.name][at_once] for each in rounds) for at_once in AT_ONCE)
            print(f"{one.name:16} {one.software:18} {first:18.0f} {second:19.0f}")
        # Of one round with itself: the machine may be another one in the next.
        factors = {
            f"{name}, {at_once} at once": round(median(r[name][at_once] / r["octavo"][at_once] for r in rounds), 1)
            for name, at_once in product(PEERS, AT_ONCE)
        }
        print(json.dumps({"rounds": asked.rounds, "times_the_cpu_of_octavo": factors}))


if __name__ == "__main__":
    main()
