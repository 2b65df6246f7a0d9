"""CredSweeper: samples, and what it finds in them; what its filters take away again are the near misses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from bench.foreign.case import Case, Kind, judged
from bench.foreign.patterns import has_own_form

EXPECTED = "tests/data/output.json"
_UNFILTERED = "tests/data/no_filters_no_ml.json"
_OTHERS = ("tests/data/doc.json", "tests/data/depth_3_pedantic.json")
_RULES = "credsweeper/rules/config.yaml"
_NOT_OURS = ("UUID", "Nonce", "Salt")  # no credentials
_AROUND = 2  # lines on either side


def cases(folder: Path) -> Iterator[Case]:
    kinds = _kinds(folder)
    found = [*_finds(folder, EXPECTED)]
    others = [one for file in _OTHERS for one in _finds(folder, file)]  # what it finds in other ways
    places = {(path, line) for _, path, values in [*found, *others] for line, _ in values}
    for rule, path, values in found:
        text = _lines(folder / path, [line for line, _ in values], _AROUND)
        hidden = tuple(value for _, value in values)
        if text and all(value in text for value in hidden):
            yield judged(kinds.get(rule, "generic"), rule, text, hidden)._replace(split=text)
    for rule, path, values in _finds(folder, _UNFILTERED):
        text = _lines(folder / path, [line for line, _ in values], 0)
        if text and all(value and (path, line) not in places for line, value in values):
            yield Case(kinds.get(rule, "generic"), rule, text, split=text)


def _finds(folder: Path, file: str) -> Iterator[tuple[str, str, list[tuple[int, str]]]]:
    for one in json.loads((folder / file).read_text(encoding="utf-8")):
        lines = one["line_data_list"]
        yield one["rule"], lines[0]["path"], [(line["line_num"], line["value"]) for line in lines]


def _lines(path: Path, numbers: list[int], around: int) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""  # an archive, a document, an image
    return "\n".join(lines[max(0, min(numbers) - 1 - around) : max(numbers) + around])


def _kinds(folder: Path) -> dict[str, Kind]:
    rules: list[dict[str, Any]] = yaml.safe_load((folder / _RULES).read_text(encoding="utf-8"))
    kinds: dict[str, Kind] = {}
    for rule in rules:
        own = rule["type"] == "pem_key" or all(has_own_form(value, "value") for value in rule["values"])
        kinds[rule["name"]] = (
            "not ours" if rule["name"] in _NOT_OURS else
            "generic" if rule["type"] == "keyword" or rule["name"].startswith(("CMD", "DOC", "SQL", "CURL")) else
            "published" if own else "named"
        )  # fmt: skip
    return kinds
