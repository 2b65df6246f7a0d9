"""gitleaks: each of its rules has `tps`, which it must find, and `fps`, which it must not."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import re2
from bench.foreign.case import Case, Kind, judged
from bench.foreign.golang import Reader, tokens
from bench.foreign.patterns import has_own_form, made_from

from octavo.pipeline.redact.rules.checks import entropy

RULES = "cmd/generate/config/rules"
CONFIGURATIONS = ("config/betterleaks.toml", "config/gitleaks.toml")  # a fork with rules of its own, and the first
_RANDOM = 4.0
_ALPHABETS = {
    "Numeric": "[0-9]", "Hex": "[a-f0-9]", "AlphaNumeric": "[a-z0-9]", "AlphaNumericExtendedShort": "[a-z0-9_-]",
    "AlphaNumericExtended": "[a-z0-9=_-]", "AlphaNumericExtendedLong": "[a-z0-9/=_+-]",
}  # fmt: skip


def cases(folder: Path) -> Iterator[Case]:
    with next(path for path in map(folder.joinpath, CONFIGURATIONS) if path.exists()).open("rb") as file:
        rules = {rule["id"]: rule for rule in tomllib.load(file)["rules"]}
    frames = _frames(folder)
    others = [
        (rule["id"], re2.compile(rule["regex"]), rule.get("entropy", 0)) for rule in rules.values() if "regex" in rule
    ]
    for path in sorted((folder / RULES).glob("*.go")):
        for source in re.split(r"(?m)^func ", path.read_text(encoding="utf-8"))[1:]:
            named = re.search(r'RuleID:\s*"([^"]+)"', source)
            if named and named.group(1) in rules and "regex" in rules[named.group(1)]:
                for case in _of_rule(rules[named.group(1)], source, frames):
                    if case.hidden or not _is_another(case, others):
                        yield case


def _frames(folder: Path) -> list[str]:
    """The lines into which its generator puts a secret, in many languages."""
    source = (folder / "cmd/generate/config/utils/generate.go").read_text(encoding="utf-8")
    reader = Reader(tokens(source))
    return [frame for place in reader.places("samples") for frame in reader.value_at(place)]


def _of_rule(rule: dict[str, Any], source: str, frames: list[str]) -> Iterator[Case]:
    name, pattern = rule["id"], re2.compile(rule["regex"])
    chance = random.Random(name)
    made: dict[str, str] = {}

    def sample(identifier: str, secret: str) -> list[str]:
        lines = [
            frame.replace("{i}", identifier).replace("{I}", identifier.upper()).replace("{s}", secret)
            for frame in frames
        ]
        made.update(dict.fromkeys(lines, secret))
        return lines

    functions: dict[str, Any] = {
        "secrets.NewSecret": lambda form: made_from(form, chance),
        "newPlausibleSecret": lambda form: made_from(form, chance),
        "utils.GenerateSampleSecrets": sample,
        "utils.GenerateSampleSecret": lambda identifier, secret: sample(identifier, secret)[0],
        "utils.Hex8_4_4_4_12": lambda: "-".join(f"[a-f0-9]{{{n}}}" for n in (8, 4, 4, 4, 12)),
    }
    for alphabet, letters in _ALPHABETS.items():
        functions[f"utils.{alphabet}"] = lambda size, letters=letters: f"{letters}{{{size}}}"
    reader = Reader(tokens(source), functions)
    reader.known["tps"] = reader.known["fps"] = []
    reader.learn()
    kind: Kind = "published" if has_own_form(rule["regex"]) else "named"
    if name.startswith(("generic", "hashicorp-tf-password", "nuget-config", "curl-auth", "kubernetes-secret")):
        kind = "generic"
    for place in reader.places("tps"):
        for line in dict.fromkeys(reader.value_at(place) or []):
            taken = line and (made.get(line) or _taken(pattern, line, rule.get("secretGroup", 0)))
            if taken:  # otherwise the line is put together in a way that is not read here
                yield judged(kind, name, line, (taken,))
    for place in reader.places("fps"):
        for line in dict.fromkeys(reader.value_at(place) or []):
            if line and line not in made:
                # What only a list of single values tells apart are keys that their owners publish.
                taken = _taken(pattern, line)
                listed = kind == "published" and entropy(taken) > max(rule.get("entropy", 0), _RANDOM)
                yield Case("listed by value" if listed else kind, name, line)


def _is_another(case: Case, rules: list[tuple[str, Any, float]]) -> bool:
    """Whether what one rule must not find is for another to be found."""
    return any(
        name != case.family and (taken := _taken(pattern, case.text)) and entropy(taken) >= least
        for name, pattern, least in rules
    )


def _taken(pattern: Any, line: str, group: int = 0) -> str:
    """What its expression takes from a line."""
    match = pattern.search(line)
    if match is None:
        return ""
    if group:
        return match.group(group) or ""
    return next((group for group in match.groups() if group), match.group())
