"""What one call of a trivial tool costs the server, in processor time, beside fastmcp and the plain SDK.

    python bench/tools.py                       about half a minute
    python bench/tools.py --seconds 1           a short look
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
from pathlib import Path

from candidates import HERE, Candidate, Json, installed

from wire import Wrong, conversation, measure

PLUGIN = """
from octavo.core.surface import Hints

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
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
        figures: dict[str, dict[int, float]] = {}
        print(f"{'server':16} {'software':18} {'us cpu, 1 at once':>18} {'us cpu, 32 at once':>19} {'calls/s':>9}")
        for candidate in candidates:
            verify(candidate, log)
            costs, rate = dict[int, float](), 0.0
            for at_once in (1, 32):
                bounds = ("--warm-s", 0.5, "--s", asked.seconds, "--max", 2 * asked.seconds)
                told = measure(candidate, calls(candidate), log, "--conc", at_once, *bounds)["run"]
                costs[at_once], rate = told["cpu_us"], told["rps"]
            figures[candidate.name] = costs
            row = f"{candidate.name:16} {candidate.software:18} {costs[1]:18.0f} {costs[32]:19.0f} {rate:9.0f}"
            print(row, flush=True)
        factors = {name: round(figures[name][32] / figures["octavo"][32], 1) for name in PEERS}
        print(json.dumps({"cpu_us": figures, "times_the_cpu_of_octavo": factors}))


if __name__ == "__main__":
    main()
