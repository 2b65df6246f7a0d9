"""How well requests in plain words find their skill: top-1 and the share among the first three.

    python bench/matching.py                  three sets of requests to the skills of examples/maison-haru
    python bench/matching.py --misses         also what was not found

Each request is a read of `skill://?match=REQUEST` through the whole product, by somebody who may use every skill.

    examples/maison-haru/matches.yaml   the judged set
    bench/requests.yaml                 written for the names of the skills, without a look at their triggers
    bench/paraphrases.yaml              in other words than the skills use: the limit of a match by words

Exit code 1 below top-1 0.85 in the judged set.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.cli.demo import make
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail
from octavo.stores.state import StateDirectory

TOP_1 = 0.85
ROOT = Path(__file__).parents[1]
JUDGED = ROOT / "examples" / "maison-haru" / "matches.yaml"
FURTHER = (ROOT / "bench" / "requests.yaml", ROOT / "bench" / "paraphrases.yaml")


class Judged(NamedTuple):
    request: str
    lang: str
    skill: str


class Result(NamedTuple):
    asked: Judged
    found: Sequence[str]

    @property
    def first(self) -> bool:
        return self.found[:1] == [self.asked.skill]


def requests(file: Path) -> list[Judged]:
    document: Any = YAML(typ="safe").load(file)
    return [Judged(one["request"], one["lang"], one["skill"]) for one in document["matches"]]


async def judged(asked: Sequence[Judged], who: str = "local") -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder) / "demo")
        found = load(Path(folder) / "demo" / "octavo.yaml")
        async with Octavo(found, state=StateDirectory.in_memory()) as house:
            return [Result(one, await _matches(house, who, one.request)) for one in asked]


async def _matches(house: Octavo, who: str, request: str) -> list[str]:
    ref = Ref.of("skill", (), [("match", request)])
    call = Call("read", ref, house.works.identity.launched(who), Trail(), str(ref), max_bytes=1 << 20)
    content: Any = await house.works.ask(call)
    return [one["uri"] for one in json.loads(content.body)["matches"]]


def share(results: Sequence[Result], first: int = 1) -> float:
    return sum(one.asked.skill in one.found[:first] for one in results) / len(results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true")
    misses, good = parser.parse_args().misses, True
    for file in (JUDGED, *FURTHER):
        results = asyncio.run(judged(requests(file)))
        print(file.relative_to(ROOT))
        for lang in ("all", *sorted({one.asked.lang for one in results})):
            some = [one for one in results if lang in ("all", one.asked.lang)]
            print(f"  {lang:<6} {len(some):>3} requests   top-1 {share(some):.3f}   top-3 {share(some, 3):.3f}")
        for one in results if misses else ():
            if not one.first:
                print(f"  {one.asked.request}\n    {one.asked.skill} is not the first of {', '.join(one.found[:3])}")
        good = good and (file != JUDGED or share(results) >= TOP_1)
    print("PASS" if good else "FAIL", f"(target: top-1 >= {TOP_1})")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
