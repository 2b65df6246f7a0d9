"""How much redaction finds, on a corpus of its own: `python bench/redaction.py` prints the same with the speed."""

from __future__ import annotations

import base64
from collections import Counter

import pytest
from tests.pipeline import secrets_corpus as corpus

from octavo.config.model import Redact as RedactOptions
from octavo.pipeline.redact.redactor import Redactor
from octavo.pipeline.redact.rules.book import SECRETS
from octavo.pipeline.redact.rules.checks import has_bech32_checksum
from octavo.pipeline.redact.rules.personal import GROUPS

VEIL = Redactor(b"k" * 32, personal=GROUPS)


@pytest.mark.seed("A6")
def test_the_corpus_is_large_enough_and_the_same_each_time() -> None:
    positives, negatives = [*corpus.positives()], [*corpus.negatives()]
    assert len({one.text for one in positives}) >= 500
    assert len({one.text for one in negatives}) >= 500
    assert any("가" <= c <= "힣" for one in positives for c in one.text)
    assert positives == [*corpus.positives()] and negatives == [*corpus.negatives()]
    assert len(SECRETS) >= 60


@pytest.mark.seed("A6")
def test_recall_and_precision_are_what_is_promised() -> None:
    found, missed, wrong = Counter[str](), Counter[str](), Counter[str]()
    for one in corpus.positives():
        (missed if one.secret in VEIL.text(one.text) else found)[one.group] += 1
    for one in corpus.negatives():
        wrong[one.group] += VEIL.text(one.text) is not one.text
    for group in found:
        assert found[group] / (found[group] + missed[group]) >= 0.95, group
        assert found[group] / (found[group] + wrong[group]) >= 0.9, group


def _ordinary(m: corpus.Maker) -> dict[str, str]:
    """What stands in handbooks and repositories and looks like a secret to a rule that is too wide."""
    header, payload = corpus.jwt_header(m), "ey" + "J" + m(80, corpus.URL_SAFE)
    return {
        "a blank in an address": 'url = f"https://{user}:{pass' + 'word}@db.acme.io/"',
        "a name of a field beside a token": '"https://acme.io/token","auth_provider_x509_cert_url"',
        "what a database is installed with": "mysql://mysql:mysql@localhost:3306/test",
        "an appointment": f"https://calendar.google.com/calendar/u/0/selfsched?sstoken={m(40)}",
        "a meeting room": f"https://acme.zoom.us/j/9{m(10, corpus.DIGITS)}?pwd={m(32)}",
        "a link of a mail": f"[portal](https://lnks.gd/l/{header}.{payload}.{m(43, corpus.URL_SAFE)}/s/{m(10)}/br/1)",
        "the next page": f"?pageToken={m(30)}&x=1, nextPageToken: {m(30)}",
        "a form": f'<input name="csrf_token">, csrf_token = "{m(32)}"',
        "an image": "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQ/EAABAA" + m(200) + "+" + m(60) + "/EAAA" + m(60),
        "a lock file": f'"integrity": "sha512-{m(86, corpus.BASE64)}==", resolved: {m(40, corpus.HEX)}',
        "a uuid": f"secret-id {m.uuid()}, commit {m(40, corpus.HEX)}",
        "a function": "def test_a_secret_is_replaced_and_what_stands_around_it_stays(): live_edit_of_the_page()",
        "a book": 'secret: "c2VjcmV0IGlzIHNlY3VyZQ==", password: pass1234, password=password1',
        "AWS's example": "AK" + "IAIOSFODNN7" + "EXAMPLE",
        "a row of letters": "gh" + "p_" + "x" * 36 + ", A3-XXXXXX-XXXXXXXXXXX-XXXXX-XXXXX-XXXXX",
        "a sequence": "sq" + "p_abcdef1234567890abcdef1234567890abcdef12",
        "a blank": 'api_key = "your-api-key", token: <token>, secret: ${SECRET}, password: changeme123',
        "a fraction": f"POINT (5.{corpus.card(m)} 4.{corpus.card(m)})",
        "a film's number": "(415) 555-0132 and +1 415 555 0132",
    }


@pytest.mark.parametrize("what", _ordinary(corpus.Maker(0)))
def test_ordinary_links_and_examples_that_say_so_stay(what: str) -> None:
    for seed in range(8):
        text = _ordinary(corpus.Maker(seed))[what]
        assert VEIL.text(text) is text


def _made_up(m: corpus.Maker) -> dict[str, str]:
    """In the form of a credential, and no issuer gave it out."""
    spoken = base64.b64encode(b"reftkn:These are not the tokens that you want, really").decode()
    mashed = "\n".join("".join(m.one(*"asdfghjkl") for _ in range(64)) for _ in range(12))
    block = "-----BEGIN RSA " + f"PRIVATE KEY-----\n{mashed}\n-----END RSA " + "PRIVATE KEY-----"
    return {
        "a sequence": "xk" + "eysib-" + "123456789" + m(55, corpus.HEX) + "-" + m(16),
        "one that goes down": "sk-" + "ant-api03-" + m(85) + "76543210",
        "a sentence": "SW" + f"MTKN-1-this-is-not-the-token-you-look-for-{m(25, corpus.LOWER)}",
        "one with digits for letters": "SW" + f"MTKN-1-7h15n0770k3nju57r4nd0m7ex7{m(30, corpus.LOWER)}",
        "one in base64": "".join(["cmVm", spoken[4:]]),
        "a webhook": f"https://discord.com/api/webhooks/1483928400004822/{m(9)}_there-is-no-such-webhook-here_{m(8)}",
        "a checksum that is wrong": corpus.age_key(m)[:-1] + "B",
        "a key of one row of letters": block,
        "the same in base64": base64.b64encode(block.encode()).decode(),
    }


@pytest.mark.parametrize("what", _made_up(corpus.Maker(0)))
def test_what_no_issuer_gave_out_stays(what: str) -> None:
    for seed in range(8):
        text = _made_up(corpus.Maker(seed))[what]
        assert VEIL.text(text) is text


def test_a_password_of_words_is_a_password() -> None:
    for password in ("this-is-the-0ther-word!", "SomethingRandom4Testing", "very.long.secret.string.7"):
        assert password not in VEIL.text(f"password: {password}")


@pytest.mark.parametrize("text", ["A12UEL5L", "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw", "?1ezyfcl"])
def test_a_checksum_is_that_of_its_specification(text: str) -> None:
    assert has_bech32_checksum(text)
    assert not has_bech32_checksum(text[:-1] + "p") and not has_bech32_checksum(text[:-1] + "b")


@pytest.mark.parametrize("path", ["login/", "account/verify/", "auth/magic-link/", "i/invite/"])
def test_a_link_that_lets_somebody_in_is_no_tracker(path: str) -> None:
    m = corpus.Maker(2)
    token = f"{corpus.jwt_header(m)}.ey" + "J" + f"{m(60)}.{m(43)}"
    assert token not in VEIL.text(f"open https://acme.io/{path}{token} today")


def test_a_password_in_a_link_to_anything_but_a_meeting_room_is_hidden() -> None:
    secret = corpus.salad(corpus.Maker(2), 20)
    assert secret not in VEIL.text(f"https://acme.io/login?user=kim&pwd={secret}")


@pytest.mark.parametrize(
    "around",
    [
        "{} ?= {}", "{} ::= '{}'", "var {} string = \"{}\"", "{} := `{}`", "${} .= \"{}\"", "<x{}>\n  {}\n</x>",
        "if ({} === \"{}\")", "https://x.io/?{}={}&b=1",
    ],
)  # fmt: skip
def test_a_secret_is_found_however_a_language_assigns_it(around: str) -> None:
    for seed in range(8):
        secret = corpus.salad(corpus.Maker(seed), 24)
        assert secret not in VEIL.text(around.format("access_token", secret))


@pytest.mark.parametrize("prefix", [" *  ", "#5 0.228 ", "// ", "> ", '"'])
def test_a_private_key_is_found_behind_what_begins_each_of_its_lines(prefix: str) -> None:
    key = corpus.pem(corpus.Maker(4))
    shown = VEIL.text("\n".join(prefix + line for line in key.split("\n")))
    assert not [line for line in key.split("\n")[1:-1] if line in shown]


def test_a_token_is_found_behind_the_code_of_a_colour() -> None:
    token = "gh" + "p_" + corpus.Maker(1)(36)
    assert VEIL.text(f"\x1b[93m{token}\x1b[0m").startswith("\x1b[93m[redacted:github-token:")


@pytest.mark.parametrize("size", [24, 1])
def test_a_secret_that_a_border_cuts_does_not_pass_in_halves(size: int) -> None:
    for one in list(corpus.positives(1))[:: 1 if size > 1 else 8]:
        text = f"before\n{one.text}\nafter"
        step = max(1, len(text) // size) if size > 1 else 1
        parts = [
            str(VEIL.part(text[:at], text[at : at + step], text[at + step :], "text/plain"))
            for at in range(0, len(text), step)
        ]
        assert one.secret not in "".join(parts), one.rule


def test_the_groups_of_the_configuration_are_those_of_the_rules() -> None:
    options = RedactOptions.model_json_schema()["properties"]["personal"]["items"]["enum"]
    assert options == [*GROUPS]
