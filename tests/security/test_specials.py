"""Things in a root that are no ordinary files: a typed answer at once, and everybody else is served meanwhile."""

import os
import socket
import stat
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import anyio
import pytest

from octavo.core.errors import NotFound, OctavoError, SourceUnavailable, TooLarge
from octavo.core.ref import Ref
from octavo.sources.file import FileRoot, FileSource

pytestmark = pytest.mark.anyio
MB = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "plain.md").write_text("plain\n", encoding="utf-8")
    return tmp_path


@pytest.fixture(params=["openat2", "walk"])
async def source(root: Path, request: pytest.FixtureRequest) -> AsyncIterator[FileSource]:
    confinement: Literal["openat2", "walk"] = request.param
    async with FileSource([FileRoot(root)], secret=b"s", confinement=confinement) as source:
        yield source


async def refused(source: FileSource, uri: str, error: type[OctavoError]) -> None:
    """Many at once, between ordinary reads, all of which end."""
    ref, plain = Ref.parse(uri), Ref.parse("file://plain.md")

    async def ask() -> None:
        with pytest.raises(error):
            await source.read(ref, max_bytes=MB)

    async def read() -> None:
        assert (await source.read(plain, max_bytes=MB)).body == "plain\n"

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(ask)
                group.start_soon(read)


async def listed(source: FileSource) -> list[str]:
    with anyio.fail_after(30):
        return [entry.name for entry in (await source.list(Ref("file"), cursor=None, limit=1000)).items]


@pytest.mark.seed("F3", "F7")
async def test_a_fifo_is_absent_and_nobody_waits_for_its_writer(root: Path, source: FileSource) -> None:
    os.mkfifo(root / "pipe.md")
    await refused(source, "file://pipe.md", NotFound)
    assert await listed(source) == ["plain.md"]


@pytest.mark.seed("F3")
async def test_a_socket_is_absent(root: Path, source: FileSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)  # a socket's path may have only 107 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.md")
        await refused(source, "file://socket.md", NotFound)
        assert await listed(source) == ["plain.md"]


@pytest.mark.seed("F3")
async def test_a_device_is_absent(root: Path, source: FileSource) -> None:
    try:
        os.mknod(root / "zero.md", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root can make device nodes")
    await refused(source, "file://zero.md", NotFound)
    assert await listed(source) == ["plain.md"]


@pytest.mark.seed("F3")
async def test_a_link_to_a_device_is_absent(root: Path, source: FileSource) -> None:
    (root / "zero.md").symlink_to("/dev/zero")
    (root / "tty.md").symlink_to("/dev/tty")
    for uri in ("file://zero.md", "file://tty.md"):
        await refused(source, uri, NotFound)


@pytest.mark.seed("F3")
async def test_a_directory_is_no_file(root: Path, source: FileSource) -> None:
    (root / "folder.md").mkdir()
    await refused(source, "file://folder.md", NotFound)
    assert await listed(source) == ["plain.md"]


@pytest.mark.seed("F7")
@pytest.mark.parametrize("size", [400 * MB, 1 << 40], ids=["400 MB", "1 TiB"])
async def test_a_file_over_the_limit_is_refused_by_its_size_without_being_read(
    root: Path, source: FileSource, size: int
) -> None:
    (root / "sparse.md").touch()
    os.truncate(root / "sparse.md", size)
    await refused(source, "file://sparse.md", TooLarge)
    with pytest.raises(TooLarge) as caught:
        await source.read(Ref.parse("file://sparse.md"), max_bytes=MB)
    assert caught.value.data == {"uri": "file://sparse.md", "size": size, "limit": MB}
    assert (await source.stat(Ref.parse("file://sparse.md"))).size == size


@pytest.mark.seed("F3")
async def test_links_in_circles_are_absent(root: Path, source: FileSource) -> None:
    (root / "self.md").symlink_to("self.md")
    (root / "one.md").symlink_to("two.md")
    (root / "two.md").symlink_to("one.md")
    (root / "down").symlink_to(".")
    (root / "deeper.md").symlink_to("down/" * 30 + "deeper.md")
    for uri in ("file://self.md", "file://one.md", "file://deeper.md", "file://self.md/x.md"):
        await refused(source, uri, NotFound)
    assert await listed(source) == ["plain.md"]


@pytest.mark.seed("F3")
async def test_forty_links_are_followed_and_not_one_more(root: Path, source: FileSource) -> None:
    """The kernel's own limit, in both modes."""
    previous = "plain.md"
    for number in range(1, 42):
        (root / f"link{number:02}.md").symlink_to(previous)
        previous = f"link{number:02}.md"
    content = await source.read(Ref.parse("file://link40.md"), max_bytes=MB)
    assert (content.body, str(content.entry.target)) == ("plain\n", "file://plain.md")
    await refused(source, "file://link41.md", NotFound)


@pytest.mark.seed("F3")
async def test_a_link_that_doubles_its_work_at_every_step_ends_soon(root: Path, source: FileSource) -> None:
    """A bomb: each link goes through the one before it a hundred times."""
    (root / "d").mkdir()
    previous = "d"
    for number in range(8):
        (root / f"bomb{number}").symlink_to("/".join([previous, ".."] * 100 + [previous]))
        previous = f"bomb{number}"
    await refused(source, f"file://{previous}/x.md", NotFound)


@pytest.mark.seed("F6")
async def test_a_tree_deeper_than_an_address_can_say_is_listed_as_far_as_one_can(
    root: Path, source: FileSource
) -> None:
    place = os.open(root, os.O_RDONLY)
    for _ in range(60):  # of 100 bytes: 6,000
        os.mkdir("d" * 100, dir_fd=place)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
        os.close(os.open("x.md", os.O_WRONLY | os.O_CREAT, dir_fd=place))
    os.close(place)
    with anyio.fail_after(30):
        page = await source.list(Ref("file"), cursor=None, limit=1000)
    assert len(page.items) == 41  # 40 directories and a name make 4,044 bytes; 41 would make 4,145
    for entry in page.items:
        assert Ref.parse(str(entry.ref)) == entry.ref
        assert await source.stat(entry.ref) == entry


@pytest.mark.seed("F7")
async def test_a_file_that_grows_while_it_is_read_is_whole_or_refused(root: Path, source: FileSource) -> None:
    """One retry, then an error that says to come again; never a part that passes for the whole."""
    line = "0123456789abcde\n"  # divides a page: the kernel shows a write across two of them half done
    path = root / "grows.md"
    path.write_text(line, encoding="utf-8")
    stop = threading.Event()

    def grow() -> None:
        with open(path, "a", encoding="utf-8") as file:
            for _ in range(20_000):
                file.write(line)
                file.flush()
                if stop.is_set():
                    return

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(200):
            try:
                content = await source.read(Ref.parse("file://grows.md"), max_bytes=MB)
            except SourceUnavailable:
                continue
            assert content.size == content.entry.size
            assert content.body == line * (content.size // len(line))
    finally:
        stop.set()
        writer.join()


@pytest.mark.seed("F3")
async def test_a_hard_link_is_refused_where_others_can_write_and_served_elsewhere(tmp_path: Path) -> None:
    """Whoever may write into a root could link a file of another place into it."""
    for mode, expected in ((0o755, ["a.md", "b.md"]), (0o777, []), (0o775, [])):
        root = tmp_path / oct(mode)
        root.mkdir()
        (root / "a.md").write_text("one inode, two names", encoding="utf-8")
        os.link(root / "a.md", root / "b.md")
        root.chmod(mode)
        async with FileSource([FileRoot(root)], secret=b"s") as source:
            assert await listed(source) == expected
            if not expected:
                with pytest.raises(NotFound):
                    await source.read(Ref.parse("file://a.md"), max_bytes=MB)
        async with FileSource([FileRoot(root)], secret=b"s", hard_links="allow") as source:
            assert await listed(source) == ["a.md", "b.md"]
        async with FileSource([FileRoot(root)], secret=b"s", hard_links="refuse") as source:
            assert await listed(source) == []


@pytest.mark.seed("F8")
async def test_a_file_that_the_server_may_not_read_is_forbidden(root: Path, source: FileSource) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (root / "locked.md").write_text("x", encoding="utf-8")
    (root / "locked.md").chmod(0)
    with pytest.raises(OctavoError) as caught:
        await source.read(Ref.parse("file://locked.md"), max_bytes=MB)
    assert (caught.value.reason, caught.value.message) == ("forbidden", "Access denied to resource: file://locked.md")
