"""What the file tools do when the input, the disk or the folder is bad: a typed error, and nothing half done."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.text.edits import apply

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F5", "F8")]

CHANGES = (
    ("write", {"target": "a.txt", "content": "x"}),
    ("write", {"target": "new.txt", "content": "x"}),
    ("edit", {"target": "a.txt", "edits": [{"old": "one", "new": "1"}]}),
    ("delete", {"target": "a.txt"}),
    ("move", {"target": "a.txt", "to": "moved.txt"}),
    ("create_directory", {"target": "new"}),
)
FILES = {"a.txt": "one\ntwo\nthree\n", "d/b.txt": "b\n"}


def tree(root: Path) -> dict[str, bytes | None]:
    """Everything below, hidden files too: what a failed call must not change."""
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else None for p in sorted(root.rglob("*"))}


async def refused(tools: Any, name: str, **arguments: Any) -> OctavoError:
    """The error of a call that changes nothing. It does not say where on the machine the folder is."""
    before = tree(tools.root)
    with pytest.raises(OctavoError) as caught:
        await tools(name, **arguments)
    assert tree(tools.root) == before
    assert str(tools.root) not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"target": "d"}),
        ("edit", {"target": "d", "edits": [{"old": "b", "new": "c"}]}),
        ("write", {"target": "d", "content": "x"}),
        ("write", {"target": "d", "content": "x", "mode": "append"}),
        ("copy", {"target": "a.txt", "to": "d", "overwrite": True}),
        ("move", {"target": "a.txt", "to": "d", "overwrite": True}),
        ("move", {"target": "d", "to": "a.txt", "overwrite": True}),
        ("move", {"target": "d", "to": "d/inner"}),
    ],
)
async def test_a_folder_is_no_file(serve: Any, tool: str, arguments: dict[str, Any]) -> None:
    tools = await serve(files=FILES)
    error = await refused(tools, tool, **arguments)
    assert isinstance(error, NotFound | InvalidParams | Conflict | Forbidden)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"target": "a.txt/b.txt"}),
        ("write", {"target": "a.txt/b.txt", "content": "x"}),
        ("create_directory", {"target": "a.txt"}),
        ("create_directory", {"target": "a.txt/inner"}),
        ("copy", {"target": "d/b.txt", "to": "a.txt/b.txt"}),
        ("move", {"target": "d", "to": "a.txt/d"}),
        ("delete", {"target": "a.txt/b.txt"}),
    ],
)
async def test_a_file_is_no_folder(serve: Any, tool: str, arguments: dict[str, Any]) -> None:
    tools = await serve(files=FILES)
    error = await refused(tools, tool, **arguments)
    assert isinstance(error, NotFound | InvalidParams | Conflict | Forbidden)


@pytest.mark.parametrize(
    "part",
    [
        {"lines": [3, 1]},
        {"lines": [0, 2]},
        {"lines": [1]},
        {"lines": ["one", "2"]},
        {"bytes": [5, 2]},
        {"bytes": [-1, 2]},
        {"head": 0},
        {"tail": -1},
        {"head": 1.5},
        {"head": 1, "tail": 1},
        {"section": "none of this name"},
    ],
)
async def test_a_part_that_cannot_be_is_refused(serve: Any, part: dict[str, Any]) -> None:
    tools = await serve(files=FILES)
    assert isinstance(await refused(tools, "read", target="a.txt", **part), InvalidParams | NotFound)


@pytest.mark.parametrize(
    "edits",
    [
        [],
        [{"old": "", "new": "x"}],
        [{"old": "absent", "new": "x"}],
        [{"old": "one", "new": "1"}, {"old": "absent", "new": "x"}],
        [{"old": "one\ntwo", "new": "x"}, {"old": "two\nthree", "new": "y"}],
        [{"old": "one", "new": "1"}, {"old": "one", "new": "2"}],
        [{"old": "e", "new": "x", "expected": 2}],
        [{"old": "one", "new": "x", "expected": 0}],
        [{"old": "one", "new": None}],
    ],
    ids=["none", "empty", "absent", "second absent", "overlap", "the same twice", "other count", "count 0", "no text"],
)
async def test_an_edit_that_does_not_fit_changes_nothing(serve: Any, edits: list[dict[str, Any]]) -> None:
    tools = await serve(files=FILES)
    assert isinstance(await refused(tools, "edit", target="a.txt", edits=edits), InvalidParams | Conflict)


async def test_an_edit_of_many_places_and_a_long_text_is_done(serve: Any) -> None:
    tools = await serve(files={"a.txt": "".join(f"key{number:04}=old\n" for number in range(1000))})
    edits = [{"old": f"key{number:04}=old", "new": f"key{number:04}=new"} for number in range(1000)]
    told = await tools.data("edit", target="a.txt", edits=edits)
    assert (told["added"], told["removed"]) == (1000, 1000)
    assert (tools.root / "a.txt").read_bytes().count(b"=new\n") == 1000
    long = "x" * 5_000_000
    await tools("edit", target="a.txt", edits=[{"old": "key0000=new", "new": long}])
    assert (tools.root / "a.txt").stat().st_size == 1000 * len("key0000=new\n") - len("key0000=new") + len(long)


async def test_more_edits_than_a_call_takes_are_refused(serve: Any) -> None:
    tools = await serve(files=FILES)
    edits = [{"old": "one", "new": "x"}] * 1001
    assert isinstance(await refused(tools, "edit", target="a.txt", edits=edits), InvalidParams)


async def test_a_file_too_large_to_edit_is_refused_with_the_limit(serve: Any) -> None:
    tools = await serve(files={"a.txt": b"x" * (17 << 20) + b"\none\n"})
    with pytest.raises(TooLarge):
        await tools("edit", target="a.txt", edits=[{"old": "one", "new": "1"}])
    assert (tools.root / "a.txt").read_bytes().endswith(b"\none\n")


@pytest.mark.parametrize("body", [b"\x00\x01\x02one\xff\xfe\x00", b"\x7fELF\x02\x01\x01\x00one" + bytes(64)])
async def test_bytes_that_are_no_text_are_not_edited(serve: Any, body: bytes) -> None:
    tools = await serve(files={"a.bin": body})
    error = await refused(tools, "edit", target="a.bin", edits=[{"old": "one", "new": "1"}])
    assert isinstance(error, InvalidParams)
    assert "a.bin" in str(error)


@pytest.mark.parametrize("name", ["new\nline.txt", "tab\there.txt", "esc\x1b[31m.txt", "bell\x07.txt", "del\x7f.txt"])
async def test_names_with_control_characters_are_one_entry_or_refused(serve: Any, name: str) -> None:
    """Whoever puts such a file into a folder cannot forge a line of a listing."""
    tools = await serve(files={"a.txt": "one\n"})
    (tools.root / name).write_text("hostile\n", encoding="utf-8")
    listed = await tools("list", depth=0)
    assert len(listed.structured["entries"]) <= 2
    for text in (await tools.text("list", depth=0), await tools.text("search", query="hostile")):
        assert not any((ord(c) < 32 and c != "\n") or ord(c) == 127 for c in text)
        assert "line.txt" not in text.splitlines()
    with pytest.raises(InvalidParams):
        await tools("write", target=f"made/{name}", content="x")
    assert not (tools.root / "made").exists()


@pytest.mark.parametrize("name", ["nul\x00.txt", "a\\b.txt", "x" * 300 + ".txt", "/".join(["deep"] * 3000)])
async def test_names_that_cannot_be_are_refused(serve: Any, name: str) -> None:
    tools = await serve(files=FILES)
    for tool, arguments in (
        ("read", {"target": name}),
        ("write", {"target": name, "content": "x"}),
        ("create_directory", {"target": name}),
        ("move", {"target": "a.txt", "to": name}),
    ):
        assert isinstance(await refused(tools, tool, **arguments), InvalidParams | NotFound | Forbidden | TooLarge)


async def test_an_edit_never_takes_back_what_changed_meanwhile(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else writes the file after it was read and before the edit is written."""
    tools = await serve(files=FILES)
    file = tools.root / "a.txt"

    def meanwhile(text: str, wanted: Any, **more: Any) -> Any:
        if file.read_text(encoding="utf-8") == FILES["a.txt"]:
            file.write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
        return apply(text, wanted, **more)

    monkeypatch.setattr("octavo.text.edits.apply", meanwhile)
    await tools("edit", target="a.txt", edits=[{"old": "two", "new": "2"}])
    assert file.read_text(encoding="utf-8") == "one\n2\nthree\nfour\n"
    assert sorted(os.listdir(tools.root)) == ["a.txt", "d"]


async def test_edits_at_the_same_time_are_all_in_the_file(serve: Any) -> None:
    tools = await serve(files={"a.txt": "".join(f"key{number:02}=old\n" for number in range(20))})
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            edit = {"old": f"key{number:02}=old", "new": f"key{number:02}=new"}
            tasks.start_soon(partial(tools, "edit", target="a.txt", edits=[edit]))
    assert (tools.root / "a.txt").read_text(encoding="utf-8").count("=new\n") == 20


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """The served folder, one that nobody can write into, root neither."""
    place = tmp_path / "work"
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a read-only file system")
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "a.txt").write_text("one\n", encoding="utf-8")
    place.mkdir()
    done = subprocess.run([mount, "-o", "bind,ro", str(origin), str(place)], capture_output=True, check=False)
    if done.returncode or os.statvfs(place).f_flag & os.ST_RDONLY == 0:
        subprocess.run([umount, "-l", str(place)], capture_output=True, check=False)
        pytest.skip("mounting is not permitted here")
    try:
        yield place
    finally:
        subprocess.run([umount, "-l", str(place)], check=True)


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_a_read_only_folder_is_said_and_stays(
    read_only: Path, serve: Any, tool: str, arguments: dict[str, Any]
) -> None:
    tools = await serve()
    error = await refused(tools, tool, **arguments)
    assert "read-only" in str(error).lower() or isinstance(error, Forbidden)


async def test_a_root_that_is_deleted_is_said_and_nothing_is_made(serve: Any) -> None:
    tools = await serve(files=FILES)
    assert await tools.text("read", target="a.txt") == FILES["a.txt"]
    shutil.rmtree(tools.root)
    for tool, arguments in (("read", {"target": "a.txt"}), *CHANGES):
        with pytest.raises(OctavoError) as caught:
            await tools(tool, **arguments)
        assert str(tools.root) not in str(caught.value)
    assert not tools.root.exists()


@pytest.mark.seed("F12")
async def test_a_root_that_is_made_again_is_served_as_it_is_now(serve: Any) -> None:
    """Until that is noticed it is unavailable, and nothing is written to the folder that is gone."""
    tools = await serve(files=FILES)
    shutil.rmtree(tools.root)
    tools.put("a.txt", "again\n")
    with anyio.fail_after(30):
        while True:
            try:
                assert await tools.text("read", target="a.txt") == "again\n"
                break
            except OctavoError:
                await anyio.lowlevel.checkpoint()
        await tools("write", target="new.txt", content="x")
    assert sorted(os.listdir(tools.root)) == ["a.txt", "new.txt"]
