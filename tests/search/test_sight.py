"""What is hidden does not exist (house.md section 6): not in hits, order, scores, corrections, pages or snippets."""

from __future__ import annotations

import random
from typing import Any

import pytest

from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.search_results import Findings
from octavo.search import Document, FullText, Index, matching

WORDS = ["예산", "캠페인", "승인", "계약", "고객", "환불", "규정", "정산", "경비", "온보딩", "급여"]
WORDS += ["budget", "policy", "review", "launch", "refund", "salary", "invoice"]
SECRETS = ["합병", "구조조정", "layoff", "merger", "특별상여", "소송"]
ENDINGS = ["", "을", "은", "에서", "의"]
SLIPS = [
    "캠패인",
    "budgat",
    "refnd",
    "합벙",
    "lyoff",
    "megrer",
    "예신",
    "구조 조정",
    "특별 상여",
    "merg",
    "소송중",
    "환불예산",
]


def document(chance: random.Random, number: int) -> Document:
    folder = chance.choice(["brand", "finance", "hr", "ops"])
    vocabulary = [*WORDS, *SECRETS] if folder == "hr" else WORDS
    words = [chance.choice(vocabulary) + chance.choice(ENDINGS) for _ in range(chance.randint(3, 40))]
    return Document(
        ref=Ref(chance.choice(["sop", "doc"]), (folder, f"page-{number}")),
        version="1",
        title=" ".join(chance.choices(vocabulary, k=2)),
        text=" ".join(words),
        metadata={"tags": chance.choices(vocabulary, k=1), "status": chance.choice(["active", "draft"])},
    )


def pages(search: FullText, query: TextQuery, allowed: Any, viewer: object, limit: int) -> list[Findings]:
    found = [search.find_now(query, allowed, viewer, None, limit)]
    while found[-1].cursor is not None and len(found) < 4:
        found.append(search.find_now(query, allowed, viewer, found[-1].cursor, limit))
    return found


def compare(questions: int, seed: int) -> None:
    """An answer is, to the last digit, the one of an index in which the hidden documents never were."""
    chance = random.Random(seed)
    documents = [document(chance, number) for number in range(80)]
    whole = Index(None)
    whole.put(documents)
    everything = FullText(whole)
    for principal in range(questions // 5):
        hidden = set(chance.sample([one.ref for one in documents], k=chance.randint(10, 70)))
        hidden |= {one.ref for one in documents if "hr" in one.ref.segments and chance.random() < 0.9}
        part = Index(None)
        part.put([one for one in documents if one.ref not in hidden])
        visible = FullText(part)
        for _ in range(5):
            text = " ".join(chance.choices([*WORDS, *SECRETS, *SLIPS], k=chance.randint(1, 3)))
            text = f'"{text}"' if chance.random() < 0.1 else text
            query = TextQuery(text, within=chance.choice([(), (Ref("sop"),)]))
            limit = chance.choice([1, 3, 10])
            given = pages(everything, query, lambda ref: ref not in hidden, principal, limit)
            assert given == pages(visible, query, lambda _: True, principal, limit), text
            assert not hidden & {one.ref for page in given for one in page.items}
        part.close()
    whole.close()


@pytest.mark.seed("B6")
@pytest.mark.parametrize("most", [matching.MOST, 4])
def test_an_answer_is_the_same_as_if_the_hidden_documents_did_not_exist(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there are more hits than one way of finding them gives."""
    monkeypatch.setattr(matching, "MOST", most)
    compare(questions=60, seed=3)


def test_a_correction_never_names_a_word_of_a_hidden_document(put: Any, findings: Any) -> None:
    put("sop://hr/secret", "구조조정 layoffs")
    put("sop://brand/a", "캠페인")
    for text in ("구조조졍", "lyaoffs"):
        assert findings(text).corrected
        found = findings(text, hidden=("sop://hr",))
        assert (found.items, found.corrected) == ((), {})


def test_many_hidden_documents_do_not_crowd_out_a_visible_one(index: Index, findings: Any) -> None:
    index.put([Document(ref=Ref("doc", ("open", "a")), version="1", title="x", text="예산")])
    index.put([Document(ref=Ref("doc", ("shut", str(n))), version="1", title="예산", text="예산") for n in range(2500)])
    found = findings("예산", hidden=("doc://shut",), limit=1)
    assert [str(one.ref) for one in found.items] == ["doc://open/a"] and found.cursor is None


def test_what_a_viewer_may_see_is_asked_once_and_again_when_a_document_changes(index: Index, put: Any) -> None:
    asked: list[str] = []

    def allowed(ref: Ref) -> bool:
        asked.append(ref.name)
        return ref.name != "c"

    def found() -> list[str]:
        items = search.find_now(TextQuery("예산"), allowed, "somebody", None, 10).items
        return sorted(one.ref.name for one in items)

    search = FullText(index)
    for name in "abc":
        put(f"doc://{name}", "예산")
    assert found() == ["a", "b"]
    asked.clear()
    put("doc://b", "예산 둘")
    put("doc://d", "예산")
    index.remove([Ref.parse("doc://a")])
    assert found() == ["b", "d"]
    # b and d because they are new, and once more because they are shown.
    assert sorted(asked) == ["b", "b", "d", "d"]


def test_rules_that_changed_behind_the_back_of_a_viewer_hold_at_once(index: Index, put: Any) -> None:
    shut: set[str] = set()
    search = FullText(index)
    put("doc://a", "예산")
    put("doc://b", "예산 예산")

    def found() -> list[str]:
        query = TextQuery("예산")
        return [one.ref.name for one in search.find_now(query, lambda r: r.name not in shut, "x", None, 1).items]

    assert found() == ["b"]
    shut.add("b")
    assert found() == ["a"]


def test_viewers_and_filters_are_kept_apart(index: Index, put: Any) -> None:
    search = FullText(index)
    put("doc://a", "예산", status="active")
    put("doc://b", "예산", status="draft")

    def found(viewer: str, *status: str) -> list[str]:
        query = TextQuery("예산", where=(("status", status),) if status else ())
        items = search.find_now(query, lambda ref: viewer == "chief" or ref.name == "a", viewer, None, 10).items
        return sorted(one.ref.name for one in items)

    assert found("chief") == ["a", "b"]
    assert found("clerk") == ["a"]
    assert found("chief", "draft") == ["b"]
    assert found("clerk", "draft") == []
    put("doc://b", "예산", status="active", version="2")
    assert found("chief", "draft") == []
    assert found("chief", "active") == ["a", "b"]


if __name__ == "__main__":
    compare(questions=5000, seed=7)
    print("1,000 principals, 5,000 questions: nothing of a hidden document shows")
