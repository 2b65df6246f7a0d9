"""Documents of servers that the operator names: where they may be fetched from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from octavo.core.errors import SourceUnavailable
from octavo.net.documents import fetcher

pytestmark = pytest.mark.anyio

ISSUER = "https://id.example.com"


async def leads_inward(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.9"]


async def told(url: str, *, urls: Sequence[str] = (ISSUER,), inside: Sequence[str] = ()) -> str:
    with pytest.raises(SourceUnavailable) as refused:
        await fetcher(urls, inside, leads_inward)(url)
    return refused.value.message


async def test_a_name_that_leads_inward_is_not_asked() -> None:
    assert "does not lead to a public address" in await told(f"{ISSUER}/jwks")


async def test_a_network_that_is_listed_is_asked_for_the_hosts_that_the_operator_wrote_alone() -> None:
    # Nobody listens there: to be refused a connection is to have tried one.
    assert "does not answer" in await told(f"{ISSUER}/jwks", inside=["127.0.0.0/8"])
    other = await told("https://keys.example.net/jwks", inside=["127.0.0.0/8"])
    assert "does not lead to a public address" in other


async def test_this_machine_is_asked_where_the_operator_wrote_it() -> None:
    here = "http://localhost:9"
    assert "does not answer" in await told(f"{here}/jwks", urls=[here])
    assert "public address" in await told("https://id.example.com:9/jwks", urls=[here])


async def test_plain_text_is_for_this_machine_alone() -> None:
    assert "https only" in await told("http://id.example.com/jwks", inside=["127.0.0.0/8"])
