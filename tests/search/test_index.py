"""The index as a file: in step, bounded, and never worth more than the sources it is made of."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.errors import SourceUnavailable
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.search import Document, FullText, Index
from octavo.search.document import MAX_CHARACTERS
from octavo.search.tokens import normal, runs


def document(uri: str, text: str, version: str = "1", **metadata: Any) -> Document:
    return Document(ref=Ref.parse(uri), version=version, title="-", text=text, metadata=metadata)


def find(index: Index, text: str) -> list[str]:
    return [str(one.ref) for one in FullText(index).find_now(TextQuery(text), lambda _: True, None, None, 100).items]


def test_a_document_is_replaced_and_removed_with_all_its_words(index: Index) -> None:
    index.put([document("doc://a", "옛날 예산", status="old"), document("doc://b", "다른 예산")])
    index.put([document("doc://a", "새로운 경비", "2", status="new")])
    assert find(index, "옛날") == []
    assert find(index, "예산") == ["doc://b"]
    assert find(index, "경비") == ["doc://a"]
    assert index.versions("doc") == {Ref.parse("doc://a"): "2", Ref.parse("doc://b"): "1"}
    index.remove([Ref.parse("doc://a"), Ref.parse("doc://never-there")])
    assert find(index, "경비") == []
    assert index.versions("doc") == {Ref.parse("doc://b"): "1"}


def test_what_is_removed_leaves_what_stands_below_it_and_a_source_goes_as_a_whole(index: Index) -> None:
    refs = ["doc://a", "doc://a/x", "doc://a/b/y", "doc://ab/z", "doc://a-b", "sop://a/x"]
    index.put([document(uri, "예산") for uri in refs])
    index.remove([Ref.parse("doc://a")])
    assert sorted(find(index, "예산")) == sorted(refs[1:])
    assert sorted(map(str, index.held_below([Ref.parse("doc://a")]))) == ["doc://a/b/y", "doc://a/x"]
    index.remove_all(["doc"])
    assert find(index, "예산") == ["sop://a/x"]


def test_addresses_with_parameters_and_absolute_ones_are_themselves(index: Index) -> None:
    refs = ["file://a.md", "file://a.md?root=2", "file:///a.md", "file://예산%20안/b.md"]
    index.put([document(uri, "규정", uri) for uri in refs])
    assert sorted(find(index, "규정")) == sorted(str(Ref.parse(uri)) for uri in refs)
    assert index.versions("file") == {Ref.parse(uri): uri for uri in refs}
    index.remove([Ref.parse("file://a.md?root=2")])
    assert len(find(index, "규정")) == 3


def test_a_huge_document_is_searched_in_its_first_part_and_that_is_said(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    index.put([document("doc://huge", "시작 " + "채움글 " * (50 << 18) + "끝말")])
    assert "doc://huge" in caplog.text and str(MAX_CHARACTERS) in caplog.text
    assert find(index, "끝말") == []
    (one,) = FullText(index).find_now(TextQuery("시작"), lambda _: True, None, None, 10).items
    assert one.partial


def test_odd_metadata_is_bounded_and_harms_nobody(index: Index) -> None:
    odd = {
        "deep": {"a": [{"b": 1}]}, "none": None, "many": [str(n) for n in range(500)], "long": "x" * 100_000,
        "surrogate": "\ud800", "한글 키": ["값"], "number": 3, "flag": False,
    }  # fmt: skip
    index.put([document("doc://a", "예산", **odd), document("doc://b", "예산")])
    assert sorted(find(index, "예산")) == ["doc://a", "doc://b"]


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_any_text_can_be_kept_and_is_found_by_each_of_its_words(text: str) -> None:
    index = Index(None)
    index.put([document("doc://a", text)])
    for word in runs(normal(text)):
        assert find(index, word) == ["doc://a"], word
    index.remove([Ref.parse("doc://a")])
    with index.reading() as database:
        assert database.execute("SELECT count(*) FROM vocabulary").fetchone() == (0,)
    index.close()


@settings(max_examples=60)
@given(st.text(max_size=100))
def test_any_text_can_be_asked(text: str) -> None:
    index = Index(None)
    index.put([document("doc://a", "예산 budget")])
    if runs(normal(text)):
        find(index, text)
    index.close()


# -- the file


def test_a_restart_finds_everything_as_it_was(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    index.put([document("doc://a", "예산")])
    index.close()
    again = Index(tmp_path / "search.db")
    assert find(again, "예산") == ["doc://a"]
    assert again.versions("doc") == {Ref.parse("doc://a"): "1"}
    again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    index = Index(tmp_path / "state" / "search.db")
    index.put([document("doc://a", "예산")])
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "state").iterdir()}
    assert modes == {0o600}
    index.close()


def test_two_processes_share_one_file(tmp_path: Path) -> None:
    """As two editors on one folder do: each sees what the other wrote, and remembers nothing false."""
    one, other = Index(tmp_path / "search.db"), Index(tmp_path / "search.db")
    search = FullText(other)

    def found() -> list[str]:
        items = search.find_now(TextQuery("예산"), lambda _: True, "somebody", None, 10).items
        return sorted(str(one.ref) for one in items)

    one.put([document("doc://a", "예산")])
    assert found() == ["doc://a"]
    other.put([document("doc://b", "예산")])
    one.remove([Ref.parse("doc://a")])
    assert found() == ["doc://b"]
    one.close()
    other.close()


WRITER = """
import sys
from pathlib import Path
from octavo.core.ref import Ref
from octavo.search import Document, Index
index = Index(Path(sys.argv[1]))
for turn in range(10_000):
    index.put([Document(ref=Ref("doc", (str(n),)), version=str(turn), title=f"turn{turn}", text=f"예산 word{turn}",
                        metadata={"turn": str(turn)}) for n in range(20)])
    print(turn, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of POSIX")
def test_a_kill_in_the_middle_of_writing_leaves_whole_documents(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    for turns in (3, 11, 24):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(turns)][-1]
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        index = Index(path)
        (kept,) = set(index.versions("doc").values())
        assert int(kept) >= told
        assert len(find(index, f"word{kept}")) == 20
        query = TextQuery(f"turn{kept}", where=(("turn", (kept,)),))
        assert len(FullText(index).find_now(query, lambda _: True, None, None, 100).items) == 20
        with index.reading() as database:
            words = {term for (term,) in database.execute("SELECT term FROM vocabulary WHERE term LIKE 'turn_%'")}
        assert words == {f"turn{kept}"}
        assert not list(tmp_path.glob("*damaged*"))
        index.remove_all(["doc"])
        index.close()


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 1000)


def _holes(path: Path) -> None:
    """Pages that make no sense, and no goodbye of the last writer."""
    database = sqlite3.connect(path)
    database.execute("UPDATE state SET clean = 0")
    database.commit()
    database.close()
    data = bytearray(path.read_bytes())
    for begin in range(4096, len(data) - 2048, 8192):
        data[begin : begin + 2048] = os.urandom(2048)
    path.write_bytes(data)


def _of_another_layout(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 999")
    database.close()


def test_an_index_of_another_layout_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "search.db"
    index = Index(path)
    index.put([document("doc://a", "예산")])
    index.close()
    _of_another_layout(path)
    index = Index(path)
    assert index.versions("doc") == {}
    assert "made anew" in caplog.text
    assert not list(tmp_path.glob("*damaged*"))
    index.close()


@pytest.mark.parametrize("spoil", [_garbage, _holes])
def test_a_file_that_cannot_be_used_is_set_aside_and_said(
    spoil: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "search.db"
    index = Index(path)
    index.put([document(f"doc://{n}", f"예산 {n} " * 50) for n in range(200)])
    index.close()
    spoil(path)
    caplog.set_level(logging.WARNING)
    index = Index(path)
    assert index.versions("doc") == {}
    assert "made anew" in caplog.text
    assert len(list(tmp_path.glob("search.db.damaged-*"))) == 1
    index.put([document("doc://a", "예산")])
    assert find(index, "예산") == ["doc://a"]
    index.close()


def test_damage_that_shows_while_it_is_used_begins_the_index_again(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    index = Index(path)
    index.put([document(f"doc://{n}", f"예산 {n} " * 50) for n in range(500)])
    index.close()
    data = bytearray(path.read_bytes())
    for begin in range(60 * 4096, len(data) - 4096, 4096):
        data[begin : begin + 4096] = os.urandom(4096)
    path.write_bytes(data)
    index = Index(path)
    lost: list[bool] = []
    index.when_lost = lambda: lost.append(True)
    with pytest.raises(SourceUnavailable, match="made anew"):
        for n in range(500):
            find(index, f"예산 {n}")
            index.put([document(f"doc://{n}", "경비")])
    assert lost == [True]
    index.put([document("doc://a", "예산")])
    assert find(index, "예산") == ["doc://a"]
    index.close()


@pytest.mark.parametrize(
    "line", ["# a" + " " * 500_000 + "b", "# " * 250_000, "a." * 250_000, "가" * 500_000], ids=range(4)
)
def test_a_line_made_to_be_slow_is_not(line: str, index: Index) -> None:
    index.put([document("doc://a", f"{line}\n예산")])
    assert find(index, "예산") == ["doc://a"]


def test_a_thread_that_comes_too_late_is_told_that_the_server_stops_and_no_fault_is_logged(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    index.close()
    with pytest.raises(SourceUnavailable, match="stopping"):
        index.put([document("doc://a", "예산")])
    with pytest.raises(SourceUnavailable, match="stopping"):
        index.versions("doc")
    assert caplog.records == []
