"""Reading: what a file is, what its bytes mean, and when an answer may be used again."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import NotFound, TooLarge
from octavo.core.ref import Ref
from octavo.core.values import Content
from octavo.sources.file import FileSource

pytestmark = pytest.mark.anyio
MB = 1 << 20


async def read(source: FileSource, uri: str) -> Content:
    return await source.read(Ref.parse(uri), max_bytes=MB)


@pytest.mark.seed("F7")
@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("a.yaml", "application/yaml"), ("a.yml", "application/yaml"), ("a.ts", "text/typescript"),
        ("a.md", "text/markdown"),
        ("a.json", "application/json"), ("a.PY", "text/x-python"), ("a.csv", "text/csv"), ("a.svg", "image/svg+xml"),
        ("a.png", "image/png"), ("a.pdf", "application/pdf"), ("README", "text/plain"), ("Makefile", "text/x-makefile"),
        ("Dockerfile", "text/x-dockerfile"), ("a.hwp", "application/x-hwp"), ("a.unknown", "application/octet-stream"),
    ],
)  # fmt: skip
async def test_the_media_type_comes_from_our_own_table(write: Any, opened: Any, name: str, mime: str) -> None:
    """The operating system's table calls TypeScript a video."""
    write(name)
    source = await opened(extensions=["*"])
    assert (await source.stat(Ref.parse(f"file://{name}"))).mime_type == mime


@pytest.mark.seed("F7")
@pytest.mark.parametrize(
    ("name", "raw", "body"),
    [
        ("utf8.md", "안녕".encode(), "안녕"),
        ("bom.md", "안녕".encode("utf-8-sig"), "안녕"),
        ("utf16.md", "안녕".encode("utf-16"), "안녕"),
        ("utf32.md", "안녕".encode("utf-32"), "안녕"),
        ("cp949.md", "똠방각하 안녕".encode("cp949"), "똠방각하 안녕"),
        ("cp949.bin", "똠방각하".encode("cp949"), "똠방각하".encode("cp949")),
        ("nul.md", b"a\x00b", b"a\x00b"),
        ("broken.md", b"\xff\xff\x80", b"\xff\xff\x80"),
        ("unknown.xyz", b"plain", "plain"),
        ("picture.png", b"plain", b"plain"),
        ("empty.md", b"", ""),
    ],
)  # fmt: skip
async def test_bytes_are_text_where_that_is_sure(
    root: Path, opened: Any, name: str, raw: bytes, body: str | bytes
) -> None:
    (root / name).write_bytes(raw)
    source = await opened(extensions=["*"])
    content = await read(source, f"file://{name}")
    assert (content.body, content.entry.size) == (body, len(raw))


@pytest.mark.seed("F7")
@pytest.mark.parametrize("size", [0, 1, 4096, 65_536, 65_537, 900_000])
async def test_small_and_large_files_are_read_whole(write: Any, opened: Any, size: int) -> None:
    write("a.md", "x" * size)
    source = await opened()
    content = await read(source, "file://a.md")
    assert (content.body, content.entry) == ("x" * size, await source.stat(Ref.parse("file://a.md")))


async def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_refused(write: Any, opened: Any) -> None:
    write("a.md", "12345")
    source, ref = await opened(), Ref.parse("file://a.md")
    assert (await source.read(ref, max_bytes=5)).body == "12345"
    with pytest.raises(TooLarge) as caught:
        await source.read(ref, max_bytes=4)
    assert "5 bytes" in caught.value.message and "limit is 4" in caught.value.message and "read" in caught.value.message
    assert caught.value.data == {"uri": "file://a.md", "size": 5, "limit": 4}


async def test_a_small_file_in_memory_is_read_without_a_task_or_a_turn_of_the_loop(write: Any, opened: Any) -> None:
    """The transport's fast lane drives a read by hand."""
    write("a.md", "text")
    source, ref = await opened(), Ref.parse("file://a.md")
    await source.read(ref, max_bytes=MB)  # now the kernel has it in memory
    steps = source.read(ref, max_bytes=MB)
    with pytest.raises(StopIteration) as caught:
        steps.send(None)
    assert caught.value.value.body == "text"


@pytest.mark.seed("F3")
async def test_a_link_inside_the_root_works_and_names_its_target(
    root: Path, write: Any, opened: Any, listing: Any
) -> None:
    """Policy looks at the target too, else `brand/x.md -> ../hr/pay.md` defeats a rule on `hr`."""
    write("hr/pay.md", "pay")
    (root / "brand").mkdir()
    (root / "brand" / "x.md").symlink_to("../hr/pay.md")
    (root / "people").symlink_to("hr")
    source = await opened()
    for uri in ("file://brand/x.md", "file://people/pay.md"):
        content = await read(source, uri)
        assert (content.body, str(content.entry.ref), str(content.entry.target)) == ("pay", uri, "file://hr/pay.md")
        assert content.entry == await source.stat(Ref.parse(uri))
    assert (await source.stat(Ref.parse("file://hr/pay.md"))).target is None
    assert await listing(source) == ["file://brand/x.md", "file://hr/pay.md"]
    assert await listing(source, "file://people") == []
    refusing = await opened(symlinks="refuse")
    assert await listing(refusing) == ["file://hr/pay.md"]
    for uri in ("file://brand/x.md", "file://people/pay.md"):
        with pytest.raises(NotFound):
            await read(refusing, uri)


@pytest.mark.seed("F8")
async def test_a_link_that_leads_outside_is_absent_even_if_it_comes_back(root: Path, write: Any, opened: Any) -> None:
    write("a.md")
    (root / "absolute.md").symlink_to(root / "a.md")
    (root / "around.md").symlink_to("../root/a.md")
    source = await opened()
    for uri in ("file://absolute.md", "file://around.md"):
        with pytest.raises(NotFound) as caught:
            await read(source, uri)
        assert (caught.value.message, caught.value.data) == (f"Resource not found: {uri}", {"uri": uri})


async def test_the_version_changes_with_the_content_and_reveals_nothing(write: Any, opened: Any, root: Path) -> None:
    write("a.md", "one")
    source, other = await opened(), await opened(secret=b"another")
    ref = Ref.parse("file://a.md")
    seen = [await read(source, "file://a.md")]
    assert seen[0].entry.version != (await other.stat(ref)).version
    assert seen[0].etag != (await read(other, "file://a.md")).etag
    write("a.md", "two")
    seen.append(await read(source, "file://a.md"))
    write("new.md", "one").rename(root / "a.md")
    seen.append(await read(source, "file://a.md"))
    assert len({content.entry.version for content in seen}) == 3
    assert [content.etag == seen[0].etag for content in seen] == [True, False, True]
    assert "secret" not in repr(source)


async def test_a_stamp_is_the_same_until_the_file_changes(write: Any, root: Path, opened: Any) -> None:
    write("a.md", "one")
    (root / "link.md").symlink_to("a.md")
    source, ref = await opened(), Ref.parse("file://a.md")
    os.utime(root / "a.md", (1, 1))
    await source.stat(ref)
    first = source.stamp(ref, "read")
    if first is None:
        pytest.skip("a coarse clock: the file was changed within this tick")
    assert first == source.stamp(ref, "stat") == source.stamp(ref, "read")
    write("a.md", "changed")
    await source.stat(ref)
    assert source.stamp(ref, "read") != first
    (root / "a.md").unlink()
    for uri in ("file://a.md", "file://link.md", "file://x.exe", "file:///etc/passwd", "file://a.md?x=1", "other://a"):
        assert source.stamp(Ref.parse(uri), "read") is None
    assert source.stamp(Ref("file"), "list") is None, "nobody watches"


async def test_cancelled_listings_end_their_threads_and_closing_waits_for_them(write: Any, opened: Any) -> None:
    for number in range(300):
        write(f"d{number}/a.md")
    source = await opened()
    tasks = [asyncio.ensure_future(source.list(Ref("file"), cursor=None, limit=1000)) for _ in range(50)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks[::2]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) or len(result.items) == 300 for result in done)


async def test_no_descriptor_is_left_open(write: Any, root: Path, opened: Any) -> None:
    """Reads, refusals, listings and links: what is opened is closed."""
    write("d/a.md"), write("한글/나.md")
    (root / "link.md").symlink_to("d/a.md")
    (root / "out.md").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe.md")
    source = await opened()

    async def use() -> None:
        for uri in (
            "file://d/a.md",
            "file://link.md",
            "file://out.md",
            "file://pipe.md",
            "file://한글/다.md",
            "file://d.md",
        ):
            for ask in (
                source.stat,
                lambda ref: source.read(ref, max_bytes=1 << 20),
                lambda ref: source.read(ref, max_bytes=1),
            ):
                try:
                    await ask(Ref.parse(uri))
                except (NotFound, TooLarge):
                    pass
            source.stamp(Ref.parse(uri), "read")
        await source.list(Ref("file"), cursor=None, limit=1)

    await use()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        await use()
    assert len(os.listdir("/proc/self/fd")) == before
