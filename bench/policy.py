"""What a decision costs, in microseconds, under 1,000 rules.

    python bench/policy.py                  rules on 1,000 folders, and all of them on one
    python bench/policy.py --rules 10000    another number

    first       an address that was never asked about, its rules found by scheme and first segment
    again       one that was: what every repeated read costs
    condition   one whose rule has a condition on metadata and on the time, with the facts at hand
    crowded     never asked about, and all rules are on one folder: the worst case
    filter      what a ranked search asks of each of 100,000 documents, in milliseconds for all

Exit code 1 if half of the first decisions take more than 20 us, or the filter takes more than two seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from time import perf_counter, perf_counter_ns
from zoneinfo import ZoneInfo

from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.core.values import Entry, Principal, Template
from octavo.pipeline.policy.conditions import Condition, Conditions, Metadata, Times
from octavo.pipeline.policy.fold import Policy
from octavo.pipeline.policy.rules import Facts, Rule

LIMIT, FILTER_LIMIT = 20.0, 2000
DOCUMENTS = 100_000
WHO = Principal("agent-brand", frozenset({"marketing"}))
CONDITION = Condition(
    Conditions(Metadata((("status", ("active", "approved")),)), Times(ZoneInfo("Asia/Seoul"), hours=(0, 24 * 60 - 1)))
)
FACTS = Facts({"status": "active", "tags": ["press"]})


class Addresses:
    """One source whose addresses have one spelling."""

    exposed = ("sop",)

    def canonical(self, ref: Ref) -> Ref:
        return ref

    def spelled(self, ref: Ref) -> Ref:
        return ref

    def refuses(self, ref: Ref) -> None:
        return None

    def collects(self, ref: Ref) -> bool:
        return False

    def filters(self, scheme: str) -> Sequence[str]:
        return ()

    def whole(self, ref: Ref) -> None:
        return None

    def templates(self) -> Sequence[Template]:
        return ()

    def labelled(self, entry: Entry) -> Entry:
        return entry


def policy(count: int, condition: Condition | None = None, *, crowded: bool = False) -> Policy:
    """Half of the rules are for the agent by its role; every tenth denies."""
    rules = [
        Rule(
            who=("role:marketing",) if number % 2 else ("agent-brand", "agent-ops"),
            may=frozenset(("list", "read", "search")),
            what=(Glob(f"sop://all/x{number}/*" if crowded else f"sop://folder-{number}/*"),),
            allow=number % 10 != 0,
            name=f"policy[{number}]",
            condition=condition,
        )
        for number in range(count)
    ]
    return Policy(rules, Addresses())


def addresses(rng: random.Random, count: int, rules: int, *, crowded: bool = False) -> list[Ref]:
    return [
        Ref(
            "sop", (("all", f"x{rng.randrange(rules)}") if crowded else (f"folder-{rng.randrange(rules)}",)) + (f"{n}",)
        )
        for n in range(count)
    ]


def timed(decide: Callable[[Ref], object], refs: Sequence[Ref]) -> dict[str, float]:
    taken: list[int] = []
    for ref in refs:
        begin = perf_counter_ns()
        decide(ref)
        taken.append(perf_counter_ns() - begin)
    taken.sort()
    return {"p50": taken[len(taken) // 2] / 1000, "p99": taken[len(taken) * 99 // 100] / 1000}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rules", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=20_000)
    wanted = parser.parse_args()
    rng = random.Random(4)
    refs = addresses(rng, wanted.requests, wanted.rules)
    plain, conditional = policy(wanted.rules), policy(wanted.rules, CONDITION)
    plain.decide(WHO, "read", Ref("sop"))  # the rules of one principal are compiled at its first request
    conditional.decide(WHO, "read", Ref("sop"))
    crowded = policy(wanted.rules, crowded=True)
    crowded.decide(WHO, "read", Ref("sop"))
    first = timed(lambda ref: plain.decide(WHO, "read", ref), refs)
    figures = {
        "first": first,
        "again": timed(lambda ref: plain.decide(WHO, "read", ref), refs),
        "condition": timed(lambda ref: conditional.decide(WHO, "read", ref, FACTS), refs),
        "crowded": timed(
            lambda ref: crowded.decide(WHO, "read", ref), addresses(rng, 2000, wanted.rules, crowded=True)
        ),
    }
    documents = addresses(rng, DOCUMENTS, wanted.rules)
    finds, begin = plain.finder(WHO), perf_counter()
    seen = sum(finds(ref) is True for ref in documents)
    taken = round((perf_counter() - begin) * 1000)
    filtered = {"documents": DOCUMENTS, "seen": seen, "ms": taken}
    print(json.dumps({"rules": wanted.rules, **figures, "filter": filtered}, indent=2))
    return 1 if first["p50"] > LIMIT or taken > FILTER_LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
