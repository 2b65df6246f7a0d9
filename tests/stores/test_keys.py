"""The key file: hashes only, whole or not at all, and a damaged one lets nobody in."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from octavo.core.errors import Conflict, NotFound, SourceUnavailable
from octavo.stores.keys import NAME, KeyFile
from octavo.stores.state import StateDirectory

NOW = 1_763_000_000.0


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    StateDirectory.open(tmp_path)
    return KeyFile(tmp_path)


def test_a_key_is_told_once_and_only_its_hash_is_kept(file: KeyFile) -> None:
    text, made = file.issue("brand", now=NOW, expires=NOW + 60, overlap=0)
    assert text.startswith(f"octavo_{made.id}_") and len(text) > 50
    assert made.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert file.read() == [made]
    assert text.rpartition("_")[2] not in file.path.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_a_new_key_ends_the_one_before_after_the_overlap(file: KeyFile) -> None:
    _, first = file.issue("brand", now=NOW, expires=None, overlap=0)
    _, other = file.issue("hr", now=NOW, expires=None, overlap=0)
    _, second = file.issue("brand", now=NOW + 10, expires=NOW + 1000, overlap=100)
    ends = {key.id: key.expires for key in file.read()}
    assert ends == {first.id: NOW + 110, other.id: None, second.id: NOW + 1000}
    with pytest.raises(Conflict):
        file.issue("brand", now=NOW + 20, expires=None, overlap=0)
    _, third = file.issue("brand", now=NOW + 110, expires=None, overlap=5000)  # the first one is over, and forgotten
    assert {key.id: key.expires for key in file.read()} == {other.id: None, second.id: NOW + 1000, third.id: None}


def test_what_is_not_there_cannot_be_revoked(file: KeyFile) -> None:
    _, made = file.issue("brand", now=NOW, expires=None, overlap=0)
    assert file.revoke(made.id) == made
    with pytest.raises(NotFound):
        file.revoke(made.id)
    assert file.read() == []


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"version":2,"keys":[]}', b'{"version":1,"keys":[{"id":"x"}]}', b"\xff", b"[" * 9999]
)
def test_a_damaged_file_lets_nobody_in_and_is_not_overwritten(file: KeyFile, body: bytes) -> None:
    file.path.write_bytes(body)
    for attempt in (file.read, lambda: file.issue("a", now=NOW, expires=None, overlap=0), lambda: file.revoke("x")):
        with pytest.raises(SourceUnavailable):
            attempt()
    assert file.path.read_bytes() == body


def test_a_link_is_no_key_file(file: KeyFile, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"version":1,"keys":[]}', encoding="utf-8")
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceUnavailable):
        file.read()
