"""Addresses: what text may become one, and what it then looks like."""

import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import AnyUrl

from octavo.core import ref as module
from octavo.core.errors import Forbidden, InvalidParams, OctavoError
from octavo.core.ref import MAX_PATH_BYTES, MAX_QUERY_BYTES, MAX_SEGMENT_BYTES, MAX_URI_CHARACTERS, Ref, decode

# Text as nasty as a URI can be: separators, escapes, controls, marks that combine, both ends of Unicode.
NASTY = st.text(
    st.one_of(
        st.sampled_from(
            "./\\%?#&=+:*[]{} \"'<>^`|aA0~@;,!$()é\u0301\u0338\u1100\u1161\u11a8가\u200d\u200b\u202e\u00ad"
        ),
        st.sampled_from("\x00\n\x7f\u2126\u212a\u037e\ufb00\U0001f469\U0001f4bb\U000e0041\ud800\udfff2eEfF"),
        st.characters(),
    ),
    max_size=30,
)
NAMES = st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), min_size=1, max_size=20).filter(
    lambda name: _is_name(name)
)
SCHEMES = st.from_regex(r"\A[a-z][a-z0-9+.-]{0,10}\Z")
PARAMS = st.dictionaries(NAMES, NAMES, max_size=4)


def _is_name(name: str) -> bool:
    try:
        Ref.of("x", [name])
    except OctavoError:
        return False
    return True


def refs(schemes: st.SearchStrategy[str] = SCHEMES) -> st.SearchStrategy[Ref]:
    return st.builds(
        lambda scheme, segments, params, absolute: Ref.of(
            scheme, segments, params.items(), absolute=absolute and scheme == "file"
        ),
        st.one_of(schemes, st.just("file")),
        st.lists(NAMES, max_size=6),
        PARAMS,
        st.booleans(),
    )


class TestRoundTrip:
    @given(refs())
    @example(Ref.of("file", ["localhost", "x"]))
    @example(Ref.of("file", ["localhost"]))
    @example(Ref.of("file", [], absolute=True))
    @example(Ref.of("file", ["localhost", "x"], absolute=True))
    @example(Ref.of("a", ["%2F?"], [("q", "a&b=c+d%26\n")]))
    def test_what_is_printed_is_parsed_to_the_same_address(self, ref: Ref) -> None:
        assert Ref.parse(str(ref)) == ref

    @given(st.one_of(NASTY, st.builds(lambda s, rest: f"{s}://{rest}", SCHEMES, NASTY)))
    @example("file://localhost/etc/x")
    @example("FILE:///x")
    @example("x://a%2fb")
    def test_parsing_is_idempotent_and_raises_only_our_errors(self, text: str) -> None:
        try:
            ref = Ref.parse(text)
        except OctavoError:
            return
        assert Ref.parse(str(ref)) == ref
        assert str(Ref.parse(str(ref))) == str(ref)

    @given(refs())
    def test_of_the_parts_of_an_address_is_the_address(self, ref: Ref) -> None:
        assert Ref.of(ref.scheme, ref.segments, ref.params, absolute=ref.absolute) == ref

    @given(refs())
    def test_an_address_is_printed_in_one_visible_line_without_what_would_end_it(self, ref: Ref) -> None:
        text = str(ref)
        assert not set(text) & set(' "<>\n\r\t\x00\x7f')
        assert text.count("#") == 0
        assert text.count("?") == bool(ref.params) + sum(value.count("?") for pair in ref.params for value in pair)

    def test_the_longest_address_can_be_printed_and_parsed_again(self) -> None:
        path = [" " * MAX_SEGMENT_BYTES] * (MAX_PATH_BYTES // (MAX_SEGMENT_BYTES + 1))
        query = [("k", "+" * (MAX_QUERY_BYTES - 3))]
        ref = Ref.of("s" * 64, path, query)
        assert len(str(ref)) <= MAX_URI_CHARACTERS
        assert Ref.parse(str(ref)) == ref


class TestSegments:
    @given(st.builds(lambda s, rest: f"{s}://{rest}", SCHEMES, NASTY))
    @example("x://%2e%2e/a")
    @example("x://a/%2E")
    @example("x://a%5Cb")
    @example("x://a%00")
    @example("file:///a/..%2fb")
    @pytest.mark.seed("F3")
    def test_no_forbidden_segment_is_ever_accepted(self, text: str) -> None:
        try:
            ref = Ref.parse(text)
        except OctavoError:
            return
        for segment in ref.segments:
            assert segment not in ("", ".", "..")
            assert not set(segment) & {"/", "\\", "\0", "\n", "\x7f", "\u202e", "\u200b", "\ufeff"}
            assert unicodedata.is_normalized("NFC", segment)
            assert len(segment.encode()) <= MAX_SEGMENT_BYTES
        assert len(ref.path.encode()) <= MAX_PATH_BYTES

    @pytest.mark.parametrize(
        "uri", ["sop://a/../b", "file:///../etc", "sop://%2e%2e", "sop://a/%2E.", "file://x/.%2e/y"]
    )
    @pytest.mark.seed("F3", "F8")
    def test_an_address_that_climbs_is_forbidden(self, uri: str) -> None:
        with pytest.raises(Forbidden):
            Ref.parse(uri)

    @pytest.mark.parametrize(
        "uri",
        ["", "x", "x:/y", "://x", "1x://y", "x y://z", "x_y://z", "x" * 65 + "://y", "x://a//b", "x:///a",
         "x://a/", "x://./a", "x://a#b",
         "x://a\\b", "x://a%5cb", "x://a%2Fb", "x://a%", "x://a%4", "x://a%zz", "x://%ff", "x://%ED%A0%80",
         "x://\ud800", "x://a\x00", "x://a%00",
         "x://a\u202eb", "x://a%E2%80%AEb", "x://\ufeffa", "\u212aind://x", "x://a?", "x://a?b", "x://a?=b",
         "x://a?b=1&b=2", "x://a?b=1&&c=2",
         "x://a?b=%00", "x://a?b%0A=1", "x://a?b=\ud800", "x://a?b=%", "file://" + "a" * 256],
    )  # fmt: skip
    @pytest.mark.seed("A12", "F8")
    def test_text_that_is_no_address_is_invalid(self, uri: str) -> None:
        with pytest.raises(InvalidParams):
            Ref.parse(uri)

    @pytest.mark.parametrize(
        ("uri", "says"),
        [
            ("file://sub/", "leave out the slash at the end"),
            ("sop://a//b", "put one slash between two names"),
            ("sop:///a", "none at the beginning"),
            ("sop://./a", "leave it out"),
        ],
    )
    def test_a_slash_too_many_is_told_what_to_do(self, uri: str, says: str) -> None:
        with pytest.raises(InvalidParams, match=f"empty or '.' segment: .*{says}"):
            Ref.parse(uri)

    @given(NAMES, st.booleans())
    def test_a_name_is_decoded_exactly_once(self, name: str, again: bool) -> None:
        encoded = quote(name, safe="")
        if again:
            name, encoded = encoded, quote(encoded, safe="")
        assume(_is_name(name))
        assert Ref.parse(f"x://{encoded}").segments == (unicodedata.normalize("NFC", name),)

    def test_an_encoded_percent_stays_a_percent(self) -> None:
        assert Ref.parse("x://%252e%252e/%2525").segments == ("%2e%2e", "%25")

    @given(NAMES)
    def test_composed_and_decomposed_spellings_are_one_address(self, name: str) -> None:
        decomposed = unicodedata.normalize("NFD", name)
        assume(len(decomposed.encode()) <= MAX_SEGMENT_BYTES)
        assert Ref.of("x", [decomposed]) == Ref.of("x", [name])
        assert Ref.parse(f"x://{quote(decomposed, safe='')}") == Ref.parse(f"x://{quote(name, safe='')}")

    @given(st.text(st.characters(codec="ascii", categories=["Lu", "Ll"]), min_size=1, max_size=9))
    def test_the_case_of_a_path_is_kept_and_that_of_a_scheme_is_not(self, name: str) -> None:
        ref = Ref.parse(f"SoP://{name}/x")
        assert (ref.scheme, ref.segments) == ("sop", (name, "x"))

    @pytest.mark.parametrize("length", [MAX_SEGMENT_BYTES, MAX_SEGMENT_BYTES + 1])
    def test_the_cap_of_a_segment_counts_bytes(self, length: int) -> None:
        name = "é" * (length // 2) + "e" * (length % 2)
        assert _is_name(name) is (length == MAX_SEGMENT_BYTES)

    def test_the_caps_of_path_query_and_uri(self) -> None:
        exact = ["a" * 255] * 16  # 16 * 256 - 1 bytes with their slashes
        assert len(Ref.of("x", exact).path) == MAX_PATH_BYTES - 1
        assert len(Ref.of("x", [*exact[:-1], "a" * 254, "b"]).path) == MAX_PATH_BYTES
        for bad in (
            lambda: Ref.of("x", [*exact, "b"]),
            lambda: Ref.of("x", [], [("k", "v" * MAX_QUERY_BYTES)]),
            lambda: Ref.parse("x://a?k=" + "v" * MAX_QUERY_BYTES),
            lambda: Ref.parse("x://" + "%61" * (MAX_URI_CHARACTERS // 3)),
        ):
            with pytest.raises(InvalidParams, match="longer than"):
                bad()

    def test_a_joined_emoji_keeps_its_invisible_joiner(self) -> None:
        assert Ref.parse("x://👩‍💻").segments == ("👩\u200d💻",)

    @pytest.mark.parametrize(
        "make", [lambda: Ref.of("X_Y"), lambda: Ref.of("sop", ["a"], absolute=True), lambda: Ref.of("")]
    )
    def test_parts_meet_the_same_checks_as_text(self, make: object) -> None:
        assert callable(make)
        with pytest.raises(InvalidParams):
            make()

    @pytest.mark.parametrize(
        "params", [[("", "x")], [("a", "1"), ("a", "2")], [("a", "\0")], [("a\n", "")], [("a", "\ud800")]]
    )
    def test_parameters_meet_the_same_checks_as_text(self, params: list[tuple[str, str]]) -> None:
        with pytest.raises(InvalidParams):
            Ref.of("x", [], params)


class TestFiles:
    @pytest.mark.seed("F1")
    def test_both_spellings_of_a_file_are_told_apart(self) -> None:
        relative, absolute = Ref.parse("file://documents/x.md"), Ref.parse("file:///documents/x.md")
        assert relative.segments == absolute.segments == ("documents", "x.md")
        assert (relative.absolute, absolute.absolute) == (False, True)
        assert (str(relative), str(absolute)) == ("file://documents/x.md", "file:///documents/x.md")
        assert relative != absolute

    @pytest.mark.seed("F1")
    def test_a_first_segment_is_no_host(self) -> None:
        """General URL types lower-case it, drop it or call it an authority."""
        for uri in ("file://Documents", "file://Documents/Notes.md", "file://user:pw@host:80/x", "sop://HR/x"):
            assert str(Ref.parse(uri)) == uri
        assert str(Ref.parse("sop://HR:1@home/a:b@[c]")) == "sop://HR%3A1%40home/a:b@[c]"

    @pytest.mark.seed("B11")
    @given(st.lists(NAMES, min_size=1, max_size=3))
    @example(["1:1 @home [draft] 100%"])
    def test_the_url_type_of_clients_leaves_every_address_readable(self, segments: list[str]) -> None:
        """One that it refuses costs a client the whole list."""
        for listed in (Ref.of("doc", segments), Ref.of("file", segments, absolute=True)):
            assert Ref.parse(str(AnyUrl(str(listed)))) == listed

    def test_localhost_is_the_absolute_spelling_unless_it_is_a_folder(self) -> None:
        assert Ref.parse("file://localhost/etc/x") == Ref.parse("file:///etc/x")
        folder = Ref.parse("file://%6Cocalhost/x")
        assert (folder.segments, folder.absolute) == (("localhost", "x"), False)
        assert Ref.parse(str(folder)) == folder

    def test_roots(self) -> None:
        assert Ref.parse("file://") == Ref("file")
        assert Ref.parse("file:///") == Ref("file", (), (), True)
        assert Ref.parse("sop://") == Ref("sop")


class TestParameters:
    @given(PARAMS, st.randoms(use_true_random=False))
    @pytest.mark.seed("O1")
    def test_the_order_of_parameters_does_not_matter(self, params: dict[str, str], random: object) -> None:
        pairs = list(params.items())
        random.shuffle(pairs)  # type: ignore[attr-defined]
        ref = Ref.of("x", ["a"], pairs)
        assert ref == Ref.of("x", ["a"], params.items())
        assert list(ref.params) == sorted(ref.params)
        for key, value in ref.params:
            assert ref.param(key) == value

    @pytest.mark.seed("O1")
    def test_parameters_of_the_seeds(self) -> None:
        ref = Ref.parse("doc://policies/expense?version=1.2.0")
        assert (ref.param("version"), ref.param("view")) == ("1.2.0", None)
        assert ref.bare == Ref.parse("doc://policies/expense")
        bare = ref.bare
        assert bare.bare is bare

    @pytest.mark.seed("A1")
    def test_a_colon_in_a_query_is_printed_as_it_is(self) -> None:
        uri = "notion://database/campaigns?filter=status:active"
        assert str(Ref.parse(uri)) == uri

    def test_a_plus_is_a_plus(self) -> None:
        assert Ref.parse("x://a?q=1+1").param("q") == "1+1"

    def test_a_line_end_in_a_value_is_never_printed_raw(self) -> None:
        assert str(Ref.parse("x://a?q=1%0A2")) == "x://a?q=1%0A2"


class TestRelations:
    @given(refs(), NAMES)
    def test_a_child_is_within_its_parent_and_not_the_other_way(self, ref: Ref, name: str) -> None:
        child = ref.child(name)
        assert child.within(ref)
        assert ref.within(ref)
        assert not ref.within(child)
        assert (child.name, child.segments[:-1], child.params) == (unicodedata.normalize("NFC", name), ref.segments, ())

    def test_within_compares_segments_and_not_text(self) -> None:
        parse = Ref.parse
        assert not parse("x://aa/b").within(parse("x://a"))
        assert not parse("y://a/b").within(parse("x://a"))
        assert not parse("file:///etc/x").within(parse("file://etc"))
        assert parse("file:///etc/x").within(parse("file://"))
        assert not parse("file://etc/x").within(parse("file:///"))

    @given(refs(), refs())
    def test_equal_addresses_are_equal_texts(self, one: Ref, two: Ref) -> None:
        assert (one == two) is (str(one) == str(two))
        assert hash(Ref.parse(str(one))) == hash(one)

    def test_the_name_of_a_root_is_empty(self) -> None:
        assert (Ref("x").name, Ref("x").path) == ("", "")


@given(NASTY)
def test_decoding_raises_only_our_errors(text: str) -> None:
    try:
        assert "%" in text or decode(text) == text
    except InvalidParams:
        assert "%" in text


@given(NAMES)
def test_decoding_undoes_quoting(name: str) -> None:
    assert module.decode(quote(name, safe="")) == name
