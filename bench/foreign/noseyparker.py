"""Nosey Parker: each of its rules has `examples`, which it must find, and `negative_examples`, which it must not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from bench.foreign.case import Case, Kind, is_public, judged
from bench.foreign.patterns import has_own_form

RULES = "crates/noseyparker/data/default/builtin/rules"
_LOGIN = re.compile(r"[a-z+]+://[^/\s:@]*:([^@\s]+)@")
_KINDS = {"identifier": "public by design", "hashed": "hashes", "generic": "generic"}  # by what it says of a rule


def cases(folder: Path) -> Iterator[Case]:
    rules: list[dict[str, Any]] = [
        rule
        for path in sorted((folder / RULES).glob("*.yml"))
        for rule in yaml.safe_load(path.read_text(encoding="utf-8"))["rules"]
    ]
    yield from cases_of(rules)


def cases_of(rules: list[dict[str, Any]]) -> Iterator[Case]:
    patterns = {rule["id"]: _pattern(rule["pattern"]) for rule in rules}
    for rule in rules:
        pattern = patterns[rule["id"]]
        kind = _kind(rule, pattern)
        for text in rule["examples"]:
            yield judged(kind, rule["name"], text, (_taken(pattern, text)[1],))
        others = [other for name, other in patterns.items() if name != rule["id"]]
        for text in rule.get("negative_examples") or ():
            if not any(_taken(other, text)[1] for other in others):  # otherwise it is for another rule to be found
                yield Case(kind, rule["name"], text)


def _kind(rule: dict[str, Any], pattern: re.Pattern[str] | None) -> Kind:
    said = [kind for category, kind in _KINDS.items() if category in rule.get("categories", ())]
    group = max(_taken(pattern, text)[0] for text in rule["examples"])
    return said[0] if said else "published" if has_own_form(rule["pattern"], group) else "named"


def _pattern(text: str) -> re.Pattern[str] | None:
    """Its expressions are Rust's, of which Python takes nearly all once the flags stand in front."""
    flags = {flag for found in re.findall(r"\(\?([imsx]+)\)", text) for flag in found} & set("imsx")
    plain = re.sub(r"\(\?[imsx]+\)", "", text).replace(r"\z", r"\Z")
    try:
        return re.compile(f"(?{''.join(sorted(flags))}){plain}" if flags else plain)
    except re.error:
        return None


def _taken(pattern: re.Pattern[str] | None, text: str) -> tuple[int, str]:
    """The longest group of what it finds that is no public name: the others are numbers. Of an address with a login the
    password. Nothing where it finds nothing."""
    match = pattern.search(text) if pattern else None
    if match is None:
        return 0, ""
    groups = [(number, group) for number, group in enumerate(match.groups(), 1) if group]
    secrets = [one for one in groups if not is_public(one[1])] or groups
    number, taken = max(secrets, key=lambda one: len(one[1]), default=(0, match.group()))
    login = _LOGIN.match(taken)
    return number, login.group(1) if login else taken
