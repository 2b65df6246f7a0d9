"""Fold 5: what depends on the caller, so far sizes and times (A5, A12)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import TooLarge
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Entry, Page, Principal, Trail
from octavo.pipeline.mask import Mask

pytestmark = pytest.mark.anyio

REF = Ref.parse("sop://a")


def a_call(**limits: Any) -> Call:
    return Call("read", REF, Principal("local"), Trail(), "sop://%61", **limits)


async def echo(call: Call) -> Reply:
    return call


@given(
    max_bytes=st.integers(0, 1 << 40),
    timeout=st.floats(0, 1e6),
    limit=st.integers(0, 10_000),
)
@pytest.mark.seed("A5")
async def test_a_call_can_lower_the_limits_and_never_raise_them(max_bytes: int, timeout: float, limit: int) -> None:
    """The operator's ceiling holds for every caller and for every child call."""
    call = a_call(max_bytes=max_bytes, timeout=timeout, limit=limit)
    got: Call = await Mask(max_bytes=1000, timeout=10.0, page=100)(call, echo)
    assert got == call._replace(max_bytes=min(max_bytes, 1000), timeout=min(timeout, 10.0), limit=min(limit, 100))


async def test_a_call_within_the_limits_passes_as_it_is() -> None:
    """No copy on the hot way."""
    call = a_call(max_bytes=1000, timeout=10.0, limit=100)
    assert await Mask(max_bytes=1000, timeout=10.0, page=100)(call, echo) is call


def answering(reply: Reply) -> Any:
    async def rest(call: Call) -> Reply:
        return reply

    return rest


@pytest.mark.seed("A5", "A12")
@pytest.mark.parametrize(
    ("body", "size"), [("x" * 11, 11), ("한" * 4, 12), (b"\x00" * 11, 11)], ids=["ascii", "hangul", "bytes"]
)
async def test_too_large_says_size_limit_and_the_callers_address(body: str | bytes, size: int) -> None:
    """A12: -31006 with uri, size, limit. Bytes are counted, not letters; a cached reply is no way round."""
    content = Content(entry=Entry(ref=REF, name="a"), body=body)
    with pytest.raises(TooLarge) as refused:
        await Mask(max_bytes=10, timeout=10.0, page=100)(a_call(), answering(content))
    assert refused.value.data == {"uri": "sop://%61", "size": size, "limit": 10}
    assert str(size) in refused.value.message and "10" in refused.value.message
    assert "read a part" in refused.value.message


@pytest.mark.seed("A5")
async def test_the_lower_limit_of_a_caller_holds_for_what_another_one_fetched() -> None:
    """The cache is shared, the limit is not."""
    content = Content(entry=Entry(ref=REF, name="a"), body="x" * 10)
    mask = Mask(max_bytes=100, timeout=10.0, page=100)
    assert await mask(a_call(max_bytes=10), answering(content)) is content
    with pytest.raises(TooLarge) as refused:
        await mask(a_call(max_bytes=9), answering(content))
    assert refused.value.data["limit"] == 9


@pytest.mark.seed("A7")
async def test_the_bytes_that_were_given_out_are_noted_for_the_audit() -> None:
    """And none where nothing was given out."""
    mask = Mask(max_bytes=10, timeout=10.0, page=100)
    given_out, refused, listed = a_call(), a_call(), a_call()
    await mask(given_out, answering(Content(entry=Entry(ref=REF, name="a"), body="한글")))
    with pytest.raises(TooLarge):
        await mask(refused, answering(Content(entry=Entry(ref=REF, name="a"), body="x" * 99)))
    await mask(listed, answering(Page(())))
    assert (given_out.trail.size, refused.trail.size, listed.trail.size) == (6, 0, 0)
