"""Patterns: an oracle for the common subset, then what is ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcmatch import glob as oracle

from octavo.core import glob as module
from octavo.core.errors import InvalidParams
from octavo.core.glob import MAX_PATTERN_CHARACTERS, Glob
from octavo.core.ref import Ref

NAME = st.text("ab.é", min_size=1, max_size=4).filter(lambda name: name.strip("."))
PATH = st.lists(NAME, max_size=6)
PIECE = st.text("ab.é*", min_size=1, max_size=5).filter(lambda piece: piece.strip(".*"))  # not `*`, `**` or dots
PART = st.one_of(NAME, PIECE, st.sampled_from(["*", "**"]))
FIXED_END = st.builds(lambda parts, last: [*parts, last], st.lists(PART, max_size=4), st.one_of(NAME, PIECE))
PATTERN = st.one_of(
    st.builds(lambda parts: "x://" + "/".join(parts), st.lists(PART, max_size=5)), st.sampled_from(["**", "*", "*://a"])
)


def by_oracle(parts: list[str], path: list[str]) -> bool:
    flags = oracle.GLOBSTAR | oracle.DOTGLOB | oracle.FORCEUNIX
    return bool(oracle.globmatch("/".join(path), "/".join(parts), flags=flags))


def ref(*names: str) -> Ref:
    return Ref.of("x", names)


class TestAgainstAnOracle:
    @given(FIXED_END, st.lists(NAME, min_size=1, max_size=6))
    def test_a_pattern_with_a_fixed_end_matches_as_in_wcmatch(self, parts: list[str], path: list[str]) -> None:
        assert Glob("x://" + "/".join(parts)).matches(ref(*path)) is by_oracle(parts, path)

    @given(FIXED_END, st.sampled_from(["/*", "/**", "/"]), st.lists(NAME, min_size=1, max_size=6))
    def test_a_subtree_matches_wherever_a_part_of_the_path_does(
        self, parts: list[str], end: str, path: list[str]
    ) -> None:
        expected = any(by_oracle(parts, path[:length]) for length in range(1, len(path) + 1))
        assert Glob("x://" + "/".join(parts) + end).matches(ref(*path)) is expected

    @given(st.lists(NAME, min_size=1, max_size=3), st.data())
    def test_a_pattern_made_from_a_path_matches_it(self, path: list[str], data: st.DataObject) -> None:
        """Paths and patterns that are drawn apart seldom meet, so here one is made from the other."""
        parts: list[str] = []
        for name in path:
            cut = data.draw(st.integers(0, len(name)))
            parts += data.draw(
                st.sampled_from(
                    [[name], ["*"], ["**"], ["**", name], [name[:cut] + "*" + name[cut:]], [name[:cut] + "*"]]
                )
            )
        assert Glob("x://" + "/".join(parts)).matches(ref(*path))


@pytest.mark.parametrize(
    ("pattern", "uri", "expected"),
    [
        ("sop://brand/guide", "sop://brand/guide", True),
        ("sop://brand/guide", "sop://brand/guide/x", False),
        ("sop://brand/*.md", "sop://brand/x.md", True),
        ("sop://brand/*.md", "sop://brand/x/y.md", False),
        ("sop://hr/*", "sop://hr", True),
        ("sop://hr/*", "sop://hr/a/b/c", True),
        ("sop://hr/*", "sop://hrx", False),
        ("sop://hr/*", "doc://hr/a", False),
        ("sop://hr/", "sop://hr/a", True),
        ("sop://*", "sop://", True),
        ("sop://*", "sop://a/b", True),
        ("sop://", "sop://", True),
        ("sop://", "sop://a", False),
        ("SOP://*", "sop://a", True),
        ("sop://*/guide", "sop://brand/guide", True),
        ("sop://*/guide", "sop://a/b/guide", False),
        ("file://**/*.ts", "file://x.ts", True),
        ("file://**/*.ts", "file://a/b/x.ts", True),
        ("file://**/*.ts", "file://a/b/x.tsx", False),
        ("file://src/**/test/*", "file://src/a/test/b/c", True),
        ("file://src/**/test/*", "file://src/test", True),
        ("file:///x/*", "file:///x/y", True),
        ("file:///x/*", "file://x/y", False),
        ("file://x/*", "file:///x/y", False),
        ("file://*", "file:///x/y", True),
        ("file://*", "file://x/y", True),
        ("file:///*", "file://x", False),
        ("file:///", "file:///x", True),
        ("**", "any://thing/at/all", True),
        ("*", "any://thing", True),
        ("*://a/*", "any://a/b", True),
        ("sop://a%3Fc", "sop://a%3Fc", True),
        ("sop://a?c", "sop://a%3Fc", False),
        ("sop://a?c", "sop://a", False),
        ("sop://*?c=1", "sop://a", False),
        ("sop://a?c", "sop://abc", False),
        ("sop://[ab]", "sop://[ab]", True),
        ("sop://[ab]", "sop://a", False),
        ("sop://a*b*c", "sop://aXbYc", True),
        ("sop://ab*ba", "sop://aba", False),
        ("sop://두*", "sop://%EB%91%90 번째", True),
        ("sop://\u1103\u116e", "sop://두", True),
        ("sop://a/b", "sop://a/b?view=parsed", True),
        ("sop://a%20b/*", "sop://a b/c", True),
        ("sop://a%2Ab", "sop://a*b", True),
        ("sop://a%2Ab", "sop://aXb", False),
    ],
)
@pytest.mark.seed("O10", "O14", "A10")
def test_matching(pattern: str, uri: str, expected: bool) -> None:
    assert Glob(pattern).matches(Ref.parse(uri)) is expected


@pytest.mark.parametrize(
    "text",
    ["", "brand/*", "://x", "so*://x", "s p://x", "sop://a//b", "sop://./a", "sop://a/../b", "sop://%2e%2e/a",
         "sop://a%2Fb", "sop://%zz",
     "sop:///a", "\u212aind://x", "x" * (MAX_PATTERN_CHARACTERS + 1)],
)  # fmt: skip
def test_what_could_match_nothing_is_no_pattern(text: str) -> None:
    with pytest.raises(InvalidParams):
        Glob(text)


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_or_invalid(text: str) -> None:
    for pattern in (text, f"x://{text}"):
        try:
            assert Glob(pattern).text == pattern
        except InvalidParams:
            pass


class TestReasoning:
    @given(PATTERN, PATH)
    def test_a_match_stands_below_the_literal_beginning(self, pattern: str, path: list[str]) -> None:
        glob = Glob(pattern)
        if glob.matches(ref(*path)):
            assert ref(*path).within(glob.literal._replace(scheme="x"))

    @given(PATTERN, PATH)
    def test_an_exact_pattern_matches_its_literal_and_nothing_else(self, pattern: str, path: list[str]) -> None:
        glob = Glob(pattern)
        if glob.exact:
            assert glob.matches(glob.literal)
            assert glob.matches(ref(*path)) is (ref(*path) == glob.literal)

    @given(PATTERN, PATTERN, PATH)
    def test_patterns_that_match_one_address_overlap(self, one: str, two: str, path: list[str]) -> None:
        if Glob(one).matches(ref(*path)) and Glob(two).matches(ref(*path)):
            assert Glob(one).may_overlap(Glob(two))
            assert Glob(two).may_overlap(Glob(one))

    @pytest.mark.parametrize(
        ("one", "two"), [("sop://a/*", "doc://a/*"), ("sop://a/*", "sop://b/*"), ("sop://a/b", "sop://a/c/*")]
    )
    def test_patterns_in_different_places_do_not_overlap(self, one: str, two: str) -> None:
        assert not Glob(one).may_overlap(Glob(two))

    @given(PATTERN, PATH, NAME)
    def test_below_a_match_of_a_subtree_all_matches(self, pattern: str, path: list[str], name: str) -> None:
        glob = Glob(pattern)
        if glob.subtree and glob.matches(ref(*path)):
            assert glob.matches(ref(*path, name))

    @given(st.lists(st.text("ab*?[]%é", min_size=1, max_size=4), max_size=4), PATH)
    def test_the_pattern_of_an_address_matches_that_address_only(self, names: list[str], path: list[str]) -> None:
        glob = Glob.at(ref(*names))
        assert glob.exact
        assert glob.literal == ref(*names)
        assert glob.matches(ref(*names))
        assert glob.matches(ref(*path)) is (ref(*path) == ref(*names))

    def test_patterns_are_equal_by_their_text(self) -> None:
        assert Glob("x://a/*") == Glob("x://a/*")
        assert {Glob("x://a/*"), Glob("x://a/*")} == {Glob("x://a/*")}
        assert Glob("x://a/*") != Glob("x://a/")
        assert repr(Glob("x://a/*")) == "Glob('x://a/*')"


class TestCost:
    """Counted in steps, since time says more about the machine."""

    @pytest.mark.parametrize(
        ("pattern", "name"),
        [
            ("**/a" * 40 + "/b", "a"),
            ("**/" * 40 + "b", "a"),
            ("*a" * 60 + "/**/" + "*a" * 60 + "/b", "a" * 120),
            ("**/*a*a*a*b", "a" * 200),
        ],
    )
    def test_a_hostile_pattern_costs_at_most_path_times_pattern(
        self, pattern: str, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps = 0
        original = module.fits

        def counted(*arguments: object) -> bool:
            nonlocal steps
            steps += 1
            return original(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(module, "fits", counted)
        path = ref(*[name] * 18)
        assert not Glob(f"x://{pattern}").matches(path)
        assert steps <= len(path.segments) * len(pattern.split("/"))

    def test_inside_a_segment_each_piece_is_looked_for_once(self) -> None:
        class Counted(str):
            searches = 0

            def find(self, *arguments: object) -> int:
                Counted.searches += 1
                return super().find(*arguments)  # type: ignore[arg-type]

        pattern = "*" + "a*" * 120 + "b"
        assert not Glob(f"x://{pattern}").matches(Ref("x", (Counted("a" * 255 + "bc"),)))
        assert not Glob(f"x://{pattern}").matches(Ref("x", (Counted("a" * 100 + "b"),)))
        assert Counted.searches <= 2 * pattern.count("*")


NAMES = st.lists(st.sampled_from(["a", "ab", "b"]), max_size=4)
PATTERNS = st.lists(st.sampled_from(["a", "a*", "*b", "**", "*"]), max_size=4)


@given(PATTERNS, NAMES, NAMES)
def test_a_pattern_reaches_a_folder_if_it_matches_anything_in_it(
    parts: list[str], folder: list[str], below: list[str]
) -> None:
    pattern = Glob("file://" + "/".join(parts))
    if pattern.matches(Ref("file", (*folder, *below))):
        assert pattern.reaches(Ref("file", tuple(folder)))


@pytest.mark.parametrize(
    ("pattern", "folder", "expected"),
    [
        ("file://hr/*", "file://", True),
        ("file://hr/*", "file://hr/deep", True),
        ("file://hr/*", "file://pub", False),
        ("file://hr/pay.txt", "file://hr", True),
        ("file://hr/pay.txt", "file://hr/deep", False),
        ("file://*/private/*", "file://a/b", False),
        ("file://*/private/*", "file://a", True),
        ("file://**/private/*", "file://a/b", True),
        ("file:///srv/hr/*", "file://srv", False),
        ("file:///srv/hr/*", "file:///srv", True),
        ("work://hr/*", "file://", False),
        ("**", "file://x", True),
    ],
)
def test_a_pattern_reaches_what_it_could_match_below_an_address(pattern: str, folder: str, expected: bool) -> None:
    assert Glob(pattern).reaches(Ref.parse(folder)) is expected
