"""Undo: each operation, in reverse, per principal, also after a restart; and not over somebody's changes."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import Conflict, OctavoError
from octavo.core.ref import Ref
from octavo.sources.file.writable import WritableFileSource as FileSource
from octavo.sources.file.writing.journal import UndoJournal

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F5", "B4")]


def ref(path: str) -> Ref:
    return Ref.parse(f"file://{path}")


def tree(root: Path) -> dict[str, tuple[bytes, int] | None]:
    return {
        str(p.relative_to(root)): (p.read_bytes(), p.stat().st_mode & 0o777) if p.is_file() else None
        for p in sorted(root.rglob("*"))
    }


@pytest.fixture
def filled(root: Path) -> Path:
    for path in ("a.md", "b.md", "d/one.md", "d/sub/two.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path, encoding="utf-8")
    (root / "d/one.md").chmod(0o600)
    return root


OPERATIONS: dict[str, Any] = {
    "create": lambda s: s.write(ref("new/x.md"), "x", if_match=None, by="me"),
    "overwrite": lambda s: s.write(ref("a.md"), "x", if_match=None, by="me"),
    "append": lambda s: s.write(ref("a.md"), "x", if_match=None, mode="append", by="me"),
    "delete": lambda s: s.delete(ref("d/one.md"), if_match=None, by="me"),
    "delete directory": lambda s: s.delete(ref("d"), if_match=None, by="me"),
    "move": lambda s: s.move(ref("a.md"), ref("new/a.md"), if_match=None, by="me"),
    "move over": lambda s: s.move(ref("a.md"), ref("b.md"), if_match=None, overwrite=True, by="me"),
    "move directory": lambda s: s.move(ref("d"), ref("e"), if_match=None, by="me"),
    "copy": lambda s: s.copy(ref("a.md"), ref("new/a.md"), by="me"),
    "copy over": lambda s: s.copy(ref("a.md"), ref("b.md"), overwrite=True, by="me"),
    "copy directory": lambda s: s.copy(ref("d"), ref("e"), by="me"),
    "make directory": lambda s: s.make_directory(ref("x/y/z"), by="me"),
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_each_operation_can_be_undone(source: FileSource, filled: Path, name: str) -> None:
    before = tree(filled)
    await OPERATIONS[name](source)
    assert tree(filled) != before
    undone = await source.undo("me")
    assert len(undone) == 1
    assert tree(filled) == before
    assert await source.undo("me") == []
    assert [past.undone for past in await source.history("me", 10)] == [True]


async def test_many_are_undone_in_reverse_also_after_a_restart(opened: Any, filled: Path) -> None:
    before = tree(filled)
    source = await opened()
    for name in ("overwrite", "append", "move", "create", "copy directory"):
        await OPERATIONS[name](source)
    await source.delete(ref("d"), if_match=None, by="me")
    await source.move(ref("new/a.md"), ref("b.md"), if_match=None, overwrite=True, by="me")
    await source.write(ref("b.md"), "once more", if_match=None, by="me")
    again = await opened()
    assert len(await again.undo("me", count=100)) == 8
    assert tree(filled) == before


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "make directory"])
async def test_a_change_since_is_a_conflict_and_stays(source: FileSource, filled: Path, name: str) -> None:
    await OPERATIONS[name](source)
    for place in ("new/x.md", "a.md", "b.md", "d/one.md", "new/a.md", "e/one.md"):
        (filled / place).parent.mkdir(exist_ok=True)
        (filled / place).write_text("somebody else's", encoding="utf-8")
    before = tree(filled)
    with pytest.raises(Conflict, match="has changed since"):
        await source.undo("me")
    assert tree(filled) == before
    assert [past.undone for past in await source.history("me", 10)] == [False]


@pytest.mark.parametrize("name", ["overwrite", "delete", "delete directory"])
async def test_what_was_kept_and_is_damaged_is_not_brought_back(
    source: FileSource, filled: Path, journal: Path, name: str
) -> None:
    """It was, over what is good, and told as restored."""
    await OPERATIONS[name](source)
    before = tree(filled)
    kept = [file for file in (journal / "kept").rglob("*") if file.is_file()]
    assert kept
    for file in kept:
        body = file.read_bytes()
        file.write_bytes(bytes([body[0] ^ 1]) + body[1:])
    with pytest.raises(Conflict, match="damaged"):
        await source.undo("me")
    assert tree(filled) == before


async def test_a_directory_that_is_used_by_now_stays(source: FileSource, filled: Path) -> None:
    await source.make_directory(ref("x/y"), by="me")
    (filled / "x/y/z.md").write_text("z", encoding="utf-8")
    with pytest.raises(Conflict, match="no longer empty"):
        await source.undo("me")
    assert (filled / "x/y/z.md").exists()


async def test_everybody_undoes_their_own(source: FileSource, filled: Path) -> None:
    await source.write(ref("a.md"), "mine", if_match=None, by="me")
    await source.write(ref("b.md"), "yours", if_match=None, by="you")
    assert [str(undone.ref) for undone in await source.undo("me", count=9)] == ["file://a.md"]
    assert (filled / "b.md").read_text(encoding="utf-8") == "yours"
    assert [(past.op, str(past.ref)) for past in await source.history("you", 9)] == [("write", "file://b.md")]
    assert await source.history("nobody", 9) == []


async def test_a_later_conflict_leaves_the_rest_alone(source: FileSource, filled: Path) -> None:
    await source.write(ref("a.md"), "1", if_match=None, by="me")
    await source.write(ref("b.md"), "1", if_match=None, by="me")
    (filled / "a.md").write_text("theirs", encoding="utf-8")
    assert [str(undone.ref) for undone in await source.undo("me", count=2)] == ["file://b.md"]


async def test_a_file_that_became_read_only_is_not_undone(source: FileSource, filled: Path) -> None:
    await source.write(ref("a.md"), "1", if_match=None, by="me")
    (filled / "a.md").chmod(0o444)
    with pytest.raises(OctavoError):
        await source.undo("me")
    assert (filled / "a.md").read_text(encoding="utf-8") == "1"


async def test_undo_tells_what_it_did_and_history_what_was_done(source: FileSource, filled: Path) -> None:
    await source.move(ref("a.md"), ref("c.md"), if_match=None, by="me")
    (past,) = await source.history("me", 5)
    assert (past.op, str(past.ref), str(past.source), past.undone) == ("move", "file://c.md", "file://a.md", False)
    (undone,) = await source.undo("me")
    assert (undone.op, str(undone.ref), undone.effect) == ("move", "file://c.md", "moved back")


async def test_the_journal_is_private_and_never_served(opened: Any, filled: Path) -> None:
    inside = filled / "state"
    source = await opened(journal=inside, extensions=["*"])
    await source.write(ref("a.md"), "x", if_match=None)
    await source.delete(ref("d"), if_match=None)
    for place in [inside, *inside.rglob("*")]:
        assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600), place
    listed = [str(e.ref) for e in (await source.list(Ref("file"), cursor=None, limit=100)).items]
    assert listed == ["file://a.md", "file://b.md"]
    for attempt in (
        source.read(ref("state/index.jsonl"), max_bytes=1 << 20),
        source.write(ref("state/index.jsonl"), "", if_match=None),
        source.write(ref("state/kept/x.md"), "", if_match=None),
        source.delete(ref("state"), if_match=None),
        source.move(ref("state/lock"), ref("lock"), if_match=None),
        source.move(ref("state"), ref("public"), if_match=None),
        source.copy(ref("state"), ref("public")),
    ):
        with pytest.raises(OctavoError):
            await attempt
    assert (inside / "index.jsonl").stat().st_size > 0


async def test_the_journal_keeps_within_its_bounds_per_principal(opened: Any, filled: Path, journal: Path) -> None:
    source = await opened()
    for n in range(40):
        await source.write(ref("a.md"), "x" * 1000 + str(n), if_match=None, by="me")
    await source.write(ref("b.md"), "yours", if_match=None, by="you")
    tidy = UndoJournal(journal, lambda: 0.0, most_bytes=10_500, most_count=20)
    try:
        tidy.tidy()
        kept = [op.record.by for op in tidy.operations()]
    finally:
        tidy.close()
    assert (kept.count("me"), kept.count("you")) == (10, 1)
    assert len(os.listdir(journal / "kept")) == 11
    assert len(await source.undo("me", count=100)) == 10
    assert (filled / "a.md").read_text(encoding="utf-8") == "x" * 1000 + "29"


async def test_a_line_that_was_cut_off_spoils_only_itself(opened: Any, filled: Path, journal: Path) -> None:
    source = await opened()
    await source.write(ref("a.md"), "1", if_match=None, by="me")
    index = journal / "index.jsonl"
    index.write_bytes(index.read_bytes() + b'\n{"id":"cut o')
    await source.write(ref("b.md"), "1", if_match=None, by="me")
    assert len(await source.undo("me", count=9)) == 2
    assert (filled / "a.md").read_text(encoding="utf-8") == "a.md"
