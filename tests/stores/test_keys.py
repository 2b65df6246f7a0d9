"""The keys of the store: hashes only, and what cannot be read lets nobody in."""

from __future__ import annotations

import hashlib

import pytest
from tests.stores.stored import made, opens

from octavo.core.errors import Conflict, NotFound
from octavo.core.ports.stores import Opens
from octavo.stores.keys import StoredKeys

__all__ = ["made", "opens"]

pytestmark = pytest.mark.anyio

NOW = 1_763_000_000.0


@pytest.fixture
def keys(opens: Opens) -> StoredKeys:
    return StoredKeys(opens)


async def test_a_key_is_told_once_and_only_its_hash_is_kept(keys: StoredKeys, opens: Opens) -> None:
    text, one = await keys.issue("brand", now=NOW, expires=NOW + 60, overlap=0)
    assert text.startswith(f"octavo_{one.id}_") and len(text) > 50
    assert one.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert await keys.read() == [one]
    assert text[-20:].encode() not in str(await (await opens()).keys.scan("")).encode()


async def test_a_new_key_ends_the_one_before_after_the_overlap(keys: StoredKeys) -> None:
    _, first = await keys.issue("brand", now=NOW, expires=None, overlap=0)
    _, other = await keys.issue("hr", now=NOW, expires=None, overlap=0)
    _, second = await keys.issue("brand", now=NOW + 10, expires=NOW + 1000, overlap=100)
    ends = {key.id: key.expires for key in await keys.read()}
    assert ends == {first.id: NOW + 110, other.id: None, second.id: NOW + 1000}
    with pytest.raises(Conflict):
        await keys.issue("brand", now=NOW + 20, expires=None, overlap=0)
    _, third = await keys.issue("brand", now=NOW + 110, expires=None, overlap=5000)  # the first is over, and forgotten
    left = {key.id: key.expires for key in await keys.read()}
    assert left == {other.id: None, second.id: NOW + 1000, third.id: None}


async def test_what_is_not_there_cannot_be_revoked(keys: StoredKeys) -> None:
    _, one = await keys.issue("brand", now=NOW, expires=None, overlap=0)
    assert await keys.revoke(one.id) == one
    with pytest.raises(NotFound):
        await keys.revoke(one.id)
    assert await keys.read() == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"id":"x"}', b"\xff", b"[" * 9999])
async def test_what_cannot_be_read_lets_nobody_in_and_is_not_overwritten(
    keys: StoredKeys, opens: Opens, body: bytes
) -> None:
    pairs = (await opens()).keys
    await pairs.set("keys/abcd", body)
    assert await keys.read() == []
    with pytest.raises(NotFound):
        await keys.revoke("abcd")
    _, one = await keys.issue("brand", now=NOW, expires=None, overlap=0)
    assert await keys.read() == [one] and await pairs.get("keys/abcd") == body
