"""A loan word is found in either script (B6)."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.seed("B6")


@pytest.mark.parametrize(
    ("hangul", "latin"),
    [
        ("훅", "Hooks"),
        ("타입스크립트", "TypeScript"),
        ("컨피그맵", "ConfigMap"),
        ("크론잡", "CronJob"),
        ("디플로이먼트", "Deployment"),
        ("인그레스", "ingress"),
        ("리듀서", "reducer"),
        ("텍스트", "text"),
        ("데이터", "data"),
        ("스테이트풀셋", "StatefulSet"),
        ("마케팅", "marketing"),
        ("톨러레이션", "toleration"),
        ("쿠버네티스", "Kubernetes"),  # by the table: a stem of it is what is kept
        ("큐", "queue"),
    ],
)
def test_a_loan_word_in_one_script_finds_it_in_the_other(hangul: str, latin: str, put: Any, find: Any) -> None:
    put("doc://a/latin", f"how to use {latin} here")
    put("doc://a/hangul", f"{hangul} 이야기를 여기에 씁니다")
    put("doc://a/other", "전혀 다른 글 something else entirely")
    assert sorted(find(hangul)) == sorted(find(latin)) == ["doc://a/hangul", "doc://a/latin"]


@pytest.mark.parametrize(("word", "other"), [("훅", "hack"), ("옷", "other"), ("예산", "season"), ("수", "sue")])
def test_what_sounds_otherwise_is_not_the_same_word(word: str, other: str, put: Any, find: Any) -> None:
    put("doc://a/wanted", f"{word} 이야기")
    put("doc://a/decoy", f"one {other} more")
    assert find(word) == ["doc://a/wanted"]


@pytest.mark.parametrize("asked", ["훅의 규칙", "훅의 규칙은 무엇인가", "훅과 규칙", "훅에 규칙", "훅이 규칙"])
def test_a_loan_word_of_one_syllable_is_found_behind_which_a_particle_stands(asked: str, put: Any, find: Any) -> None:
    put("doc://a/rules", "Hook의 규칙", title="Hook의 규칙")
    put("doc://a/state", "컴포넌트의 기억 저장소에는 규칙이 있고 규칙을 지킵니다")
    put("doc://a/hangul", "훅 규칙 이야기와 훅 하나")
    put("doc://a/other", "전혀 다른 글")
    assert set(find(asked)[:2]) == {"doc://a/rules", "doc://a/hangul"}


def test_a_native_noun_that_ends_like_a_particle_stays_whole(put: Any, find: Any) -> None:
    put("doc://a/wanted", "용어의 정의")
    put("doc://a/decoy", "one zone more")
    assert find("정의") == ["doc://a/wanted"]


def test_a_word_that_only_a_hidden_document_has_changes_nothing(put: Any, findings: Any) -> None:
    put("doc://a/seen", "훅 이야기")
    before = findings("훅")
    put("doc://hr/hidden", "hook")
    assert findings("훅", hidden=("doc://hr",)) == before


def test_hostile_words_take_no_time(put: Any, find: Any) -> None:
    put("doc://a/x", " ".join(letter * 24 for letter in "gcxr") + " " + "o" * 21 + "gi " + "oa" * 10 + "gi")
    assert find("오" * 9 + "고") == []
    assert find("g" * 24) == ["doc://a/x"]


def test_words_that_were_redacted_otherwise_are_forgotten(put: Any, index: Any) -> None:
    put("doc://a/x", "hook")
    index.begin_for("other rules")
    with index.reading() as database:
        assert database.execute("SELECT count(*) FROM sounds").fetchone() == (0,)
