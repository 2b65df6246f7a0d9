"""What comes first, what is shown of it, and how a list goes on (B6)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.clock import FrozenClock
from octavo.core.errors import InvalidParams
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.search import FullText, Index, matching, snippets
from octavo.search.query_parse import question
from octavo.search.snippets import WantedWords, snippet


@pytest.mark.seed("B6")
def test_a_title_counts_more_than_tags_then_headings_then_text(put: Any, find: Any) -> None:
    filler = " 다른 내용을 적은 글" * 5
    put("doc://x/body", "예산" + filler)
    put("doc://x/heading", "# 예산\n\n" + filler)
    put("doc://x/tagged", filler, tags=["예산"])
    put("doc://x/title", filler, title="예산")
    assert find("예산") == ["doc://x/title", "doc://x/tagged", "doc://x/heading", "doc://x/body"]


def test_the_name_in_the_address_is_found(put: Any, find: Any) -> None:
    put("sop://brand/campaign-brief", "여기에는 다른 말만 있다", title="제목")
    assert find("campaign brief") == ["sop://brand/campaign-brief"]
    assert find("campaignBrief") == ["sop://brand/campaign-brief"]


def test_the_word_itself_comes_before_a_longer_word_with_it(put: Any, find: Any) -> None:
    put("doc://x/inside", "추경예산안")
    put("doc://x/word", "예산은 여기")
    assert find("예산") == ["doc://x/word", "doc://x/inside"]


def test_all_words_count_more_than_one_word_often(put: Any, find: Any) -> None:
    put("doc://x/often", "budget " * 30)
    put("doc://x/both", "the budget needs approval by finance")
    assert find("budget approval")[0] == "doc://x/both"


def test_a_rare_word_counts_more_than_a_common_one(put: Any, find: Any) -> None:
    for number in range(20):
        put(f"doc://x/common-{number}", "budget budget")
    put("doc://x/rare", "quetzal")
    assert find("budget quetzal")[0] == "doc://x/rare"


def test_a_title_that_is_the_question_comes_first(put: Any, find: Any) -> None:
    put("doc://x/longer", "캠페인 브리프 캠페인 브리프", title="캠페인 브리프 작성 요령과 예시")
    put("doc://x/same", "글", title="캠페인 브리프")
    assert find("캠페인 브리프")[0] == "doc://x/same"


def test_words_around_a_question_do_not_count(put: Any, find: Any) -> None:
    put("doc://x/noise", "어떻게 무엇 어디 how what the")
    put("doc://x/answer", "환불은 7일 안에 신청한다")
    assert find("환불은 어떻게 하나요") == ["doc://x/answer"]


def test_a_snippet_shows_the_words_and_says_where_they_are(put: Any, findings: Any) -> None:
    put("doc://x/long", "앞의 글이다. " * 100 + "여기에서 캠페인 예산을 정한다. " + "뒤의 글이다. " * 100)
    (one,) = findings("캠페인 예산").items
    assert [one.snippet[begin:end] for begin, end in one.marks] == ["캠페인", "예산"]
    assert 100 <= len(one.snippet) <= 220
    assert one.snippet.startswith("…") and one.snippet.endswith("…")
    whole = {"앞의", "글이다.", "여기에서", "캠페인", "예산을", "정한다.", "뒤의"}
    assert set(one.snippet.strip("…").split()) <= whole


def test_a_snippet_is_not_cut_inside_a_character(put: Any, findings: Any) -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    put("doc://x/emoji", family * 60 + " 예산 " + family * 60)
    (one,) = findings("예산").items
    parts = one.snippet.strip("…").split(" ")
    assert all(part.replace(family, "") in ("", "예산") for part in parts)


def test_a_title_is_enough_and_then_the_text_begins_after_its_front_matter(put: Any, findings: Any) -> None:
    put("doc://x/a", "---\nid: x\n---\n본문이 여기서 시작한다", title="예산")
    (one,) = findings("예산").items
    assert one.snippet == "…본문이 여기서 시작한다" and one.marks == ()


def test_a_search_can_be_narrowed_by_scheme_place_and_metadata(put: Any, find: Any) -> None:
    put("sop://brand/a", "예산", status="active", tags=["x", "y"])
    put("sop://brand/deep/b", "예산", status="draft")
    put("sop://branding/c", "예산", status="active")
    put("doc://brand/d", "예산", status="active", internal=True)

    def found(*places: str, **where: tuple[str, ...]) -> set[str]:
        within = tuple(map(Ref.parse, places))
        return set(find("예산", within=within, where=tuple(where.items())))

    assert found("sop://") == {"sop://brand/a", "sop://brand/deep/b", "sop://branding/c"}
    assert found("sop://brand") == {"sop://brand/a", "sop://brand/deep/b"}
    assert found("sop://brand/a", "doc://") == {"sop://brand/a", "doc://brand/d"}
    assert found("sop://", status=("active",)) == {"sop://brand/a", "sop://branding/c"}
    assert found(tags=("y", "z")) == {"sop://brand/a"}
    assert found(internal=("true",)) == {"doc://brand/d"}
    assert found(status=("active",), tags=("nowhere",)) == set()


def test_pages_give_everything_once_and_in_the_order_of_one_long_page(put: Any, findings: Any) -> None:
    for number in range(57):
        put(f"doc://x/{number}", "예산 " * (1 + number % 7) + "글 " * (number % 11))
    whole = [one.ref for one in findings("예산", limit=100).items]
    assert len(whole) == 57
    paged: list[Ref] = []
    cursor = None
    while True:
        page = findings("예산", cursor=cursor, limit=10)
        paged += [one.ref for one in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert paged == whole


def test_a_page_goes_on_after_the_last_hit_though_others_were_removed(put: Any, findings: Any, index: Any) -> None:
    for number in range(30):
        put(f"doc://x/{number}", "예산 " * (number + 1))
    whole = [one.ref for one in findings("예산", limit=100).items]
    first = findings("예산", limit=10)
    index.remove(whole[:5])
    second = findings("예산", limit=10, cursor=first.cursor)
    assert {one.ref for one in second.items} == set(whole[10:20])


@pytest.mark.parametrize("cursor", ["", "x", "[]", '["a",1,"b"]', "null", "[" * 100_000])
def test_a_cursor_of_another_query_is_refused(cursor: str, put: Any, findings: Any) -> None:
    put("doc://x/a", "예산")
    with pytest.raises(InvalidParams, match="cursor"):
        findings("예산", cursor=cursor)


def test_more_than_is_looked_at_in_one_go_is_found_too(put: Any, find: Any, index: Any) -> None:
    """Candidates that the texts do not confirm do not take the places of those that they do."""
    for number in range(200):
        put(f"doc://x/false-{number}", "가나 방 나다 방")
    put("doc://x/true", "큰가나다방")
    assert find("가나다") == ["doc://x/true"]


def test_what_stands_late_in_a_long_text_is_confirmed_there(put: Any, find: Any) -> None:
    late = "채움글 " * 60_000
    put("doc://x/there", late + "큰가나다방 그리고 인용문 하나")
    put("doc://x/pairs", late + "가나 방 나다 방 하나 그리고 인용문")
    assert find("가나다") == ["doc://x/there"]
    assert find('"인용문 하나"') == ["doc://x/there"]


def test_two_common_words_find_the_document_that_has_both_though_it_is_old(
    put: Any, find: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "MOST", 5)
    put("doc://x/both", "예산 글과 승인")
    for number in range(20):
        put(f"doc://x/one-{number}", "예산")
        put(f"doc://x/other-{number}", "승인")
    assert find("예산 승인 없는말이다")[0] == "doc://x/both"


@pytest.mark.seed("B6")
@pytest.mark.parametrize(
    ("question", "wanted", "decoy"),
    [
        ("크론잡 만들기", "크론잡 개요", "웹 페이지 만들기"),
        ("예산이란 무엇인가", "예산", "다음은 무엇인가"),
        ("환불 방법", "환불 규정", "결제 방법"),
        ("how do I make a badge", "Badges", "How to make coffee"),
        ("what is the difference between leave and absence", "Leave and absence", "The difference between teams"),
    ],
)
def test_what_is_asked_about_counts_and_not_the_words_of_asking(
    question: str, wanted: str, decoy: str, put: Any, find: Any
) -> None:
    put("doc://x/wanted", f"{wanted} " + "글 text " * 30, title=wanted)
    put("doc://x/decoy", f"{decoy} " * 5, title=decoy)
    put("doc://x/mention", f"{wanted} 이야기 " + "글 text " * 30, title="Others")
    assert find(question)[0] == "doc://x/wanted"


def test_a_word_that_every_text_has_still_tells_in_a_title(put: Any, find: Any) -> None:
    for number in range(20):
        put(f"doc://x/{number}", "a call with customers, and how to behave in it" if number < 6 else "a call")
    put("doc://x/etiquette", "a call and what to mind", title="Call etiquette")
    assert find("how to behave on a call")[:6].count("doc://x/etiquette") == 1


def test_two_parts_of_a_long_name_are_found_as_one_word(put: Any, find: Any) -> None:
    put("doc://x/post_mortem_process", "what follows")
    put("doc://x/other", "process")
    assert find("postmortem") == ["doc://x/post_mortem_process"]


def test_when_the_time_for_a_question_is_up_it_is_answered_from_the_best_that_was_looked_at(
    index: Index, put: Any
) -> None:
    clock = FrozenClock()

    class Slow(FrozenClock):
        """Each look at it takes a second."""

        def monotonic(self) -> float:
            clock.advance(1.0)
            return clock.monotonic()

    for number in range(60):
        put(f"doc://{number}", "zebra " * (number + 1), title="Zebra" if number == 7 else "-")
    search, everything = FullText(index, clock=Slow()), TextQuery("zebra")
    hurried = asyncio.run(search.find(everything, allowed=lambda ref: True, limit=5, seconds=20.0))
    assert hurried.cut and str(hurried.items[0].ref) == "doc://7" and len(hurried.items) == 5
    late = asyncio.run(search.find(everything, allowed=lambda ref: True, limit=5, seconds=0.0))
    assert late.cut and str(late.items[0].ref) == "doc://7", "however late it is, the best are looked at"
    assert not asyncio.run(search.find(everything, allowed=lambda ref: True, limit=5, seconds=1e6)).cut


def test_a_snippet_shows_a_word_that_stands_deep_in_a_long_text(put: Any, findings: Any) -> None:
    put("doc://long", "nothing here " * 30_000 + "the zebracorn grazes" + " and nothing there" * 20_000)
    (found,) = findings("zebracorn").items
    assert "zebracorn grazes" in found.snippet


@pytest.mark.parametrize("border", [8_000, 16_000, 100_000, 108_000])
def test_a_snippet_shows_a_word_that_stands_on_a_border_of_what_is_looked_at_in_one_go(
    border: int, put: Any, findings: Any
) -> None:
    for before in (border - 9, border - 8, border - 4, border - 1, border, border + 1):
        put("doc://long", "x" * (before - 1) + " zebracorn 예산 grazes" + " and nothing there" * 1_000)
        (found,) = findings("zebracorn 예산").items
        assert [found.snippet[begin:end] for begin, end in found.marks] == ["zebracorn", "예산"]


def test_the_beginning_of_a_longer_number_is_not_shown_for_it_where_a_look_ends(put: Any, findings: Any) -> None:
    look = 8_000 + snippets.LENGTH
    years = "2024 ".ljust(look - 2, ".")
    put("doc://long", f"{years}2024 {'.' * 500} within 20 days")
    (found,) = findings("20").items
    assert [found.snippet[begin:end] for begin, end in found.marks] == ["20"]


@given(
    st.lists(
        st.sampled_from(
            ["예산", "Budget", "budgets", "캠페인예산", "on-call", "on call", "20 days", "2024", "İx", "nothing"]
        ),
        max_size=12,
    ),
    st.integers(0, 30),
    st.sampled_from(["예산", "budget", "on-call", '"on call" budget', "캠페인 예산", "20"]),
)
def test_a_snippet_found_in_steps_is_the_one_found_at_a_glance(words: list[str], gap: int, asked: str) -> None:
    text = (" " + "." * gap).join(words)
    wanted = WantedWords.of(question(asked).units)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snippets, "_STEP", 1_000_000)
        at_a_glance = snippet(text, wanted._replace(beginnings=[""]))
        patch.setattr(snippets, "_STEP", 7)
        assert snippet(text, wanted) == at_a_glance


@pytest.mark.seed("B6")
def test_pictures_beside_the_pages_change_no_order_among_them(put: Any, findings: Any) -> None:
    """A picture has a name and no text. Many of them make neither a page long nor a common word rare."""

    def pages() -> list[tuple[str, float]]:
        found = findings("incident severity levels", limit=100).items
        return [(str(one.ref), one.score) for one in found if one.ref.name.endswith(".md")]

    put("file://being_on_call.md", "Being on call. " * 20 + "An incident has a severity.", title="Being On-Call")
    put("file://severity_levels.md", "Which levels there are. " * 60 + "incident severity", title="Severity Levels")
    put("file://roles.md", "Roles in an incident: commander, scribe. " * 15, title="Different Roles")
    for number in range(10):
        put(f"file://other-{number}.md", "During an incident there is much to do. " * 10, title=f"Other {number}")
    before = pages()
    assert before[0][0] == "file://severity_levels.md"
    for number in range(60):
        put(f"file://img/incident-{number}.png", title=f"incident-{number}.png")
    assert pages() == before


def test_pictures_alone_are_found_by_their_names(put: Any, find: Any) -> None:
    put("file://img/harbour.png", title="harbour.png")
    put("file://img/mountain-lake.png", title="mountain-lake.png")
    assert find("lake") == ["file://img/mountain-lake.png"]
    assert find("the lake at the harbour") != []


def test_a_page_that_says_as_much_comes_before_a_picture_that_is_called_so(put: Any, find: Any) -> None:
    put("file://img/status_page.jpg", title="status_page.jpg")
    put("file://before.md", "What we tell others, on the status page of ours, is decided here. " * 3)
    put("file://other.md", "Words of something else. " * 3)
    assert find("what is on the status page") == ["file://before.md", "file://img/status_page.jpg"]
    assert find("status jpg")[0] == "file://img/status_page.jpg"
