"""JSON and YAML that could be read can be read with marks in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline import secrets_corpus as corpus

from octavo.core.ref import Ref
from octavo.core.values import Content, Entry
from octavo.pipeline.redact.redactor import Redactor
from octavo.pipeline.redact.rules.personal import GROUPS

VEIL = Redactor(b"k" * 32, personal=GROUPS)
REF = Ref.parse("file://settings")


def served(body: str, mime_type: str) -> str:
    content = VEIL.content(Content(entry=Entry(ref=REF, name="settings", mime_type=mime_type), body=body))
    assert isinstance(content.body, str)
    return content.body


def made(rule: str, seed: int) -> str:
    around, secret = corpus.ALL[rule](corpus.Maker(seed))
    return around.format(secret)


SCALARS = st.one_of(
    st.integers(),
    st.booleans(),
    st.text(max_size=30),
    st.builds(
        lambda rule, seed, left, right: f"{left} {made(rule, seed)} {right}",
        st.sampled_from(sorted(corpus.ALL)),
        st.integers(0, 99),
        st.text(max_size=10),
        st.text(max_size=10),
    ),
    st.builds(lambda seed: int(corpus.card(corpus.Maker(seed))), st.integers(0, 99)),
)
NAMES = st.sampled_from(["password", "api_key", "note", "전화", "담당자", "url", "a b", "[x]"])
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


def same_form(before: Any, after: Any) -> bool:
    if isinstance(before, dict):
        return (
            isinstance(after, dict)
            and len(before) == len(after)
            and all(same_form(*pair) for pair in zip(before.values(), after.values(), strict=True))
        )
    if isinstance(before, list):
        return (
            isinstance(after, list)
            and len(before) == len(after)
            and all(same_form(*pair) for pair in zip(before, after, strict=True))
        )
    return before == after or isinstance(after, str)


@pytest.mark.seed("A6")
@settings(max_examples=150, deadline=None)
@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 2]))
def test_json_stays_json(document: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    assert same_form(document, json.loads(served(text, "application/json")))


@pytest.mark.seed("A6")
@settings(max_examples=150, deadline=None)
@given(DOCUMENTS, st.sampled_from([True, False, None]))
def test_yaml_stays_yaml(document: Any, flow: bool | None) -> None:
    text = yaml.safe_dump(document, default_flow_style=flow, allow_unicode=True)
    assert same_form(yaml.safe_load(text), yaml.safe_load(served(text, "application/yaml")))


def test_a_number_of_json_becomes_a_string_and_a_string_stays_one() -> None:
    number = corpus.card(corpus.Maker(1))
    told = json.loads(served(f'{{"card": {number}, "list": [{number}], "text": "{number}"}}', "application/json"))
    assert told["card"] == told["list"][0] == told["text"] == VEIL.text(number)


@pytest.mark.parametrize("rest", ["", " # the old one", " (office)", ", or ask"])
def test_a_plain_scalar_that_begins_with_a_mark_is_quoted(rest: str) -> None:
    _, number = corpus.ALL["kr-phone"](corpus.Maker(3))
    told = yaml.safe_load(served(f"phone: {number}{rest}\nname: kim\n", "application/yaml"))
    assert told == {"phone": VEIL.text(number) + ("" if "#" in rest else rest), "name": "kim"}


def test_front_matter_is_yaml_and_the_text_below_it_is_not() -> None:
    _, mail = corpus.ALL["email"](corpus.Maker(3))
    mark = VEIL.text(mail)
    told = served(f"---\nowner: {mail} (HR)\n---\n{mail}: write to me\n", "text/markdown")
    assert told == f'---\nowner: "{mark} (HR)"\n---\n{mark}: write to me\n'


def test_what_is_no_yaml_is_redacted_all_the_same() -> None:
    _, secret = corpus.ALL["github-token"](corpus.Maker(3))
    assert served(f"a: [b\n\t: {secret}", "application/yaml") == f"a: [b\n\t: {VEIL.text(secret)}"
