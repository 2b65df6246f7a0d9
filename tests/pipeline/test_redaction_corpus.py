"""How much redaction finds, on a corpus of its own: `python bench/redaction.py` prints the same with the speed."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.pipeline import secrets_corpus as corpus

from octavo.config.model import Redact as RedactOptions
from octavo.pipeline.rules.book import SECRETS
from octavo.pipeline.rules.personal import GROUPS
from octavo.pipeline.veil import Veil

VEIL = Veil(b"k" * 32, personal=GROUPS)


@pytest.mark.seed("A6")
def test_the_corpus_is_large_enough_and_the_same_each_time() -> None:
    positives, negatives = [*corpus.positives()], [*corpus.negatives()]
    assert len({one.text for one in positives}) >= 500
    assert len({one.text for one in negatives}) >= 500
    assert any("가" <= c <= "힣" for one in positives for c in one.text)
    assert positives == [*corpus.positives()] and negatives == [*corpus.negatives()]
    assert len(SECRETS) >= 60


@pytest.mark.seed("A6")
def test_recall_and_precision_are_what_is_promised() -> None:
    found, missed, wrong = Counter[str](), Counter[str](), Counter[str]()
    for one in corpus.positives():
        (missed if one.secret in VEIL.text(one.text) else found)[one.group] += 1
    for one in corpus.negatives():
        wrong[one.group] += VEIL.text(one.text) is not one.text
    for group in found:
        assert found[group] / (found[group] + missed[group]) >= 0.95, group
        assert found[group] / (found[group] + wrong[group]) >= 0.9, group


@pytest.mark.parametrize("size", [24, 1])
def test_a_secret_that_a_border_cuts_does_not_pass_in_halves(size: int) -> None:
    for one in list(corpus.positives(1))[:: 1 if size > 1 else 8]:
        text = f"before\n{one.text}\nafter"
        step = max(1, len(text) // size) if size > 1 else 1
        parts = [
            VEIL.engine.redact_part(text[:at], text[at : at + step], text[at + step :])
            for at in range(0, len(text), step)
        ]
        assert one.secret not in "".join(parts), one.rule


def test_the_groups_of_the_configuration_are_those_of_the_rules() -> None:
    options = RedactOptions.model_json_schema()["properties"]["personal"]["items"]["enum"]
    assert options == [*GROUPS]
