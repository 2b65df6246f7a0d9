"""The policy against Cedar, and patterns against wcmatch, on random rules and requests.

    python -m tests.security.oracle --policies 1000 --requests 1000 --patterns 100000

Every rule is told to Cedar in Cedar's own words: roles are groups, a pattern is a comparison of each segment, and a
condition is written out twice, as what makes an allow apply and what makes a deny apply. Nothing of ours matches or
evaluates there. Prints one line of JSON; exit code 1 if they ever disagree.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from wcmatch import glob as wcmatch

from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.core.values import Entry, Principal, Template, Verb
from octavo.pipeline.policy.conditions import ArgumentsAre, Condition, Conditions, Metadata, NumberRange, Times
from octavo.pipeline.policy.fold import Policy
from octavo.pipeline.policy.rules import Facts, Rule

VERBS: tuple[Verb, ...] = ("list", "read", "search", "watch", "write", "delete", "invoke", "render", "approve", "admin")
ROLES = ("marketing", "operations", "audit")
AGENTS = tuple(
    Principal(name, frozenset(roles))
    for name, roles in (
        ("brand", ["marketing"]),
        ("ops", ["operations"]),
        ("chief", ["marketing", "operations", "audit"]),
        ("local", []),
    )
)
SCHEMES = ("sop", "doc", "tool")
NAMES = ("hr", "brand", "pay", "guide", "가이드", "a*b", "h")
DEPTH = 3
ZONES = {"utc": ZoneInfo("UTC"), "seoul": ZoneInfo("Asia/Seoul"), "york": ZoneInfo("America/New_York")}
META: Mapping[str, tuple[str, ...]] = {
    "status": ("draft", "active", "retired"),
    "tags": ("money", "people", "press"),
    "owner": ("brand", "ops"),
    "confidentiality": ("public", "internal", "secret"),
}
PATHS = ("docs/a", "docs/b/c", "Docs/a", "etc/a", "a")
DAY_ZERO = date(2026, 1, 1)


class Addresses:
    exposed = ("sop", "doc")
    naming = frozenset[str]()

    def canonical(self, ref: Ref) -> Ref:
        return ref

    def spelled(self, ref: Ref) -> Ref:
        return ref

    def whole(self, ref: Ref) -> Ref | None:
        return None

    def refuses(self, ref: Ref) -> None:
        return None

    def collects(self, ref: Ref) -> bool:
        return False

    def filters(self, scheme: str) -> Sequence[str]:
        return ()

    def templates(self) -> list[Template]:
        return []

    def labelled(self, entry: Entry) -> Entry:
        return entry


class Request(NamedTuple):
    who: Principal
    verb: Verb
    ref: Ref
    facts: Facts
    entity: str  # the resource with these metadata, as Cedar knows it


class Resource(NamedTuple):
    entity: str
    ref: Ref
    metadata: Mapping[str, Any] | None


# -- what is drawn


def resources(rng: random.Random) -> list[Resource]:
    """Every address, each with several sets of metadata: none, unreadable, half readable, and whole."""
    made: list[Resource] = []
    for scheme in SCHEMES:
        for depth in range(DEPTH + 1):
            for names in rng.sample([*product(NAMES, repeat=depth)], min(12, len(NAMES) ** depth)):
                for metadata in (None, {}, {"problems": ["line 1"], **_metadata(rng)}, _metadata(rng), _metadata(rng)):
                    made.append(Resource(f"r{len(made)}", Ref(scheme, names), metadata))
    return made


def _metadata(rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, values in META.items():
        if rng.random() < 0.7:
            some = rng.sample(values, rng.randint(0, 2)) if key == "tags" else rng.choice(values)
            made[key] = [one.title() for one in some] if isinstance(some, list) else some
    return made


def rule(rng: random.Random, number: int) -> Rule:
    whos = ("*", *(agent.id for agent in AGENTS), *(f"role:{role}" for role in ROLES), "role:nobody", "stranger")
    allow = rng.random() < 0.6
    return Rule(
        who=tuple(rng.sample(whos, rng.choice((1, 1, 2)))),
        may=None if rng.random() < 0.3 else frozenset(rng.sample(VERBS, rng.randint(1, 4))),
        what=tuple(pattern(rng) for _ in range(rng.choice((1, 1, 2)))),
        allow=allow,
        hide=not allow and rng.random() < 0.3,
        name=f"policy[{number}]",
        condition=condition(rng) if rng.random() < 0.6 else None,
    )


def pattern(rng: random.Random) -> Glob:
    if rng.random() < 0.1:
        return Glob("**")
    scheme = rng.choice((*SCHEMES, "*"))
    parts = rng.choices(
        ("hr", "brand", "pay", "guide", "가이드", "a%2Ab", "*", "**", "h*", "*i*e", "*b"), k=rng.randint(0, 3)
    )
    end = rng.choice(("", "/*", "/"))
    return Glob(f"{scheme}://" + ("/".join(parts) + end if parts else "*"))


def condition(rng: random.Random) -> Condition:
    kind = rng.random()
    return Condition(_demands(rng) if kind < 0.8 else None, _demands(rng) if kind > 0.6 else None)


def _demands(rng: random.Random) -> Conditions:
    kinds = rng.sample(("metadata", "time", "arguments"), rng.choice((1, 1, 2)))
    wanted = rng.sample([*META], rng.randint(1, 2))
    return Conditions(
        Metadata(tuple((key, tuple(rng.sample(META[key], rng.randint(1, 2)))) for key in wanted))
        if "metadata" in kinds
        else None,
        _times(rng) if "time" in kinds else None,
        ArgumentsAre(tuple(rng.sample(_WANTED, rng.randint(1, 2)))) if "arguments" in kinds else None,
    )


_WANTED: list[tuple[str, Any]] = [
    ("path", ("docs/*",)),
    ("path", ("docs/a", "*c")),
    ("count", NumberRange(2, 5)),
    ("count", NumberRange(None, 3)),
    ("count", (1, 4)),
    ("force", (True,)),
]


def _times(rng: random.Random) -> Times:
    begin, end = rng.sample(range(0, 24 * 60, 30), 2)
    first = DAY_ZERO + timedelta(rng.randint(0, 300))
    return Times(
        zone=rng.choice([*ZONES.values()]),
        days=frozenset(rng.sample(range(7), rng.randint(1, 5))) if rng.random() < 0.6 else frozenset(),
        hours=(begin, end) if rng.random() < 0.7 else None,
        first=first if rng.random() < 0.3 else None,
        last=first + timedelta(rng.randint(0, 200)) if rng.random() < 0.3 else None,
    )


def request(rng: random.Random, known: Sequence[Resource]) -> Request:
    resource = rng.choice(known)
    given = {"path": rng.choice(PATHS), "count": rng.randint(0, 6), "force": rng.random() < 0.5}
    arguments = None if rng.random() < 0.3 else {name: value for name, value in given.items() if rng.random() < 0.7}
    at = datetime(2026, 1, 1, tzinfo=UTC).timestamp() + rng.randrange(365 * 24 * 60) * 60
    facts = Facts(resource.metadata, arguments, at)
    return Request(rng.choice(AGENTS), rng.choice(VERBS), resource.ref, facts, resource.entity)


# -- the same in Cedar


# The person at a client answers its questions unless a rule denies that.
UNGRANTED = 'permit (principal, action == Action::"approve", resource);'


def in_cedar(rules: Iterable[Rule]) -> str:
    return "\n".join((UNGRANTED, *map(_policy, rules)))


def _policy(one: Rule) -> str:
    head = f"{'permit' if one.allow else 'forbid'} (principal, action, resource)"
    actions = ", ".join(f'Action::"{verb}"' for verb in sorted(one.may or VERBS))
    demands = [_any(map(_who, one.who)), f"[{actions}].contains(action)", _any(map(_what, one.what))]
    if one.condition is not None:
        demands.append(_condition(one.condition, sure=one.allow))
    return f"{head} when {{ {' && '.join(f'({text})' for text in demands)} }};"


def _who(who: str) -> str:
    if who == "*":
        return "true"
    return f'principal in Role::"{who[5:]}"' if who.startswith("role:") else f'principal == Agent::"{who}"'


def _what(glob: Glob) -> str:
    """Read from the text of the pattern, not from what was compiled of it."""
    if glob.text == "**":
        return "true"
    scheme, _, path = glob.text.partition("://")
    parts = path.split("/")
    subtree = parts[-1] in ("*", "**", "")
    parts = parts[:-1] if subtree else parts
    named = "true" if scheme == "*" else f'resource.scheme == "{scheme}"'
    return f"{named} && ({_any(_segments(spread, subtree) for spread in _spread(parts))})"


def _spread(parts: Sequence[str]) -> Iterator[list[str]]:
    """Each `**` as every number of single stars that an address could need."""
    if "**" not in parts:
        yield [*parts]
        return
    at = parts.index("**")
    for rest in _spread(parts[at + 1 :]):
        for stars in range(DEPTH + 1):
            yield [*parts[:at], *["*"] * stars, *rest]


def _segments(parts: Sequence[str], subtree: bool) -> str:
    demands = [f"resource.depth {'>=' if subtree else '=='} {len(parts)}"]
    if len(parts) > DEPTH:
        return "false"
    for place, part in enumerate(parts):
        if part != "*":
            text = part.replace("%2A", r"\*")
            demands.append(f'resource.s{place} like "{text}"')
    return " && ".join(demands)


def _condition(one: Condition, *, sure: bool) -> str:
    """What is true for certain; or what is not false for certain."""
    demands = [] if one.when is None else [_demanded(one.when, sure=sure)]
    if one.unless is not None:
        demands.append(f"!({_demanded(one.unless, sure=not sure)})")
    return " && ".join(f"({text})" for text in demands)


def _demanded(demands: Conditions, *, sure: bool) -> str:
    parts: list[str] = []
    if demands.metadata is not None:
        parts += [_has(key, values, sure=sure) for key, values in demands.metadata.wanted]
    if demands.time is not None:
        parts.append(_when(demands.time))
    if demands.arguments is not None:
        parts += [_given(name, values, sure=sure) for name, values in demands.arguments.wanted]
    return " && ".join(f"({part})" for part in parts)


def _has(key: str, values: Iterable[Any], *, sure: bool) -> str:
    wanted = ", ".join(f'"{value}"' for value in values)
    there = f"resource has {key} && resource.{key}.containsAny([{wanted}])"
    if sure:
        return f"resource.known && ({there})"
    return f"!resource.known || ({there}) || (resource.problems && !(resource has {key}))"


def _when(times: Times) -> str:
    zone = next(name for name, known in ZONES.items() if known == times.zone)
    minute, parts = f"context.{zone}.minute", ["true"]
    if times.days:
        parts.append(f"[{', '.join(map(str, sorted(times.days)))}].contains(context.{zone}.day)")
    if times.hours is not None:
        begin, end = times.hours
        word = "&&" if begin < end else "||"
        parts.append(f"({minute} >= {begin} {word} {minute} < {end})")
    if times.first is not None:
        parts.append(f"context.{zone}.date >= {(times.first - DAY_ZERO).days}")
    if times.last is not None:
        parts.append(f"context.{zone}.date <= {(times.last - DAY_ZERO).days}")
    return " && ".join(parts)


def _given(name: str, wanted: Any, *, sure: bool) -> str:
    value = f"context.args.{name}"
    if isinstance(wanted, NumberRange):
        bounds = [f"{value} >= {wanted.least}"] if wanted.least is not None else []
        fits = " && ".join([*bounds, f"{value} <= {wanted.most}"] if wanted.most is not None else bounds)
    elif name == "path":
        # In small letters alone it fits neither for certain nor not.
        fits = _any(f'{value if sure else "context.args.small"} like "{text}"' for text in wanted)
    else:
        fits = _any(f"{value} == {str(one).lower()}" for one in wanted)
    there = f"context.args has {name}"
    return f"{there} && ({fits})" if sure else f"!({there}) || ({fits})"


def _any(texts: Iterable[str]) -> str:
    return " || ".join(f"({text})" for text in texts)


def entities(known: Iterable[Resource]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {
            "uid": {"type": "Agent", "id": agent.id},
            "attrs": {},
            "parents": [{"type": "Role", "id": role} for role in sorted(agent.roles)],
        }
        for agent in AGENTS
    ]
    for entity, ref, metadata in known:
        attrs: dict[str, Any] = {
            "scheme": ref.scheme,
            "depth": len(ref.segments),
            "known": metadata is not None,
            "problems": "problems" in (metadata or {}),
            **{f"s{place}": name for place, name in enumerate((*ref.segments, *[""] * DEPTH)) if place < DEPTH},
        }
        for key, value in (metadata or {}).items():
            if key != "problems":
                attrs[key] = [one.lower() for one in (value if isinstance(value, list) else [value])]
        made.append({"uid": {"type": "Resource", "id": entity}, "attrs": attrs, "parents": []})
    return made


def asked(one: Request) -> dict[str, Any]:
    arguments = dict(one.facts.arguments or {})
    if "path" in arguments:
        arguments["small"] = arguments["path"].lower()
    context: dict[str, Any] = {"args": arguments}
    for name, zone in ZONES.items():
        now = datetime.fromtimestamp(one.facts.at or 0, zone)
        context[name] = {
            "minute": now.hour * 60 + now.minute,
            "day": now.weekday(),
            "date": (now.date() - DAY_ZERO).days,
        }
    return {
        "principal": {"type": "Agent", "id": one.who.id},
        "action": {"type": "Action", "id": one.verb},
        "resource": {"type": "Resource", "id": one.entity},
        "context": context,
    }


# -- both


class Figures(NamedTuple):
    decisions: int
    allowed: int
    conditional: int
    disagreements: int


def against_cedar(policies: int, requests: int, seed: int = 5) -> Figures:
    import cedarpy

    rng = random.Random(seed)
    decisions = allowed = conditional = wrong = 0
    known = resources(rng)
    graph = cedarpy.Entities.from_json_str(json.dumps(entities(known)))
    for _ in range(policies):
        rules = [rule(rng, number) for number in range(rng.randint(1, 12))]
        policy = Policy(rules, Addresses())
        wanted = [request(rng, known) for _ in range(requests)]
        theirs = cedarpy.is_authorized_batch([*map(asked, wanted)], cedarpy.PolicySet.from_str(in_cedar(rules)), graph)
        for one, answer in zip(wanted, theirs, strict=True):
            if answer.diagnostics.errors:
                raise ValueError(answer.diagnostics.errors)
            ours = policy.decide(one.who, one.verb, one.ref, one.facts).allowed
            decisions += 1
            allowed += ours
            conditional += policy.decide(one.who, one.verb, one.ref) != policy.at_best(one.who, one.verb, one.ref)
            if ours is not answer.allowed:
                wrong += 1
                print(f"{one}\n{in_cedar(rules)}", file=sys.stderr)
    return Figures(decisions, allowed, conditional, wrong)


def against_wcmatch(patterns: int, seed: int = 5) -> Figures:
    rng = random.Random(seed)
    flags = wcmatch.GLOBSTAR | wcmatch.DOTGLOB | wcmatch.FORCEUNIX
    parts = ("a", "ab", ".b", "é", "a*", "*b", "*a*", "*.b", "*", "**")
    matched = wrong = 0
    for _ in range(patterns):
        # The end is fixed: a last star is a subtree here and one segment there.
        drawn = [*rng.choices(parts, k=rng.randint(0, 4)), rng.choice(parts[:-2])]
        path = rng.choices(("a", "ab", "b", ".b", "é", "aab", "a.b"), k=rng.randint(1, 5))
        ours = Glob("x://" + "/".join(drawn)).matches(Ref("x", tuple(path)))
        matched += ours
        wrong += ours is not bool(wcmatch.globmatch("/".join(path), "/".join(drawn), flags=flags))
    return Figures(patterns, matched, 0, wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--policies", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=1000, help="of each policy")
    parser.add_argument("--patterns", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=5)
    wanted = parser.parse_args()
    cedar = against_cedar(wanted.policies, wanted.requests, wanted.seed)
    globs = against_wcmatch(wanted.patterns, wanted.seed)
    print(json.dumps({"cedar": cedar._asdict(), "wcmatch": globs._asdict()}))
    return 1 if cedar.disagreements or globs.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
