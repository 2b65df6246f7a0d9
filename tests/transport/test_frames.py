"""The bounds of every message (security.md §6: depth 64, 64-bit integers, no NaN, no member twice)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.transport.mcp import frames

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=10
)


@given(st.dictionaries(st.text(), values))
def test_whatever_is_JSON_within_the_bounds_is_read_as_it_is(message: dict[str, object]) -> None:
    try:
        raw = json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert frames.check(raw) == json.loads(raw)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "parse_error"),
        (b"x", "parse_error"),
        (b'{"a":1', "parse_error"),
        (b'{"a":1} x', "parse_error"),
        (b'\xef\xbb\xbf{"a":1}', "parse_error"),
        (b'{"a":"\xff"}', "parse_error"),
        (rb'{"a":"\ud800"}', "parse_error"),
        (b'{"a":NaN}', "parse_error"),
        (b'{"a":Infinity}', "parse_error"),
        (b'{"a":1e400}', "parse_error"),
        (b'{"a":"\x01"}', "parse_error"),
        (b"[" * 2000 + b"]" * 2000, "too_deep"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "too_deep"),
        (b'{"a":18446744073709551616}', "integer_too_large"),
        (b'{"a":-18446744073709551616}', "integer_too_large"),
        (b'{"a":' + b"9" * 100_000 + b"}", "parse_error"),
        (b'{"a":1,"a":1}', "duplicate_member"),
        (rb'{"a":1,"\u0061":1}', "duplicate_member"),
        (b'{"a":{"b":1,"b":2}}', "duplicate_member"),
        (b"[]", "invalid_request"),
        (b"null", "invalid_request"),
        (b'"{}"', "invalid_request"),
    ],
)
@pytest.mark.seed("A12")
def test_what_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(frames.Malformed) as refused:
        frames.check(raw)
    assert refused.value.error.data == {"reason": reason}
    assert refused.value.error.code == (-32700 if reason == "parse_error" else -32600)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":' * 64 + b"1" + b"}" * 64,
        b'{"a":18446744073709551615}',
        b'{"a":"' + b"[" * 999 + b'"}',
        rb'{"a":"\\[\"[["}',
    ],
)
def test_what_lies_on_the_bound_passes(raw: bytes) -> None:
    assert frames.check(raw)
