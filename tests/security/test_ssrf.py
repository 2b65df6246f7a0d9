"""`python -m tests.security.ssrf`, which takes two seconds, and that its canaries would see a breach."""

from __future__ import annotations

import re
from ipaddress import ip_address

import pytest
from tests.security import ssrf
from tests.security.inward import INWARD_4, INWARD_6, urls

from octavo.core.errors import InvalidParams
from octavo.net.addresses import outward
from octavo.net.urls import parse_url, spelled_url

pytestmark = pytest.mark.anyio


@pytest.mark.seed("T7")
async def test_no_url_redirect_or_changing_name_leads_inward() -> None:
    figures = await ssrf.run()
    assert figures.held, figures
    assert figures.urls >= 500


async def test_the_canaries_see_what_is_let_in() -> None:
    figures = await ssrf.run(inside=["127.0.0.0/8"])
    assert figures.inward > 20


@pytest.mark.parametrize("address", [*INWARD_4, *INWARD_6])
def test_these_addresses_lie_inward(address: str) -> None:
    assert not outward(ip_address(address))
    if "." in address:
        assert not outward(ip_address(f"::ffff:{address}"))
        assert not outward(ip_address(f"64:ff9b::{address}"))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"])
def test_these_addresses_lie_outward(address: str) -> None:
    assert outward(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "https://user@host/", "https://host\\@other/", "http://010.0.0.1/", "http://2130706433/", "http://0x7f.1/",
        "http://127.1/", "https://a b/", "https://host\r\nx: y/", "ftp://host/", "https://", "https://host:0/",
        "https://-x.com/", "https://x..com/", "https://[::1", "https://h%00/", "https://" + "a" * 5000,
        "https://h/a/../b", "https://h/./a", "https://h/a/%2e%2E/b", "https://h/..%2fb",
    ],
)  # fmt: skip
def test_a_url_that_two_readers_could_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(InvalidParams):
        parse_url(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("HTTPS://Example.COM", "https://example.com/"),
        ("https://example.com:443/a?b#c", "https://example.com/a?b"),
        ("http://example.com:8080/가?나=1", "http://example.com:8080/%EA%B0%80?%EB%82%98=1"),
        ("https://한국.kr/", "https://xn--3e0b707e.kr/"),
        ("https://[2606:4700::1]:8443/", "https://[2606:4700::1]:8443/"),
    ],
)
def test_a_url_is_read_in_one_way(url: str, said: str) -> None:
    assert str(parse_url(url)) == said


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("HTTPS://example.com/a", "https://example.com/a"),
        ("https://Example.com/a", "https://example.com/a"),
        ("https://example.com./a", "https://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com/%61dmin?%7e", "https://example.com/admin?~"),
        ("https://example.com/a#b", "https://example.com/a"),
        ("https://한국.kr/", "https://xn--3e0b707e.kr/"),
    ],
)
def test_a_caller_writes_a_url_as_rules_do_or_is_told_how(url: str, said: str) -> None:
    """A rule on `https://example.com/admin/*` must not have another spelling that it does not see."""
    with pytest.raises(InvalidParams, match=re.escape(f"as {said}")):
        spelled_url(url)
    assert str(spelled_url(said)) == said


@pytest.mark.parametrize(
    "url",
    ["https://example.com", "https://example.com?a=b", "http://example.com:8080/가", "https://example.com/%2F%20"],
)
def test_what_has_one_spelling_is_taken_as_it_is(url: str) -> None:
    assert spelled_url(url) == parse_url(url)


def test_all_urls_differ() -> None:
    assert len({*urls()}) == len(urls())
