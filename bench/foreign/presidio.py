"""Presidio: the tests of its recognisers, and a set of made sentences with what is in them."""

from __future__ import annotations

import ast
import ipaddress
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.foreign.case import Case, is_marked

TESTS = "presidio-analyzer/tests/test_credit_card_recognizer.py"
DATA = "data/synth_dataset_v2.json"
_RECOGNISERS = {
    "credit_card": "cards", "iban": "iban", "phone": "phones", "email": "email", "ip": "ip addresses",
    "kr_rrn": "kr registration numbers", "kr_frn": "kr registration numbers", "kr_brn": "kr business numbers",
}  # fmt: skip
_MARKED = ("credit_card", "phone")  # in the others a row of zeros is no sign
_ENTITIES = {
    "CREDIT_CARD": "cards", "IBAN_CODE": "iban", "PHONE_NUMBER": "phones", "EMAIL_ADDRESS": "email",
    "IP_ADDRESS": "ip addresses", "US_SSN": "not ours", "US_DRIVER_LICENSE": "not ours",
}  # fmt: skip


def recognisers(folder: Path) -> Iterator[Case]:
    for name in _RECOGNISERS:
        path = folder / "presidio-analyzer" / "tests" / f"test_{name}_recognizer.py"
        if not path.exists():
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            kind = _RECOGNISERS[name]
            values = _values(node) if isinstance(node, ast.Tuple) and len(node.elts) >= 2 else []
            if not values or not isinstance(values[0], str) or not isinstance(values[1], int | list):
                continue
            text, count = values[0], values[1] if isinstance(values[1], int) else len(values[1])
            spans = [span for value in values[2:] for span in _spans(value)] if len(values) > 2 else []
            places = [text[start:end] for start, end in spans if 0 <= start < end <= len(text)]
            if count and len(places) != count:
                places = [text]
            if kind == "ip addresses" and not any(map(_is_public, places)):
                kind = "private addresses"
            case = Case(kind, name, text, tuple(places) if count else (), places == [text], split=text)
            yield (
                case._replace(kind="marked as example")
                if name in _MARKED and any(map(is_marked, case.hidden))
                else case
            )


def research(folder: Path) -> Iterator[Case]:
    for sentence in json.loads((folder / DATA).read_text(encoding="utf-8")):
        text = sentence["full_text"]
        spans = [span for span in sentence["spans"] if span["entity_type"] in _ENTITIES]
        for span in spans:
            yield Case(_ENTITIES[span["entity_type"]], span["entity_type"], text, (span["entity_value"],), split=text)
        if not spans:
            yield Case("sentences without any", "", text, split=text)


def _is_public(text: str) -> bool:
    try:
        return ipaddress.ip_address(text.partition("/")[0]).is_global
    except ValueError:
        return False


def _values(node: ast.Tuple) -> list[Any]:
    try:
        return [ast.literal_eval(one) for one in node.elts]
    except ValueError:
        return []


def _spans(value: Any) -> Iterator[tuple[int, int]]:
    """Pairs of places in tuples of any depth."""
    if isinstance(value, tuple | list):
        if len(value) == 2 and all(isinstance(one, int) for one in value):
            yield value[0], value[1]
        else:
            for one in value:
                yield from _spans(one)
