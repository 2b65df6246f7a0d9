"""Kills a real server between the announcement of a change, the change and its outcome, and counts what is on record.

    python -m tests.audit.changes --kills 200

Each life of the server is asked to write, delete and move, and ends at one point of one of these changes (see
`tests.audit.dying`). No change may be without its intent, none told as failed may have been made, each that was told as
made has its outcome, and `audit verify` names exactly the changes without one. Prints one line of JSON.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.audit.dying import POINTS
from tests.audit.kills import of_life
from tests.e2e.harness import ROOT, Pipe, Place

CHANGES = 6  # that one life is asked for
CONFIGURATION = "version: 1\nsources: {work: {kind: file, roots: [./root], write: true}}\n"


@dataclass
class Figures:
    kills: int = 0
    changes: int = 0  # that were made
    told: int = 0  # as made
    unfinished: int = 0  # announced, and without an outcome
    without_intent: int = 0
    told_as_failed_and_made: int = 0
    told_as_made_without_outcome: int = 0
    wrongly_named: int = 0  # by verify
    broken: int = 0  # logs that verify does not believe
    points: Counter[str] = field(default_factory=Counter)

    @property
    def good(self) -> bool:
        wrong = self.without_intent + self.told_as_failed_and_made + self.told_as_made_without_outcome
        return not (wrong or self.wrongly_named or self.broken)


def asked(number: int) -> tuple[str, dict[str, Any]]:
    """A change of its own for each number, by whose address it is known."""
    file = f"{number}.md"
    if number % 3 == 0:
        return "write", {"target": file, "content": "new"}
    return ("delete", {"target": file}) if number % 3 == 1 else ("move", {"target": file, "to": f"moved-{file}"})


def prepare(place: Place, numbers: range) -> None:
    for number in numbers:
        if number % 3:
            place.edit(f"{number}.md", "old")


def made(place: Place, number: int) -> bool:
    there = (place.root / f"{number}.md").exists()
    return there if number % 3 == 0 else not there


def live(place: Place, point: str, at: int, numbers: range) -> dict[int, bool]:
    """Which were answered, and whether as made."""
    command = [sys.executable, "-m", "tests.audit.dying", point, str(at), "serve", "--config", "octavo.yaml"]
    environment = {**place.environment, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    process = subprocess.Popen(
        command, cwd=place.base, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    pipe = Pipe(process, "modern")
    told: dict[int, bool] = {}
    try:
        for number in numbers:
            name, arguments = asked(number)
            answer = pipe.ask("tools/call", {"name": name, "arguments": arguments})
            told[number] = "result" in answer and not answer["result"].get("isError")
    except (AssertionError, BrokenPipeError):
        process.wait(60)
    finally:
        pipe.close()
    return told


def run(base: Path, kills: int, seed: int = 0) -> Figures:
    place, figures = Place(base), Figures()
    (base / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    known: set[Path] = set()
    unfinished: set[str] = set()
    for life in range(kills):
        point = POINTS[(life + seed) % len(POINTS)]
        at = 1 + (life + seed) // len(POINTS) % CHANGES
        numbers = range(life * CHANGES, (life + 1) * CHANGES)
        prepare(place, numbers)
        told = live(place, point, at, numbers)
        records = of_life(place, known, sealed=True)
        intents = {one["uri"]: one["id"] for one in records if one["outcome"] == "intent"}
        ended = {one["intent"] for one in records if "intent" in one}
        for number in numbers:
            done, uri = made(place, number), f"file://{number}.md"
            figures.changes += done
            figures.told += told.get(number, False)
            figures.without_intent += done and uri not in intents
            figures.told_as_failed_and_made += done and told.get(number) is False
            figures.told_as_made_without_outcome += told.get(number, False) and intents.get(uri) not in ended
        figures.kills += len(told) < CHANGES
        figures.points[point] += 1
        unfinished |= set(intents.values()) - ended
    report = json.loads(place.run("audit", "verify", "--config", base / "octavo.yaml", "--json").stdout)
    named = {one["id"] for chain in report["chains"] for one in chain["unfinished"]}
    figures.unfinished = len(unfinished)
    figures.wrongly_named = len(named ^ unfinished)
    figures.broken = sum(chain["broken"] is not None for chain in report["chains"])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = run(Path(folder), given.kills, given.seed)
    print(json.dumps({**vars(figures), "good": figures.good}))
    raise SystemExit(not figures.good)


if __name__ == "__main__":
    main()
