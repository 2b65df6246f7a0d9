"""Credentials in the form that their issuer publishes are found, and what only resembles one stays."""

from __future__ import annotations

import pytest
from tests.pipeline import secrets_corpus as corpus
from tests.pipeline.issuer_samples import CHECKED, FORMS, samples

from octavo.pipeline.redact.redactor import Redactor
from octavo.pipeline.redact.rules.checks import has_base58_checksum, has_crc16

VEIL = Redactor(b"k" * 32)


@pytest.mark.parametrize("rule", [*FORMS, *CHECKED])
def test_what_an_issuer_gives_out_is_hidden(rule: str) -> None:
    for name, text in samples():
        if name == rule:
            for around in (f"{text}\n", f"Use `{text}` for now.", f'{{"note": "{text}"}}'):
                shown = VEIL.text(around)
                assert "[redacted:" in shown, around
                assert text[-12:] not in shown, around


@pytest.mark.parametrize("rule", CHECKED)
def test_a_wrong_checksum_is_nobody_s_key(rule: str) -> None:
    for seed in range(3):
        text = CHECKED[rule](corpus.Maker(seed))
        swapped = text[:20] + text[21] + text[20] + text[22:]
        if swapped != text:
            assert VEIL.text(swapped) is swapped


@pytest.mark.parametrize(
    "value", ["pk_live_", "pk_test_", "pubkey-", "test_pub_", "phc_", "FLWPUBK_TEST-", "sb_publishable_"]
)
def test_a_key_made_to_be_shown_stays_whatever_it_is_called(value: str) -> None:
    text = f'SHOP_TOKEN = "{value}{corpus.salad(corpus.Maker(3), 32)}"'
    assert VEIL.text(text) is text


def test_a_token_in_the_place_of_the_user_is_hidden() -> None:
    token = corpus.salad(corpus.Maker(4), 40)
    for text in (f"https://{token}@github.com/a/b", f"https://{token}:x-oauth-basic@github.com/a/b"):
        assert token not in VEIL.text(text)
    for text in ("https://my-long-user-name-of-the-house@example.org/", "ssh://git-of-the-whole-company@host/a"):
        assert VEIL.text(text) is text


def test_a_command_goes_on_behind_a_backslash() -> None:
    text = "curl -X POST https://api.acme.io/token \\\n  -u shop:5uC5Y4Mcvdl5rB56rBm\n"
    assert "5uC5Y4Mcvdl5rB56rBm" not in VEIL.text(text)


def test_checksums_are_those_of_their_specifications() -> None:
    # BIP 32, test vector 1; SEP-23 and the README of nkeys.
    assert has_base58_checksum(
        "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi"
    )
    assert has_crc16("GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ")
    assert not has_crc16("GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGA")
