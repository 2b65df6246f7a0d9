"""A seal: carried by somebody who can neither read nor make it."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.seal import Seal

SEAL = Seal(b"k" * 32)


@given(st.binary(max_size=200), st.text(max_size=20))
def test_what_was_sealed_is_opened_by_the_same_key_for_the_same_bearer_only(text: bytes, bound: str) -> None:
    sealed = SEAL.seal(text, bound)
    assert SEAL.open(sealed, bound) == text
    assert SEAL.open(sealed, bound + "x") is None
    assert Seal(b"other" * 6).open(sealed, bound) is None
    assert SEAL.seal(text, bound) == sealed


@given(st.binary(min_size=1, max_size=60), st.data())
def test_one_changed_byte_is_noticed(text: bytes, data: st.DataObject) -> None:
    raw = bytearray(base64.urlsafe_b64decode(SEAL.seal(text, "me") + "=="))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    assert SEAL.open(base64.urlsafe_b64encode(raw).decode().rstrip("="), "me") is None


def test_the_text_does_not_show() -> None:
    raw = base64.urlsafe_b64decode(SEAL.seal(b"hr/salaries.md" * 10, "me") + "==")
    assert b"salar" not in raw and len(set(raw)) > 60


@pytest.mark.parametrize("text", ["", "A", "AAAA", "한글", "\ud800", "=" * 40, "A" * 100_000, "a b"])
def test_anything_else_is_nothing(text: str) -> None:
    assert SEAL.open(text, "me") is None
