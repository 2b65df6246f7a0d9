"""The processes: limited, killed when they must be, replaced, and never left behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.sources.documents import build
from tests.sources.documents.conftest import ended, workers
from tests.sources.documents.samples import SAMPLES

from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable, Timeout, TooLarge
from octavo.sources._shared.documents.converter import Converter
from octavo.sources._shared.documents.model import ConversionLimits, ConvertedDocument

pytestmark = pytest.mark.anyio

MIME, RAW, _ = SAMPLES["docx"]
LONG = build.docx("".join(build.paragraph(os.urandom(8).hex()) for _ in range(60_000)))


async def frozen(converter: Converter) -> int:
    """The one idle worker of the converter, which will take the next request and never answer."""
    await converter.convert(RAW, MIME)
    (pid,) = workers()
    os.kill(pid, signal.SIGSTOP)
    return pid


async def reading() -> int:
    """The one worker, once it may open no more files: it has begun to read a document."""
    async with asyncio.timeout(10):
        while True:
            for pid in workers():
                if "Max open files            4 " in (Path("/proc") / str(pid) / "limits").read_text(encoding="ascii"):
                    return pid
            await asyncio.sleep(0)


async def begun(converter: Converter) -> asyncio.Task[ConvertedDocument]:
    task = asyncio.create_task(converter.convert(RAW, MIME))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def test_no_process_runs_before_it_is_needed_and_one_serves_many(converter: Converter) -> None:
    assert workers() == []
    await converter.convert(RAW, MIME)
    first = workers()
    await converter.convert(RAW, MIME)
    assert workers() == first and len(first) == 1


async def test_a_worker_has_no_environment_no_terminal_and_little_of_everything() -> None:
    async with Converter(ConversionLimits(memory_bytes=300 << 20)) as converter:
        await converter.convert(RAW, MIME)
        (pid,) = workers()
        process = Path(f"/proc/{pid}")
        limits = {
            line[:26].strip(): line[26:].split()[:2]
            for line in (process / "limits").read_text(encoding="ascii").splitlines()
        }
        names = [each.partition(b"=")[0] for each in (process / "environ").read_bytes().split(b"\0") if each]
        assert set(names) <= {b"PYTHONPATH", b"LC_CTYPE"}  # the interpreter sets the second for itself
        assert os.getsid(pid) == pid
        assert limits["Max address space"] == [str(300 << 20)] * 2
        assert limits["Max file size"] == ["0", "0"]
        assert limits["Max core file size"] == ["0", "0"]
        assert limits["Max open files"] == ["32", "32"]
        assert limits["Max cpu time"][0] != "unlimited"
        assert {*map(int, os.listdir(process / "fd"))} <= {0, 1, 2, 3}
        assert (process / "cwd").readlink() == Path("/")


async def test_no_file_can_be_opened_while_a_document_is_read() -> None:
    code = (
        "from octavo.sources._shared.documents import worker\n"
        "from octavo.sources._shared.documents.model import ConversionLimits\n"
        "import socket\n"
        "with worker._sealed(ConversionLimits(), 2):\n"
        "    for act in (lambda: open('/dev/null', 'rb'), socket.socket):\n"
        "        try:\n"
        "            act()\n"
        "        except OSError as error:\n"
        "            print(error.errno)\n"
        "open('/dev/null', 'rb').close()\n"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-c", code, env={"PYTHONPATH": path}, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert (process.returncode, said.split()) == (0, [b"24", b"24"])


async def test_a_worker_that_takes_too_long_is_killed_and_replaced() -> None:
    async with Converter(ConversionLimits(seconds=0.2)) as converter:
        pid = await frozen(converter)
        with pytest.raises(Timeout, match=r"within 0\.2 s; ask for a part"):
            await converter.convert(RAW, MIME)
        await ended(pid)
    async with Converter() as converter:
        assert await converter.convert(RAW, MIME)


async def test_work_without_end_is_killed_while_it_works() -> None:
    async with Converter(ConversionLimits(seconds=0.05)) as converter:
        with pytest.raises(Timeout):
            await converter.convert(LONG, MIME)


async def test_work_that_needs_too_much_memory_is_refused_and_the_next_is_done() -> None:
    async with Converter(ConversionLimits(memory_bytes=40 << 20)) as converter:
        with pytest.raises(TooLarge, match="memory"):
            await converter.convert(LONG, MIME)
        assert await converter.convert(RAW, MIME)


async def test_a_worker_killed_while_it_works_is_a_typed_error_and_replaced(converter: Converter) -> None:
    task = asyncio.create_task(converter.convert(LONG, MIME))
    pid = await reading()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(InvalidParams, match="its reader gave up"):
        await task
    assert (await converter.convert(RAW, MIME)).parts == ("예산 보고",)
    assert pid not in workers()


async def test_a_worker_killed_after_others_were_served_is_replaced_at_once(converter: Converter) -> None:
    """It may have died while it idled; whoever comes next is not told of it."""
    pid = await frozen(converter)
    task = await begun(converter)
    os.kill(pid, signal.SIGKILL)
    assert (await task).parts == ("예산 보고",)


async def test_workers_killed_at_any_moment_leave_the_converter_whole(converter: Converter) -> None:
    for _ in range(5):
        tasks = [asyncio.create_task(converter.convert(RAW, MIME)) for _ in range(6)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for pid in workers():
            os.kill(pid, signal.SIGKILL)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, ConvertedDocument | OctavoError) for each in results), results
    assert await converter.convert(RAW, MIME)


async def test_whoever_no_longer_waits_ends_the_work(converter: Converter) -> None:
    pid = await frozen(converter)
    task = await begun(converter)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended(pid)
    assert await converter.convert(RAW, MIME)


async def test_a_worker_that_was_used_up_is_replaced_before_anybody_asks() -> None:
    async with Converter(workers=1) as converter:
        pid = await frozen(converter)
        task = await begun(converter)
        task.cancel()
        await ended(pid)
        async with asyncio.timeout(30):
            while len(idle := workers()) != 1 or pid in idle:
                await asyncio.sleep(0)
        await converter.convert(RAW, MIME)
        assert workers() == idle


async def test_a_place_is_given_to_the_next_one_with_its_new_worker() -> None:
    async with Converter(workers=1) as converter:
        pid = await frozen(converter)
        task = await begun(converter)
        task.cancel()
        await converter.convert(RAW, MIME)  # has waited for the worker that is there now, and started none
        await ended(pid)
        assert len(workers()) == 1


async def test_two_of_three_work_at_once_for_one_caller_and_never_more() -> None:
    async with Converter(workers=3) as converter:
        pid = await frozen(converter)
        stuck = await begun(converter)
        results = await asyncio.gather(*(converter.convert(RAW, MIME) for _ in range(8)))
        assert all(result == results[0] for result in results)
        assert len(workers()) == 2 and not stuck.done()
        os.kill(pid, signal.SIGCONT)
        assert await stuck == results[0]


async def test_workers_that_idle_end() -> None:
    async with Converter(idle_seconds=0.0) as converter:
        await converter.convert(RAW, MIME)
        for pid in workers():
            await ended(pid)
        assert await converter.convert(RAW, MIME)


async def test_closing_kills_what_works_and_leaves_nothing() -> None:
    async with Converter(workers=2) as converter:
        await frozen(converter)
        running = [await begun(converter) for _ in range(4)]
    assert workers() == []
    for result in await asyncio.gather(*running, return_exceptions=True):
        assert isinstance(result, ConvertedDocument | OctavoError)
    with pytest.raises(SourceUnavailable, match="closed"):
        await converter.convert(RAW, MIME)
    await converter.close()


async def test_closing_waits_for_nobody_who_is_still_reading_the_file() -> None:
    """A disk may hang for as long as it likes."""
    converter = Converter()
    async with converter.turn() as turn:
        async with asyncio.timeout(30):
            await converter.close()
        with pytest.raises(SourceUnavailable, match="closed"):
            await turn.convert(RAW, MIME)


async def test_a_worker_imports_only_what_it_needs(converter: Converter) -> None:
    """What it has mapped shows which libraries were loaded."""
    await converter.convert(RAW, MIME)
    (pid,) = workers()
    mapped = (Path("/proc") / str(pid) / "maps").read_text(encoding="utf-8")
    assert not [name for name in ("msgspec", "pdfium", "calamine", "PIL", "_ssl", "_asyncio") if name in mapped]


@pytest.mark.parametrize(
    ("mime", "extra"),
    [(build.PDF, "pdf"), (build.XLS, "sheets"), ("image/png", "images")],
)
async def test_a_missing_extra_is_one_sentence(mime: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = ("pypdfium2", "python_calamine", "PIL")
    monkeypatch.setattr(
        sys, "path", [entry for entry in sys.path if not any((Path(entry) / each).exists() for each in packages)]
    )
    async with Converter() as converter:
        with pytest.raises(InvalidParams, match=rf"install Octavo with its extra {extra}$"):
            if extra == "images":
                await converter.shrink(b"x", mime, max_pixels=1, max_bytes=1)
            else:
                await converter.convert(b"x", mime)
