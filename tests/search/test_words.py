"""Which words find which (B6): Korean and English, as people write them."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from octavo.core.errors import InvalidParams
from octavo.core.query import TextQuery
from octavo.search import FullText


@pytest.mark.seed("B6")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        # two syllables, inside longer words, with and without particles
        ("올해 예산을 정한다", "예산"),
        ("추경예산안 검토", "예산"),
        ("캠페인을 시작한다", "캠페인"),
        ("캠페인 시작", "캠페인을"),
        ("캠페인에서는 쓰지 않는다", "캠페인은"),
        ("담당자들에게 알린다", "담당자가"),
        ("경비를 정산합니다", "정산하는 방법"),
        ("새 옷을 산다", "옷"),
        ("새 옷", "옷을"),
        # spaces, which nobody agrees on
        ("경비 정산 규정", "경비정산"),
        ("경비정산규정", "경비 정산"),
        ("신규 입사자 온보딩 절차", "신규입사자온보딩절차"),
        # mixed script
        ("AI캠페인을 검수한다", "AI 캠페인"),
        ("AI 캠페인을 검수한다", "AI캠페인"),
        ("invoice가 늦었다", "invoice"),
        ("the invoice is late", "invoice가"),
        ("24SS 시즌", "24ss"),
        # English
        ("Policies for travelling employees", "policy travel"),
        ("expenses are reimbursed", "reimburse"),
        ("the reimbursement form", "reimburse"),
        ("We planned the pricing", "planning price"),
        ("Café society", "cafe"),
        # code
        ("def check_budget(): ...", "checkBudget"),
        ("function checkBudget() {}", "check-budget"),
        ("class HTTPServer:", "http server"),
        ("the customer-segment table", "customersegment"),
        # numbers, dates, names
        ("총 1,200,000원", "1200000"),
        ("2025년 3월 14일에 열린다", "2025-03-14"),
        ("held on 2025.3.14", "2025년 3월"),
        ("write to minji.kim@haru.example", "minji.kim@haru.example"),
        ("write to minji.kim@haru.example", "minji"),
        # other scripts without spaces
        ("東京タワーへ行く", "タワー"),
    ],
)
def test_a_text_is_found_by(text: str, query: str, put: Any, find: Any) -> None:
    put("doc://a/wanted", text)
    put("doc://a/other", "전혀 다른 글 something else entirely")
    assert find(query)[:1] == ["doc://a/wanted"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("경비 정산", "비정"),  # over the border of two words
        ("캠페인 인력", "페인력"),
        ("the three of them", "hr"),
        ("전문가", "문과"),
        ("partial", "artist"),
    ],
)
def test_a_text_is_not_found_by_what_it_does_not_say(text: str, query: str, put: Any, find: Any) -> None:
    put("doc://a/b", text)
    assert find(query) == []


def test_pairs_of_syllables_are_confirmed_in_the_text(put: Any, find: Any) -> None:
    """All pairs of 가나다 are there, and the word is not."""
    put("doc://a/b", "가나 방 나다 방")
    put("doc://a/c", "큰가나다방")
    assert find("가나다") == ["doc://a/c"]


def test_the_forms_of_unicode_do_not_matter(put: Any, find: Any) -> None:
    put("doc://a/b", unicodedata.normalize("NFD", "예산 규정"))
    assert find("예산") == ["doc://a/b"]
    assert find(unicodedata.normalize("NFD", "규정")) == ["doc://a/b"]


@pytest.mark.parametrize(
    ("text", "query", "meant"),
    [
        ("캠페인 계획", "캠패인", "캠페인"),
        ("세금계산서 발행", "세금게산서", "세금계산서"),
        ("reimbursement form", "reimbursment", "reimbursement"),
        ("incident response", "incidnet", "incident"),
        ("when to take a vacation", "taek", "take"),
        ("campaign brief", "campaignbrief", "campaign-brief"),
    ],
)
def test_a_misspelt_word_is_corrected_and_said(text: str, query: str, meant: str, put: Any, findings: Any) -> None:
    put("doc://a/b", text)
    found = findings(query)
    assert [str(one.ref) for one in found.items] == ["doc://a/b"]
    assert found.corrected == {query.lower(): meant}


def test_a_word_that_is_there_is_not_corrected(put: Any, findings: Any) -> None:
    put("doc://a/b", "게산 계산")
    assert findings("게산").corrected == {}


def test_a_phrase_in_quotes_must_stand_there_as_it_is(put: Any, find: Any) -> None:
    put("doc://a/exact", "Be reachable during  core hours, please")
    put("doc://a/apart", "core values and opening hours during summer")
    assert find('"during core hours"') == ["doc://a/exact"]
    assert find('"core hours during"') == []
    put("doc://a/ko", "코어 시간에는 메신저에 접속한다")
    assert find("“시간에는 메신저”") == ["doc://a/ko"]


def test_synonyms_find_each_other_after_the_word_itself(index: Any, put: Any) -> None:
    put("doc://a/en", "travel cost")
    put("doc://a/ko", "출장비")
    search = FullText(index, synonyms=[("출장비", "travel")])
    found = search.find_now(TextQuery("출장비"), lambda _: True, None, None, 10)
    assert [str(one.ref) for one in found.items] == ["doc://a/ko", "doc://a/en"]


@pytest.mark.parametrize("text", ["", "   ", "!?…", '""', "\x00\x01", "-", "()*"])
def test_a_query_without_a_word_is_refused(text: str, find: Any) -> None:
    with pytest.raises(InvalidParams, match="no word"):
        find(text)


HOSTILE = [
    'a" OR tokens MATCH "b', "NEAR(예산 규정, 5)", "예산*", "^예산", "tokens:예산", "예산 AND", "OR OR OR", "NOT 예산",
    "{tokens}: 예산", "예산'; DROP TABLE texts; --", '"예산', "예산\x00규정", "예산\u202e규정", "\ud800예산",
    "+예산 -규정 =x @y", "a" * 30_000 + " 예산", "[" * 5000 + "예산", "%s %d {} \\", "예산" * 5000, "“" * 9000 + "예산",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_operators_and_odd_characters_are_only_text(text: str, put: Any, find: Any) -> None:
    put("doc://a/b", "예산 규정")
    assert find(text) in ([], ["doc://a/b"])


def test_ten_thousand_words_are_bounded_and_the_rest_is_said(put: Any, findings: Any) -> None:
    put("doc://a/b", "word7")
    found = findings(" ".join(f"word{number}" for number in range(10_000)))
    assert [str(one.ref) for one in found.items] == ["doc://a/b"]
    assert found.ignored > 1000
