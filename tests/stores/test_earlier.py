"""What earlier versions kept in files of their own is in the store after its first opening, once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from tests.stores.stored import given

from octavo.app.stores import Home
from octavo.config.sections.stores import SQLite
from octavo.core.approval import Approval, Wanted
from octavo.core.clock import SystemClock
from octavo.core.errors import SourceUnavailable
from octavo.core.forms import Asked, form
from octavo.stores.approvals import StoredApprovals
from octavo.stores.earlier import left, take_in
from octavo.stores.keys import StoredKey, StoredKeys
from octavo.stores.memory import MemoryStore
from octavo.stores.questions import StoredQuestions

pytestmark = pytest.mark.anyio

NOW = SystemClock.wall()
WANTED = Wanted(who="ann", act="invoke tool://wipe", rule="r", request="r", versions="v")
APPROVAL = Approval(id="one", wanted=WANTED, asked=NOW, expires=NOW + 600, allowed=("kim",))
KEY = StoredKey("abcd", "brand", "f" * 64, NOW, None)
FORM = form("Which?", {"type": "object", "properties": {"answer": {"type": "string"}}})
QUESTION = Asked(id="two", who="ann", tool="ask_user", form=FORM, request="q", asked=NOW, expires=NOW + 600)


def write(folder: Path, what: str, *values: msgspec.Struct) -> None:
    (folder / f"{what}.json").write_bytes(msgspec.json.encode({"version": 1, what: list(values)}))


async def test_it_is_taken_in_once_by_whoever_opens_the_store(tmp_path: Path) -> None:
    gone = msgspec.structs.replace(APPROVAL, id="old", asked=NOW - 9000, expires=NOW - 1)
    write(tmp_path, "approvals", APPROVAL, gone)
    write(tmp_path, "keys", KEY)
    write(tmp_path, "questions", QUESTION)
    for _ in range(2):
        home = Home(SQLite(kind="sqlite"), tmp_path)
        assert await StoredApprovals(home.store, lambda *_: None).standing() == [APPROVAL]
        assert await StoredKeys(home.store).read() == [KEY]
        assert await StoredQuestions(home.store, lambda *_: None).standing() == [QUESTION]
        await home.close()
    names = os.listdir(tmp_path)
    assert not left(tmp_path) and {"approvals.json.taken", "keys.json.taken", "questions.json.taken"} <= {*names}


async def test_what_was_used_meanwhile_does_not_come_back_with_a_file_of_before(tmp_path: Path) -> None:
    write(tmp_path, "keys", KEY)
    store = MemoryStore()
    await take_in(store, tmp_path)
    await StoredKeys(given(store)).revoke(KEY.id)
    await take_in(store, tmp_path)
    assert await StoredKeys(given(store)).read() == []


async def test_a_file_that_is_brought_back_brings_no_revoked_key_back(tmp_path: Path) -> None:
    write(tmp_path, "keys", KEY)
    store = MemoryStore()
    await take_in(store, tmp_path)
    await StoredKeys(given(store)).revoke(KEY.id)
    write(tmp_path, "keys", KEY)
    await take_in(store, tmp_path)
    assert await StoredKeys(given(store)).read() == [] and not left(tmp_path)


async def test_an_id_that_is_none_of_ours_is_not_taken(tmp_path: Path) -> None:
    write(tmp_path, "keys", msgspec.structs.replace(KEY, id="x/../../approvals/"))
    store = MemoryStore()
    with pytest.raises(SourceUnavailable, match="damaged"):
        await take_in(store, tmp_path)
    assert await store.keys.scan("") == []


@pytest.mark.parametrize("body", ["{", "[]", '{"version": 2, "keys": []}', '{"version": 1, "keys": [{"id": "x"}]}'])
async def test_a_damaged_file_is_said_and_left_as_it_is(tmp_path: Path, body: str) -> None:
    (tmp_path / "keys.json").write_text(body, encoding="utf-8")
    home = Home(SQLite(kind="sqlite"), tmp_path)
    with pytest.raises(SourceUnavailable, match=r"keys\.json|newer"):
        await home.store()
    assert (tmp_path / "keys.json").read_text(encoding="utf-8") == body
    (tmp_path / "keys.json").write_text(json.dumps({"version": 1, "keys": []}), encoding="utf-8")
    assert await StoredKeys(home.store).read() == []  # the next call tries again
    await home.close()


async def test_a_link_is_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"version":1,"keys":[]}', encoding="utf-8")
    (tmp_path / "keys.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceUnavailable):
        await take_in(MemoryStore(), tmp_path)
