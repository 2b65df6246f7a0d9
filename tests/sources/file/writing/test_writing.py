"""Writing: what a file is afterwards, and when it stays what it was."""

import errno
import os
import stat
import struct
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.ref import Ref
from octavo.sources._shared.fs import syscalls
from octavo.sources.file.writable import WritableFileSource as FileSource
from octavo.sources.file.writing import staging

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F5", "B4")]
MB = 1 << 20


def ref(path: str) -> Ref:
    return Ref.parse(f"file://{path}")


def tree(root: Path) -> dict[str, bytes]:
    """Everything on disk, hidden or not."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


async def test_a_new_file_is_there_with_its_directories(source: FileSource, root: Path) -> None:
    entry = await source.write(ref("a/b/new.md"), "hello\n", if_match=None)
    assert entry == await source.stat(ref("a/b/new.md"))
    assert tree(root) == {"a/b/new.md": b"hello\n"}


async def test_bytes_are_written_as_they_are(source: FileSource, root: Path) -> None:
    await source.write(ref("a.md"), b"\xff\x00\r\n", if_match=None)
    assert tree(root) == {"a.md": b"\xff\x00\r\n"}


@pytest.mark.parametrize(
    ("mode", "absent", "existing"),
    [("upsert", b"new", b"new"), ("create", b"new", Conflict), ("overwrite", NotFound, b"new"),
     ("append", b"new", b"oldnew")],
)  # fmt: skip
async def test_each_mode_says_what_may_be_there(
    source: FileSource, root: Path, mode: Any, absent: Any, existing: Any
) -> None:
    (root / "old.md").write_bytes(b"old")
    for name, expected in (("absent.md", absent), ("old.md", existing)):
        if isinstance(expected, bytes):
            await source.write(ref(name), "new", if_match=None, mode=mode)
            assert (root / name).read_bytes() == expected
        else:
            before = tree(root)
            with pytest.raises(expected):
                await source.write(ref(name), "new", if_match=None, mode=mode)
            assert tree(root) == before


async def test_a_refused_write_makes_no_directory(source: FileSource, root: Path) -> None:
    with pytest.raises(NotFound):
        await source.write(ref("a/b.md"), "x", if_match=None, mode="overwrite")
    with pytest.raises(Conflict):
        await source.write(ref("a/b.md"), "x", if_match="0123")
    with pytest.raises(InvalidParams):
        await source.write(ref("a/b.md"), "안", if_match=None, encoding="latin-77")
    with pytest.raises(InvalidParams):
        await source.write(ref("a/" * 128 + "b.md"), "x", if_match=None)
    assert os.listdir(root) == []


async def test_mode_attributes_and_access_list_stay_with_the_file(source: FileSource, root: Path) -> None:
    file = root / "a.md"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o640)
    # version 2; owner rw, user 4242 r, group r, mask r, others nothing
    entries = [(1, 6, -1), (2, 4, 4242), (4, 4, -1), (16, 4, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    kept = {"user.note": b"kept", "system.posix_acl_access": acl}
    try:
        for name, value in kept.items():
            os.setxattr(file, name, value)
    except OSError:
        pytest.skip("this file system has no extended attributes or access control lists")
    if os.geteuid() == 0:
        os.chown(file, 4711, 4712)
    before = file.stat()
    await source.write(ref("a.md"), "new", if_match=None)
    after = file.stat()
    assert file.read_text(encoding="utf-8") == "new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == kept


@pytest.mark.parametrize("mode", [0o444, 0o400, 0o555])
async def test_a_read_only_file_is_refused_also_to_root(source: FileSource, root: Path, mode: int) -> None:
    file = root / "a.md"
    file.write_text("old", encoding="utf-8")
    file.chmod(mode)
    (root / "b.md").write_text("b", encoding="utf-8")
    for attempt in (
        source.write(ref("a.md"), "new", if_match=None),
        source.delete(ref("a.md"), if_match=None),
        source.move(ref("b.md"), ref("a.md"), if_match=None, overwrite=True),
        source.copy(ref("b.md"), ref("a.md"), overwrite=True),
        source.delete(ref(""), if_match=None),
    ):
        with pytest.raises(Forbidden):
            await attempt
    assert tree(root) == {"a.md": b"old", "b.md": b"b"}
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.seed("F3")
async def test_a_file_with_several_names_is_not_there_where_files_are_written(source: FileSource, root: Path) -> None:
    """A rule for one name would not hold for the other; nor is it copied, moved or deleted with its folder."""
    (root / "in").mkdir()
    (root / "in" / "a.md").write_text("old", encoding="utf-8")
    os.link(root / "in" / "a.md", root / "b.md")
    assert (await source.list(ref(""), cursor=None, limit=10)).items == ()
    for attempt in (
        source.read(ref("b.md"), max_bytes=MB),
        source.write(ref("b.md"), "new", if_match=None),
        source.copy(ref("b.md"), ref("c.md")),
        source.move(ref("b.md"), ref("c.md"), if_match=None),
        source.delete(ref("b.md"), if_match=None),
    ):
        with pytest.raises(NotFound):
            await attempt
    for attempt in (
        source.copy(ref("in"), ref("out")),
        source.move(ref("in"), ref("out"), if_match=None),
        source.delete(ref("in"), if_match=None),
    ):
        with pytest.raises(Forbidden, match="something is not served"):
            await attempt
    assert tree(root) == {"in/a.md": b"old", "b.md": b"old"}


async def test_hard_links_are_not_parted(opened: Any, root: Path) -> None:
    source = await opened(hard_links="allow")
    (root / "a.md").write_text("old", encoding="utf-8")
    os.link(root / "a.md", root / "b.md")
    with pytest.raises(Conflict, match="2 hard links"):
        await source.write(ref("a.md"), "new", if_match=None)
    assert tree(root) == {"a.md": b"old", "b.md": b"old"}


async def test_if_match_takes_the_version_or_the_etag_and_nothing_older(source: FileSource, root: Path) -> None:
    first = await source.write(ref("a.md"), "1", if_match=None)
    etag = (await source.read(ref("a.md"), max_bytes=MB)).etag
    second = await source.write(ref("a.md"), "2", if_match=etag)
    await source.write(ref("a.md"), "3", if_match=second.version)
    for stale in (first.version, second.version, etag, "", "nonsense"):
        for attempt in (
            source.write(ref("a.md"), "4", if_match=stale),
            source.delete(ref("a.md"), if_match=stale),
            source.move(ref("a.md"), ref("b.md"), if_match=stale),
        ):
            with pytest.raises(Conflict):
                await attempt
    assert tree(root) == {"a.md": b"3"}


async def test_no_two_versions_look_alike_however_fast_they_come(source: FileSource) -> None:
    versions = [(await source.write(ref("a.md"), str(n % 10), if_match=None)).version for n in range(50)]
    assert len(set(versions)) == 50


async def test_a_write_is_seen_at_once_by_read_and_stamp(source: FileSource) -> None:
    await source.write(ref("a.md"), "1", if_match=None)
    await source.armed()
    for n in range(20):
        stamp = source.stamp(ref("a.md"), "read")
        await source.write(ref("a.md"), f"{n}", if_match=None)
        assert source.stamp(ref("a.md"), "read") != stamp or stamp is None
        assert (await source.read(ref("a.md"), max_bytes=MB)).body == f"{n}"


async def test_a_change_behind_our_back_is_a_conflict_and_stays(
    source: FileSource, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody saves the file between our last look at it and the exchange: the exchange shows it."""
    (root / "a.md").write_text("old", encoding="utf-8")
    exchange = syscalls.renameat2
    rivals = iter(["theirs"])

    def late(old_dir: int, old: bytes, new_dir: int, new: bytes, flags: int) -> None:
        for text in rivals:
            (root / "rival.tmp").write_text(text, encoding="utf-8")
            (root / "rival.tmp").rename(root / "a.md")
        exchange(old_dir, old, new_dir, new, flags)

    monkeypatch.setattr(syscalls, "renameat2", late)
    with pytest.raises(Conflict):
        await source.write(ref("a.md"), "ours", if_match=None)
    assert tree(root) == {"a.md": b"theirs"}


@pytest.mark.parametrize("missing", ["tmpfile", "renameat2", "both", "links"])
async def test_file_systems_that_can_less_do_as_well(
    source: FileSource, root: Path, monkeypatch: pytest.MonkeyPatch, missing: str, caplog: pytest.LogCaptureFixture
) -> None:
    if missing == "links":

        def refused(*_: object, **__: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refused)
        monkeypatch.setattr(staging, "_links", {})
    elif missing != "renameat2":
        monkeypatch.setattr("octavo.sources.file.writing.staging._TMPFILE", None)
    if missing in ("renameat2", "both"):

        def unknown(*_: object) -> None:
            raise OSError(errno.EINVAL, "")

        monkeypatch.setattr(syscalls, "renameat2", unknown)
    await source.write(ref("a.md"), "1", if_match=None, mode="create")
    await source.write(ref("a.md"), "2", if_match=None)
    with pytest.raises(Conflict):
        await source.write(ref("a.md"), "3", if_match=None, mode="create")
    await source.move(ref("a.md"), ref("b.md"), if_match=None)
    await source.copy(ref("b.md"), ref("c.md"))
    await source.delete(ref("c.md"), if_match=None)
    assert tree(root) == {"b.md": b"2"}
    assert caplog.text.count("has no hard links") == (1 if missing == "links" else 0)


@pytest.mark.parametrize(
    ("old", "encoding", "text", "new"),
    [
        ("가".encode(), None, "나", "나".encode()),
        ("가".encode("utf-8-sig"), None, "나", "나".encode("utf-8-sig")),
        ("가".encode("utf-16"), None, "나", "나".encode("utf-16")),
        (b"\xfe\xff" + "가".encode("utf-16-be"), None, "나", b"\xfe\xff" + "나".encode("utf-16-be")),
        ("똠방각하".encode("cp949"), None, "나", "나".encode("cp949")),
        (b"ascii", "cp949", "나", "나".encode("cp949")),
        (b"ascii", "UTF-16", "나", "나".encode("utf-16")),
        (b"", None, "나", "나".encode()),
    ],
)  # fmt: skip
async def test_text_keeps_the_encoding_of_the_file(
    source: FileSource, root: Path, old: bytes, encoding: str | None, text: str, new: bytes
) -> None:
    (root / "a.md").write_bytes(old)
    await source.write(ref("a.md"), text, if_match=None, encoding=encoding)
    assert (root / "a.md").read_bytes() == new


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp949"])
async def test_appended_text_has_the_encoding_of_the_file_and_no_second_mark(
    source: FileSource, root: Path, encoding: str
) -> None:
    (root / "a.md").write_bytes("가\n".encode(encoding))
    await source.write(ref("a.md"), "나\n", if_match=None, mode="append")
    assert (root / "a.md").read_bytes() == "가\n나\n".encode(encoding)


async def test_a_character_that_the_encoding_has_not_is_named_and_nothing_changes(
    source: FileSource, root: Path
) -> None:
    (root / "a.md").write_bytes("똠방각하".encode("cp949"))
    before = tree(root)
    with pytest.raises(InvalidParams, match=r"cp949, .* U\+1F600"):
        await source.write(ref("a.md"), "ab😀", if_match=None)
    with pytest.raises(InvalidParams, match=r"U\+D800"):
        await source.write(ref("b.md"), "\ud800", if_match=None)
    with pytest.raises(InvalidParams, match="not in utf-8"):
        await source.write(ref("a.md"), "x", if_match=None, mode="append", encoding="utf-8")
    assert tree(root) == before


async def test_without_a_journal_nothing_that_exists_is_destroyed(opened: Any, root: Path) -> None:
    source = await opened(journal=None)
    await source.write(ref("a.md"), "a", if_match=None)
    await source.copy(ref("a.md"), ref("b.md"))
    await source.move(ref("b.md"), ref("c.md"), if_match=None)
    await source.make_directory(ref("d"))
    for attempt in (
        source.write(ref("a.md"), "x", if_match=None),
        source.write(ref("a.md"), "x", if_match=None, mode="append"),
        source.delete(ref("a.md"), if_match=None),
        source.delete(ref("d"), if_match=None),
        source.move(ref("a.md"), ref("c.md"), if_match=None, overwrite=True),
        source.copy(ref("a.md"), ref("c.md"), overwrite=True),
    ):
        with pytest.raises(Forbidden, match="without a journal"):
            await attempt
    assert tree(root) == {"a.md": b"a", "c.md": b"a"}


async def test_a_journal_that_cannot_be_used_is_as_none(opened: Any, root: Path) -> None:
    (root / "file").write_text("no directory", encoding="utf-8")
    source = await opened(journal=root / "file")
    await source.write(ref("a.md"), "a", if_match=None)
    with pytest.raises(Forbidden, match="without a journal"):
        await source.delete(ref("a.md"), if_match=None)
    assert (await source.read(ref("a.md"), max_bytes=MB)).body == "a"


async def test_a_program_that_ran_as_its_owner_does_not_after_it_was_written(source: FileSource, root: Path) -> None:
    (root / "a.sh").write_text("old", encoding="utf-8")
    (root / "a.sh").chmod(0o4755)
    await source.write(ref("a.sh"), "new", if_match=None)
    await source.copy(ref("a.sh"), ref("b.sh"))
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in ("a.sh", "b.sh")] == [0o755, 0o755]


async def test_a_new_file_has_the_mode_that_the_process_gives(source: FileSource, root: Path) -> None:
    await source.write(ref("ours.md"), "x", if_match=None)
    (root / "theirs.md").write_text("x", encoding="utf-8")
    assert (root / "ours.md").stat().st_mode == (root / "theirs.md").stat().st_mode


async def test_a_new_file_is_in_the_first_root_and_an_old_one_where_it_is(opened: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (two / "old.md").write_text("old", encoding="utf-8")
    source = await opened(one, two)
    for name in ("old.md", "new.md"):
        assert await source.write(ref(name), "x", if_match=None) == await source.stat(ref(name))
    entry = await source.write(ref("other.md?root=2"), "x", if_match=None)
    assert entry == await source.stat(ref("other.md?root=2"))
    assert (tree(one), tree(two)) == ({"new.md": b"x"}, {"old.md": b"x", "other.md": b"x"})


async def test_a_name_in_another_unicode_form_is_the_same_file(source: FileSource, root: Path) -> None:
    on_disk = unicodedata.normalize("NFD", "한.md")
    (root / on_disk).write_text("old", encoding="utf-8")
    await source.write(ref("한.md"), "new", if_match=None)
    assert tree(root) == {on_disk: b"new"}
    await source.delete(ref("한.md"), if_match=None)
    await source.undo("")
    assert tree(root) == {on_disk: b"new"}


@pytest.mark.parametrize("body", ["x" * 300_000, b"y" * 5_000_000])
async def test_large_bodies_are_written_whole(source: FileSource, root: Path, body: str | bytes) -> None:
    await source.write(ref("a.md"), body, if_match=None)
    await source.write(ref("a.md"), body, if_match=None, mode="append")
    assert (root / "a.md").stat().st_size == 2 * len(body)


async def test_a_directory_is_made_with_those_above_and_made_again_in_peace(source: FileSource, root: Path) -> None:
    (root / "file.md").write_text("x", encoding="utf-8")
    await source.make_directory(ref("a/b/c"))
    await source.make_directory(ref("a/b"))
    with pytest.raises(Conflict):
        await source.make_directory(ref("file.md"))
    with pytest.raises(Conflict):
        await source.make_directory(ref("file.md/below"))
    with pytest.raises(Conflict):
        await source.write(ref("file.md/below.md"), "x", if_match=None)
    with pytest.raises(OctavoError):
        await source.write(ref("a/b"), "x", if_match=None)
    assert (root / "a/b/c").is_dir()


async def test_what_the_journal_cannot_keep_is_not_destroyed(
    source: FileSource, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.md").write_text("12345", encoding="utf-8")
    monkeypatch.setattr(source._journal, "most_bytes", 4)
    for attempt in (source.write(ref("a.md"), "x", if_match=None), source.delete(ref("a.md"), if_match=None)):
        with pytest.raises(TooLarge, match="nothing was changed"):
            await attempt
    assert tree(root) == {"a.md": b"12345"}
