"""Random rules, many of them with typing errors, queries, unknown schemes and names that no source can have.

    python -m tests.config.random_rules --rules 2000

Each that can never match must be named, as an error where it denies and as a warning where it allows, and none that can
match. What can match is found by trying: addresses are built from each pattern with names of every kind until one is an
address that a source of the configuration could have. Nothing of ours matches there; wcmatch does, and what a source
could have is written down below once more. Prints one line of JSON; exit code 1 if they ever disagree.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from wcmatch import glob as wcmatch

from octavo.app.configuration import load_text
from octavo.config.problems import ConfigError

FLAGS = wcmatch.GLOBSTAR | wcmatch.DOTGLOB | wcmatch.FORCEUNIX
AT_ONCE = 25  # rules of one configuration
FILES = """  work: {kind: file, roots: [{path: ./work, as: /project/docs}, ./more]}
  vault: {kind: file, scheme: vault, roots: [./vault]}
"""
CATALOGS = """  store: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: store, path: sops, files: "{function}/{name}.md"}
  docs: {kind: doc, store: store, path: docs}
  skills: {kind: skill, store: store, path: skills}
  agents: {kind: agent, store: store, path: agents, files: "{name}.yml"}
  org: {kind: org, store: store, path: org}
  wiki: {kind: catalog, scheme: wiki, store: store, path: wiki, files: "{team}/{+page}.md"}
  tickets: {kind: catalog, scheme: ticket, store: store, path: tickets, files: "{team}/open/{name}.md"}
"""
NOTES = """  notes:
    kind: memory
    scheme: note
    resources: {today: {text: x}, plans/summer: {text: x}}
    templates: {"day/{month}-{day}": {text: x}}
"""
WORLDS = (FILES + CATALOGS + NOTES, FILES, CATALOGS, FILES + NOTES, CATALOGS + NOTES)
OURS = ("tool", "prompt", "permission", "changes", "server")
NAMES = (
    "hr", "brand", "pay", "guide.md", "a", "function", "value-stream", "role", "today", "plans", "summer", "day", "1-2",
    "open", "project", "docs", "config", "metrics", "file", "sop", "note", "한글",
)  # fmt: skip
SCHEMES = ("file", "vault", "sop", "doc", "skill", "agent", "org", "wiki", "ticket", "note")
FILLED = tuple(dict.fromkeys(("q", "q-q", *NAMES, *SCHEMES)))

Could = Callable[[Sequence[str]], bool]


class Figures(NamedTuple):
    rules: int
    never: int
    named: int
    missed: int
    wronged: int


class World:
    """What the sources of a configuration could ever have."""

    def __init__(self, sources: str, base: Path) -> None:
        self.text = f"version: 1\nsources:\n{sources}policy:\n"
        has_files = FILES in sources
        self.roots = [("project", "docs"), (*base.parts[1:], "more")] if has_files else []
        self.has: dict[str, Could] = {"server": lambda names: [*names] in (["config"], ["metrics"])}
        self.has |= dict.fromkeys(("tool", "prompt", "permission"), _anything)
        if has_files:
            self.has |= {"file": _anything, "vault": _anything}
        if CATALOGS in sources:
            self.has |= {
                "sop": lambda names: len(names) <= 2,
                "doc": _anything,
                "skill": _anything,
                "agent": lambda names: len(names) <= 1,
                "org": _anything,
                "wiki": _anything,
                "ticket": lambda names: len(names) <= 3 and (len(names) < 2 or names[1] == "open"),
            }
        if NOTES in sources:
            self.has["note"] = _anything  # what an edit of the configuration brings
        served = [scheme for scheme in self.has if scheme not in OURS]
        self.has["changes"] = lambda names: not names or names[0] in served

    def can_match(self, pattern: str) -> bool:
        scheme, _, path = pattern.partition("://")
        if "?" in pattern:
            return False
        if scheme == "file" and path.startswith("/"):
            return any(
                _found(path[1:], lambda names, root=root: [*names[: len(root)]] == [*root], root) for root in self.roots
            )
        could = self.has.values() if scheme == "*" else [self.has[scheme.lower()]] if scheme.lower() in self.has else []
        return any(_found(path, one) for one in could)


def _anything(names: Sequence[str]) -> bool:
    return True


def _found(path: str, could: Could, beginning: Sequence[str] = ()) -> bool:
    """Whether some address that could be there matches."""
    parts = path.split("/") if path else []
    subtree = (path == "" and bool(beginning)) or (bool(parts) and parts[-1] in ("*", "**", ""))
    fixed = "/".join(parts[:-1] if subtree and parts else parts)
    while subtree and (fixed == "**" or fixed.endswith("/**")):
        fixed = fixed[:-2].removesuffix("/")  # a subtree of any depth is a subtree
    deepest = max(len(parts), len(beginning)) + 3
    known = list(dict.fromkeys((*beginning, *FILLED)))

    def built(left: Sequence[str], names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if beginning and any(one != two for one, two in zip(names, beginning, strict=False)):
            return  # no root lies there, whatever follows
        if names and not beginning and not could(names):
            return  # what stands above an address is one
        if not left:
            yield names
            if subtree and len(names) < deepest:
                following = beginning[len(names) : len(names) + 1] or known
                yield from chain.from_iterable(built(left, (*names, one)) for one in following)
        elif left[0] == "**":
            yield from built(left[1:], names)
            if len(names) < deepest:
                following = beginning[len(names) : len(names) + 1] or known
                yield from chain.from_iterable(built(left, (*names, one)) for one in following)
        elif "*" in left[0]:
            fits = [one for one in known if wcmatch.globmatch(one, left[0], flags=FLAGS)]
            fits += [left[0].replace("*", one) for one in ("", "q", "q-q", "-q", "q-") if left[0].replace("*", one)]
            yield from chain.from_iterable(built(left[1:], (*names, one)) for one in dict.fromkeys(fits))
        else:
            yield from built(left[1:], (*names, left[0]))

    return any(
        could(names) and _matches(names, fixed, subtree) for names in built(fixed.split("/") if fixed else [], ())
    )


def _matches(names: Sequence[str], fixed: str, subtree: bool) -> bool:
    path = "/".join(names)
    if not fixed:
        return subtree or not path
    return bool(wcmatch.globmatch(path, [fixed, f"{fixed}/**"] if subtree else fixed, flags=FLAGS))


def drawn(rng: random.Random, roots: Sequence[Sequence[str]]) -> str:
    """A pattern that says something, and often enough not what was meant."""
    schemes = (*SCHEMES, "file", "note", "*", *OURS)
    scheme = rng.choice(schemes)
    names = [_part(rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 4)))]
    if scheme == "org" and rng.random() < 0.7:
        names[:1] = [rng.choice(("function", "value-stream", "role", "*"))]
    if scheme == "file" and roots and rng.random() < 0.5:
        names = ["", *rng.choice(roots)[: rng.randint(1, 9)], *names]
    end = rng.choice(("", "", "/*", "/**", "/") if names else ("", "*", "**"))
    text = f"{scheme}://{'/'.join(names)}{end}"
    for _ in range(rng.choice((0, 0, 1, 2))):
        text = _slip(rng, text)
    if rng.random() < 0.1:
        text += rng.choice(("?root=2", "?view=parsed", "?version=1.0.0", "?", "?a=b&c=*"))
    return text


def _part(rng: random.Random) -> str:
    name = rng.choice(NAMES)
    at = rng.randrange(len(name) + 1)
    return rng.choice((name, name, name, "*", "**", f"{name[:at]}*", f"*{name[at:]}", f"{name[:at]}*{name[at:]}"))


def _slip(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text))
    letter = rng.choice("aeiornst")
    before, one, after = text[:at], text[at], text[at + 1 :]
    if one in ":?":
        return text
    return rng.choice(
        (before + after, before + one + text[at:], before + letter + after, before + after[:1] + one + after[1:])
    )


def is_pattern(text: str) -> bool:
    """Whether it is one at all: what is none is another error."""
    found = re.fullmatch(r"([a-z][a-z0-9+.-]*|\*)://(.*)", text.partition("?")[0])
    if found is None:
        return False
    path = found[2].removeprefix("/") if found[1] == "file" else found[2]
    names = path.removesuffix("/").split("/") if path else []
    if path == "/":
        return False
    return all(name not in ("", ".", "..") and (name in ("*", "**") or "**" not in name) for name in names)


def named(world: World, patterns: Sequence[str], base: Path, *, deny: bool) -> set[int]:
    """The rules of which the configuration says that they never match."""
    effect = ", effect: deny" if deny else ""
    rules = "".join(f'  - {{who: "*", may: "*", what: {json.dumps(one)}{effect}}}\n' for one in patterns)
    try:
        problems = load_text(world.text + rules, file=base / "octavo.yaml", environ={}).warnings
    except ConfigError as error:
        problems = error.problems
    keys = [one.key for one in problems if "never matches" in one.message]
    return {int(found[1]) for key in keys if (found := re.fullmatch(r"policy\[(\d+)\]\.what", key))}


def compare(rules: int, seed: int, base: Path) -> Figures:
    rng = random.Random(seed)
    for folder in ("work", "more", "vault", "handbook"):
        (base / folder).mkdir(exist_ok=True)
    worlds = [World(sources, base) for sources in WORLDS]
    count = never = found = missed = wronged = 0
    while count < rules:
        world, deny = rng.choice(worlds), rng.random() < 0.5
        patterns: list[str] = []
        while len(patterns) < min(AT_ONCE, rules - count):
            if is_pattern(one := drawn(rng, world.roots)) and one not in patterns:
                patterns.append(one)
        told = named(world, patterns, base, deny=deny)
        for number, pattern in enumerate(patterns):
            can = world.can_match(pattern)
            never, found = never + (not can), found + (number in told)
            if can is (number in told):
                missed, wronged = missed + (not can), wronged + can
                print("named and can match:" if can else "not named:", pattern, world.text, sep="\n", file=sys.stderr)
        count += len(patterns)
    return Figures(count, never, found, missed, wronged)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rules", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = compare(asked.rules, asked.seed, Path(folder).resolve())
    print(json.dumps(figures._asdict()))
    return 1 if figures.missed or figures.wronged else 0


if __name__ == "__main__":
    sys.exit(main())
