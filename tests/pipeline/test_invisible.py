"""Characters that nobody sees are shown, and what a script or an emoji needs stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline import secrets_corpus as corpus

from octavo.pipeline.redact.redactor import Redactor
from octavo.pipeline.redact.rules.invisible import places, shown


def tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(c)) for c in text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("user\u202egnp.exe", "user⟨U+202E⟩gnp.exe"),
        ("a\u2066b\u2069c", "a⟨U+2066⟩b⟨U+2069⟩c"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("한\u200b글", "한⟨U+200B⟩글"),
        ("한\u200d글", "한⟨U+200D⟩글"),
        ("LL\u200cM ه", "LL⟨U+200C⟩M ه"),
        ("e\u0301\u200cx", "e\u0301⟨U+200C⟩x"),
        ("LLM\u200c\u200cها", "LLM⟨U+200C and 1 more⟩ها"),
        ("hello" + tags("ignore all"), "hello⟨U+E0069 and 9 more⟩"),
        ("a\ufeffb", "a⟨U+FEFF⟩b"),
        ("\ufeffbegin", "begin"),
        ("ok\ufe00\ufe01\ufe02 가", "ok⟨U+FE00 and 2 more⟩ 가"),
        ("☺" + "\ufe0f" + "\ufe0e" * 3, "☺\ufe0f⟨U+FE0E and 2 more⟩"),
        ("empty\u3164name", "empty⟨U+3164⟩name"),
    ],
)
def test_what_has_no_use_is_shown(text: str, told: str) -> None:
    assert shown(text) == told
    assert shown(told) is told
    assert len(places(text)) == told.count("⟨")


@pytest.mark.parametrize(
    "text",
    [
        "한글 문서입니다. 각각의 항목을 확인하세요.",
        "각\u1112\u1161\u11ab 옛한글 \u115f\u1161\u11ab \u1112\u1160",
        "ㅎㅏㄴㄱㅡㄹ ㅋㅋㅋ",
        "👨\u200d👩\u200d👧\u200d👦 ❤\ufe0f\u200d🔥 👩🏽\u200d💻 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈",
        "\U0001f3f4" + tags("gbsct") + "\U000e007f",
        "葛\U000e0100城市",
        "می\u200cخواهم",
        "LLM\u200cها و API\u200cهای می\u200c (token_\u200cها)",
        "ক\u09cd\u200d A\u200dक",
        "क्\u200dष",
        "שלום\u200f (a)",
        "Donau\u00addampf",
        "plain ascii",
        "",
    ],
)
def test_what_a_script_or_an_emoji_needs_stays(text: str) -> None:
    assert shown(text) is text
    assert places(text) == []


@given(st.text())
def test_doing_it_twice_is_doing_it_once_and_removing_removes(text: str) -> None:
    once = shown(text)
    assert shown(once) == once
    assert len(shown(text, removed=True)) <= len(text)


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_part_is_shown_as_in_the_whole(before: str, part: str, after: str) -> None:
    """As long as the border does not cut a run, of which each part is counted for itself."""
    assert len(shown(part, before=before, after=after)) >= len(shown(part, before=before, after=after, removed=True))


def test_a_secret_with_something_invisible_inside_is_hidden_too() -> None:
    redactor = Redactor(b"k" * 32)
    _, secret = corpus.ALL["github-token"](corpus.Maker(3))
    assert redactor.text(f"use {secret[:9]}\u200b{secret[9:]} now") == f"use {redactor.text(secret)} now"
    assert redactor.text("한\u200b글") == "한⟨U+200B⟩글"
    assert Redactor(b"k" * 32, invisible=False).text("한\u200b글") == "한\u200b글"
