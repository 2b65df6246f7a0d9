"""The index finds what a look at every pattern would find.

Demands: O10.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.glob import Glob
from octavo.core.glob_index import GlobIndex
from octavo.core.ref import Ref

pytestmark = pytest.mark.seed("O10")

NAMES = st.text("ab한", min_size=1, max_size=3)
PARTS = st.one_of(NAMES, st.sampled_from(["*", "**", "a*", "*a", "*a*", "a*b", "ab*ba", "%2A", "%61"]))
PLACES = st.sampled_from(["sop://", "file://", "file:///", "*://"])


@st.composite
def patterns(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 15)) == 0:
        return draw(st.sampled_from(["**", "*", "file://", "file:///", "file://*", "sop://", "sop://a?b=c"]))
    end = draw(st.sampled_from(["", "", "/*", "/", "/**"]))
    return draw(PLACES) + "/".join(draw(st.lists(PARTS, min_size=1, max_size=3))) + end


@st.composite
def addresses(draw: st.DrawFn) -> Ref:
    place = draw(st.sampled_from(["sop://", "file://", "file:///", "doc://"]))
    query = draw(st.sampled_from(["", "", "?k=v"]))
    return Ref.parse(place + "/".join(draw(st.lists(st.one_of(NAMES, st.just("%2A")), max_size=3))) + query)


@given(st.lists(patterns(), max_size=12), st.sets(st.integers(0, 11)), st.lists(addresses(), min_size=1, max_size=4))
def test_what_matches_is_found_and_nothing_else(texts: list[str], gone: set[int], refs: list[Ref]) -> None:
    index: GlobIndex[int] = GlobIndex()
    globs = {number: Glob(text) for number, text in enumerate(texts)}
    for number, glob in globs.items():
        index.add(glob, number)
    for number in gone & globs.keys():
        index.discard(globs[number], number)
        index.discard(globs.pop(number), number)
    for ref in refs:
        matching = {number for number, glob in globs.items() if glob.matches(ref)}
        assert set(index.matching([ref])) == matching
        assert set(index.exactly(ref)) == {number for number in matching if globs[number].exact}
    assert set(index.matching(refs)) == {n for n, glob in globs.items() if any(map(glob.matches, refs))}


@given(st.lists(patterns(), max_size=12))
def test_what_is_taken_out_leaves_nothing_behind(texts: list[str]) -> None:
    index: GlobIndex[int] = GlobIndex()
    for number, text in enumerate(texts):
        index.add(Glob(text), number)
    for number, text in enumerate(texts):
        index.discard(Glob(text), number)
    assert not index
    assert not any((index._exact, index._places, index._ways))


def test_a_name_with_a_star_is_no_pattern() -> None:
    index: GlobIndex[str] = GlobIndex()
    index.add(Glob.at(Ref.parse("sop://a%2Ab")), "name")
    index.add(Glob("sop://a*b"), "pattern")
    assert {*index.matching([Ref.parse("sop://acb")])} == {"pattern"}
    assert {*index.matching([Ref.parse("sop://a%2Ab")])} == {"name", "pattern"}


@pytest.mark.parametrize(
    "pattern", ["sop://team/x{}", "sop://team/x{}-*", "sop://team/*-x{}", "sop://team/**/x{}.md", "sop://x{}/*"]
)
def test_of_ten_thousand_patterns_on_one_folder_a_few_are_looked_at(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index: GlobIndex[int] = GlobIndex()
    for number in range(10_000):
        index.add(Glob(pattern.format(number)), number)
    looked_at, matches = [], Glob.matches

    def counted(glob: Glob, ref: Ref) -> bool:
        looked_at.append(glob)
        return matches(glob, ref)

    monkeypatch.setattr(Glob, "matches", counted)
    address = pattern.replace("/**/", "/deep/er/").replace("/*", "/y", 1).replace("*", "y").format(1234)
    assert [*index.matching([Ref.parse(address)])] == [1234]
    assert len(looked_at) <= 5
