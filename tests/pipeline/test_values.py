"""Where a labelled value ends: the whole of it is hidden, however it is written, and what stands behind it stays."""

from __future__ import annotations

import json

import pytest
import yaml
from tests.pipeline import secrets_corpus as corpus

from octavo.pipeline.redact.redactor import Redactor

VEIL = Redactor(b"k" * 32)
ANYWHERE = "&;,#%!?@$^*+=|/~:.'\"`\\"  # characters that end a value in one notation or another


def _password(character: str, seed: int = 0) -> str:
    """Which has the character in its middle, and is long enough for both halves to be told."""
    m = corpus.Maker(seed)
    return f"K{m(4)}7z{character}9{m(4)}Q"


def _halves(password: str) -> tuple[str, str]:
    return password[:6], password[-6:]


@pytest.mark.seed("A6")
@pytest.mark.parametrize("character", ANYWHERE)
@pytest.mark.parametrize(
    "around", ["password: {}", "DB_PASSWORD={}", "export TOKEN={}\nnext", "secret: {} # note", "api_key = {}, then"]
)
def test_a_value_without_quotes_is_hidden_whole(around: str, character: str) -> None:
    for seed in range(3):
        password = _password(character, seed)
        shown = VEIL.text(around.format(password))
        assert not [half for half in _halves(password) if half in shown], shown
        assert around.partition("{}")[2].strip(", ") in shown


@pytest.mark.seed("A6")
@pytest.mark.parametrize("character", ANYWHERE + "[](){}<>é가")
def test_a_value_in_quotes_is_hidden_whole_with_its_escapes(character: str) -> None:
    password = _password(character)
    doubled = password.replace("'", "''")
    spliced = password.replace("'", "'\"'\"'")
    told = json.dumps({"password": password, "user": "kim"})
    texts = {
        told: '", "user": "kim"}',
        json.dumps({"told": told}): '\\", \\"user\\": \\"kim\\"}"}',
        json.dumps({"password": password}, ensure_ascii=False): '"}',
        f"password: '{doubled}' # note": "' # note",
        f"export PASSWORD='{spliced}' && run": "' && run",
        f"connect(password={password!r}, user='kim')": ", user='kim')",
    }
    for text, behind in texts.items():
        shown = VEIL.text(text)
        assert not [half for half in _halves(password) if half in shown], shown
        assert shown.endswith(behind), shown


@pytest.mark.parametrize("character", ANYWHERE)
def test_json_and_yaml_can_be_read_with_such_values_hidden(character: str) -> None:
    document = {"password": _password(character), "note": f"password: {_password(character)}", "user": "kim"}
    for shown in (
        json.loads(VEIL.text(json.dumps(document), "application/json")),
        yaml.safe_load(VEIL.text(yaml.safe_dump(document), "application/yaml")),
    ):
        assert shown["user"] == "kim"
        assert shown["password"].startswith("[redacted:password:")


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("https://x.io/in?user=kim&password=", "&lang=ko&page=2"),
        ("https://x.io/in?password=", "&amp;lang=ko"),
        ("https://x.io/in?password=", "&filter[name]=kim"),
        ("curl -d 'user=kim&password=", "&lang=ko' https://x.io"),
        ('{"body": "password=', '\\u0026lang=ko"}'),
        ('{"body": "password=', '\\nuser=kim"}'),
        ("Server=db;Password=", ";User Id=sa;Encrypt=yes"),
        ("{user: kim, password: ", ", lang: ko}"),
        ("f(password=", ",user=kim)"),
        ("<td>password: ", "</td>"),
        ("`password: ", "`, and so on"),
        ("password=", "; ls"),
        ("password=", " && ls"),
    ],
)
def test_what_stands_behind_a_value_stays(before: str, behind: str) -> None:
    for seed in range(4):
        password = _password("-", seed)
        shown = VEIL.text(before + password + behind)
        assert shown.startswith(before) and shown.endswith(behind), shown
        assert not [half for half in _halves(password) if half in shown]


def test_a_value_that_is_none_does_not_keep_the_next_one_from_being_seen() -> None:
    password = _password("-")
    for before in ("password=changeme1&", "pwd=a&", "password=;", "secret: get_it(1), "):
        assert password not in VEIL.text(f"{before}token={password}&x=1")


@pytest.mark.parametrize(
    "text", ["password = make_1token(user)", 'token: "Please enter 1 token"', "secret: Vec<u8>, x"]
)
def test_code_and_sentences_are_no_values(text: str) -> None:
    assert VEIL.text(text) is text


@pytest.mark.parametrize(
    ("around", "characters"),
    [
        ("curl -u 'kim:{}' https://x.io", '"&;('),
        ("curl -u kim:{} https://x.io", "%#@"),
        ('mysql -u root -p"{}" db', "'&;("),
        ("mysql -u root -p{} db", "%#@"),
        ("machine x.io login kim password {} # x", "'\"&;(\\"),
        ("postgres://kim:{}@db/x", "'&;#%"),
        ("<dbPassword>\n  {}\n</dbPassword>", "'\"&;#%()[]"),
    ],
)
def test_a_password_for_a_program_is_hidden_whole(around: str, characters: str) -> None:
    for character in characters:
        password = _password(character)
        shown = VEIL.text(around.format(password))
        assert not [half for half in _halves(password) if half in shown], shown
        assert shown.endswith(around.rpartition("}")[2])


@pytest.mark.parametrize("letter", ["가", "é", "x9"])
def test_what_is_too_long_for_a_password_is_left_as_it_is(letter: str) -> None:
    text = f"password: 9Q{letter * 600}"
    assert VEIL.text(text) is text


def test_looking_for_an_end_is_bounded() -> None:
    """Each of many labels in one line looks only a little further."""
    line = "token=a1;" * 40_000
    assert VEIL.text(line) is line
