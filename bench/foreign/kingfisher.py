"""Kingfisher: rules of the same shape as Nosey Parker's, from which it began; most are its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from bench.foreign import noseyparker
from bench.foreign.case import Case

RULES = "data/rules"
_GENERIC = ("Generic", "Password", "Username")  # its rules seldom say so themselves


def cases(folder: Path) -> Iterator[Case]:
    rules: list[dict[str, Any]] = [
        rule
        for path in sorted((folder / RULES).glob("*.yml"))
        for rule in yaml.safe_load(path.read_text(encoding="utf-8"))["rules"]
    ]
    for rule in rules:
        if "Password Hash" in rule["name"]:
            rule["categories"] = ["hashed"]
        elif any(word in rule["name"] for word in _GENERIC):
            rule["categories"] = ["generic"]
        elif rule.get("visible") is False:  # what another rule needs to ask the service: numbers and names
            rule["categories"] = ["identifier"]
    yield from noseyparker.cases_of(rules)
