"""The seventh fold. Requirement A6: sensitive data does not get out, Korean forms included.

Every secret here is put together at run time: nothing in this file looks like one to a scanner.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.pipeline import secrets_corpus as corpus
from tests.pipeline.issuer_samples import CHECKED, FORMS
from tests.pipeline.secrets_corpus import DIGITS, Maker, rrn

from octavo.core.errors import InvalidParams
from octavo.core.fair import in_thread
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Entry, Page, Principal, Trail
from octavo.pipeline.redact.fold import Redact
from octavo.pipeline.redact.rules import numbers
from octavo.pipeline.redact.rules.book import rules_for
from octavo.pipeline.redact.rules.personal import GROUPS

KEY = b"m" * 32
REF = Ref.parse("doc://policies/access")
SECRETS = corpus.ALL
EVERYTHING = Redact(KEY, personal=GROUPS)


@pytest.fixture(scope="module")
def redact() -> Redact:
    return EVERYTHING


def text_content(body: str | bytes, **entry: Any) -> Content:
    return Content(entry=Entry(ref=REF, name="access", **entry), body=body, etag="raw")


async def through(redact: Redact, reply: Any) -> Any:
    async def source(call: Call) -> Any:
        return reply

    return await redact(Call("read", REF, Principal("local"), Trail(), str(REF)), source)


def test_every_rule_is_shown_here() -> None:
    assert sorted([*SECRETS, *FORMS, *CHECKED, "column"]) == sorted(rule.name for rule in rules_for(GROUPS))


@pytest.mark.seed("A6")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rule", SECRETS)
def test_a_secret_is_replaced_and_what_stands_around_it_stays(redact: Redact, rule: str, seed: int) -> None:
    around, secret = SECRETS[rule](Maker(seed))
    before, after = around.format("\0").split("\0")
    hidden = redact.text(around.format(secret))
    mark = hidden.removeprefix(before).removesuffix(after)
    assert mark.startswith(f"[redacted:{rule}:") and mark.endswith("]")
    assert hidden == before + mark + after
    assert len(mark) == len(f"[redacted:{rule}:12345678]")


def test_a_long_token_that_has_todo_somewhere_in_it_is_hidden_and_an_example_is_not() -> None:
    make = Maker(1)
    token = "ops" + "_eyJ" + make(120) + "todo" + make(136)
    assert token not in EVERYTHING.text(f"use {token} here")
    example = "ops" + "_eyJ" + "your-token-here" * 15
    assert EVERYTHING.text(f"use {example} here") == f"use {example} here"


@pytest.mark.seed("A6")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_secret_survives_wherever_it_stands_and_twice_is_once(data: st.DataObject) -> None:
    redact = EVERYTHING
    make = Maker(data.draw(st.integers(0, 10_000)))
    pieces: list[str] = []
    secrets: list[str] = []
    for rule in data.draw(st.lists(st.sampled_from(sorted(SECRETS)), min_size=1, max_size=6)):
        around, secret = SECRETS[rule](make)
        assume(secret not in redact.text(around.format(secret)))  # by chance it may look like an example: 22222, todo
        secrets.append(secret)
        pieces += [data.draw(st.text(max_size=40)), " ", around.format(secret), " \n"]
    once = redact.text("".join(pieces))
    assert not [secret for secret in secrets if secret in once]
    assert redact.text(once) == once


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["password", "=", ": ", '"', "'", "a1b2c3d4e5", "hunter22", "[redacted:x:00000000]", "[redacted:", "]",
             "AKIA" + "Z2Y3X4W5V6U7T2S3", "://u:", "@h", " ", "880214-1", "token", "<", ">", "\\", "가", "eyJ", ".",
             "-", "\n"]
        ),
        max_size=40,
    )
)  # fmt: skip
def test_redaction_is_idempotent_on_rubble(pieces: list[str]) -> None:
    redact = EVERYTHING
    once = redact.text("".join(pieces))
    assert redact.text(once) == once


def test_equal_secrets_look_equal_and_only_under_one_key(redact: Redact) -> None:
    _, one = SECRETS["github-token"](Maker(1))
    _, two = SECRETS["github-token"](Maker(2))
    first, second, third = redact.text(f"{one} {two} {one}").split(" ")
    assert first == third != second
    assert Redact(b"n" * 32).text(one) != first


CLEAN = [
    "password: changeme",
    "password: ${DB_PASSWORD}",
    "password: $DB_PASSWORD",
    'api_key = "<your api key>"',
    "api_key: xxxxxxxxxxxxxxxx",
    "token = os.environ['TOKEN']",
    "token: process.env.API_TOKEN1",
    'secret: "{{ vault.secret1 }}"',
    "password = get_password2(user)",
    "password: self.config.password1",
    "password: str = field(default=None)",
    "password: string",
    "password:\n  abc12345x: 1",
    "max_tokens: 4096",
    "secret: file:/run/secrets/db1",
    "passwords are at least 12 characters long",
    "The token: a small piece of metal",
    "postgres://user:password@localhost/db",
    "postgres://user:${PASSWORD}@localhost/db",
    "https://example.org/a:b@c",
    "mail me at sk-someone@example.org about risk-assessment",
    "AKIA" + "IOSFODNN7" + "EXAMPLE",
    "-----BEGIN " + "PRIVATE KEY-----\n...\n-----END " + "PRIVATE KEY-----",
    "880214-2123456",
    "9902301234567",
    "1763200000123",
    "880230-1234567 (no such day)",
    "010-1234-5678",
    "비밀번호: 여덟자리이상으로",
    "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "version 1.2.3-rc.1+build.5114f85",
]


@pytest.mark.parametrize("text", CLEAN)
def test_what_is_no_secret_stays_and_is_the_same_object(redact: Redact, text: str) -> None:
    assert redact.text(text) is text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"password": "%s", "user": "kim"}', '{"password": "%s", "user": "kim"}'),
        ("<password>%s</password>", "<password>%s</password>"),
        ("DB_PASSWORD=%s\nUSER=kim\n", "DB_PASSWORD=%s\nUSER=kim\n"),
        ("client_secret='%s'", "client_secret='%s'"),
        ("?api_key=%s&page=2", "?api_key=%s&page=2"),
        ("비밀번호: %s", "비밀번호: %s"),
        ("password => %s,", "password => %s,"),
    ],
)
def test_assignments_keep_their_shape(redact: Redact, before: str, after: str) -> None:
    secret = "tr0ub4dor" + "&3x"[1:]
    assert redact.text(before % secret) == after % redact.text(f"password: {secret}").removeprefix("password: ")


def test_json_stays_json(redact: Redact) -> None:
    make = Maker(7)
    number = rrn("880214", "1", make(5, DIGITS))
    document = {
        rule: around.format(secret) for rule, make_one in SECRETS.items() for around, secret in [make_one(make)]
    }
    document |= {"password": make(14) + "9", "주민등록번호": number.replace("-", "")}
    hidden = json.loads(redact.text(json.dumps(document, ensure_ascii=False)))
    assert hidden.keys() == document.keys()
    assert all("[redacted:" in value for value in hidden.values())
    assert json.loads(redact.text('{"주민등록번호": ' + number.replace("-", "") + "}"))


@pytest.mark.seed("A6")
@pytest.mark.parametrize(
    ("number", "is_one"),
    [
        (rrn("880214", "1", "23456"), True),
        (rrn("030214", "4", "23456"), True),
        (rrn("880214", "5", "23456"), True),
        ("210101-3000000", True),  # born after October 2020: there is no check digit
        ("881314-1234567", False),
        ("88021-4123456", False),
    ],
)
def test_registration_numbers_are_told_by_date_and_check_digit(number: str, is_one: bool) -> None:
    assert numbers.is_registration_number(number) is is_one


def test_a_wrong_check_digit_is_no_registration_number(redact: Redact) -> None:
    number = rrn("880214", "1", "23456")
    wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
    assert redact.text(wrong) is wrong


@pytest.mark.anyio
@pytest.mark.seed("A6")
async def test_a_content_is_redacted_and_keeps_what_belongs_to_the_raw_one(redact: Redact) -> None:
    _, secret = SECRETS["github-token"](Maker(3))
    content = text_content(f"use {secret}", version="v1", size=44)
    content.memo["encoded"] = b"with the secret"
    reply = await through(redact, content)
    assert reply == Content(entry=content.entry, body=redact.text(f"use {secret}"), etag="raw")
    assert not reply.memo
    assert secret not in reply.body


@pytest.mark.anyio
async def test_a_clean_content_passes_as_it_is(redact: Redact) -> None:
    content = text_content("nothing here", title="A title", metadata={"owner": "kim", "tags": ["a"]})
    assert await through(redact, content) is content


@pytest.mark.anyio
async def test_bytes_are_looked_at_as_text_unless_their_type_and_they_say_that_they_are_none(redact: Redact) -> None:
    secret = SECRETS["github-token"](Maker(3))[1].encode()
    for mime_type, body, hidden in (
        ("text/plain", secret + b"\xff", True),
        ("application/octet-stream", b"\0" + secret, True),
        ("image/png", secret, True),
        ("image/png", b"\x89PNG\r\n" + secret, False),
        ("text/plain", b"\x00\xff nothing", False),
    ):
        content = text_content(body)
        content = replace(content, entry=replace(content.entry, mime_type=mime_type))
        given = await through(redact, content)
        assert (given is not content) is hidden
        if hidden:
            assert secret.decode() not in given.body


@pytest.mark.anyio
async def test_a_long_text_is_redacted_off_the_loop_with_the_same_result(
    redact: Redact, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = SECRETS["github-token"](Maker(3))
    body = ("x " * 20_000) + secret + (" 가" * 20_000)
    hops: list[object] = []

    async def watched(function: Any, *args: Any) -> Any:
        hops.append(function)
        return await in_thread(function, *args)

    monkeypatch.setattr("octavo.pipeline.redact.fold.in_thread", watched)
    reply = await through(redact, text_content(body))
    assert (reply.body, len(hops)) == (redact.text(body), 1)
    await through(redact, text_content(secret))
    assert len(hops) == 1


@pytest.mark.anyio
@pytest.mark.seed("A6")
async def test_entries_are_redacted_in_title_description_and_metadata(redact: Redact) -> None:
    _, secret = SECRETS["github-token"](Maker(3))
    mark = redact.text(secret)
    word = "tr0ub4dor" + "3x"
    entry = Entry(
        ref=REF,
        name="access",
        title=f"T {secret}",
        description=f"D {secret}",
        metadata={"note": [secret, 1], "deep": {"api_key": word}, "n": 7},
    )
    expected = Entry(
        ref=REF,
        name="access",
        title=f"T {mark}",
        description=f"D {mark}",
        metadata={
            "note": [mark, 1],
            "deep": {"api_key": redact.text(f"api_key: {word}").removeprefix("api_key: ")},
            "n": 7,
        },
    )
    clean = Entry(ref=REF, name="other", metadata={"owner": "kim"})
    assert await through(redact, entry) == expected
    page = await through(redact, Page((clean, entry), "next", ("notion",)))
    assert page == Page((expected, clean)[::-1], "next", ("notion",))
    assert page.items[0] is clean
    named = Entry(ref=REF, name="access", metadata={"password": word})
    page = await through(redact, Page((named,)))
    assert word not in str(page)


@pytest.mark.anyio
async def test_a_clean_page_passes_as_it_is(redact: Redact) -> None:
    page = Page(tuple(Entry(ref=REF.child(str(n)), name=str(n), description="about tokens") for n in range(50)))
    assert await through(redact, page) is page


@pytest.mark.anyio
async def test_other_replies_pass(redact: Redact) -> None:
    reply = object()
    assert await through(redact, reply) is reply


def test_rules_can_be_added_left_out_allowed_and_switched_off() -> None:
    _, secret = SECRETS["github-token"](Maker(3))
    assert Redact(KEY, rules="off").text(secret) is secret
    assert Redact(KEY, skip=["github-token"]).text(secret) is secret
    assert Redact(KEY, allow=[secret[:12] + ".*"]).text(secret) is secret
    assert Redact(KEY, allow=[secret[:12]]).text(secret) is not secret, "an exception covers the whole secret"
    extra = Redact(KEY, rules="off", extra=[{"name": "badge", "pattern": r"badge (\d{4})"}])
    assert extra.text(f"badge 1234 {secret}").startswith("badge [redacted:badge:")
    assert extra.text(secret) is secret


@pytest.mark.parametrize("pattern", [".", ".*", "[a-f0-9]{8}", "redacted", "x*", "(?s).+", r"\b"])
def test_a_rule_that_matches_marks_does_not_run_away(pattern: str) -> None:
    redact = Redact(KEY, extra=[{"name": "greedy", "pattern": pattern}])
    once = redact.text("abcdef12 and deadbeef and redacted x")
    assert redact.text(once) == once


@pytest.mark.parametrize(
    "rule", [{"name": "bad", "pattern": "("}, {"name": "look", "pattern": "(?=a)"}, {"name": "No Name", "pattern": "a"}]
)
def test_a_rule_that_cannot_work_is_refused_with_its_name(rule: dict[str, str]) -> None:
    with pytest.raises(InvalidParams, match=rule["name"]):
        Redact(KEY, extra=[rule])


@pytest.mark.seed("O11")
def test_the_version_follows_rules_and_settings_and_not_the_key() -> None:
    versions = [
        Redact(KEY).version,
        Redact(KEY, rules="off").version,
        Redact(KEY, skip=["jwt"]).version,
        Redact(KEY, allow=["a"]).version,
        Redact(KEY, extra=[{"name": "a", "pattern": "b"}]).version,
        Redact(KEY, extra=[{"name": "a", "pattern": "c"}]).version,
    ]
    assert len(set(versions)) == len(versions)
    assert Redact(b"n" * 32).version == Redact(KEY).version
