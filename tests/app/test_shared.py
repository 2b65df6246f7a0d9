"""What servers on one store share beside it: who has stored a change wakes the others (A4, B3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.services.fixtures import Service, postgres, valkey

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.config.load import Loaded
from octavo.config.problems import ConfigError
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry
from octavo.feed import tail
from octavo.feed.stream import follow

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A4", "B3")]
__all__ = ["postgres", "valkey"]

SOURCES = "sources: {mem: {kind: memory, scheme: mem, resources: {one: {text: one}}}}\n"
SHARED = "shared: {kind: redis, url: '${SHARED}', time: 1s}\n"
LIMIT = 60.0


def loaded(folder: Path, more: str = "", **environ: str) -> Loaded:
    return load_text(SOURCES + more, file=folder / "octavo.yaml", environ=environ)


@asynccontextmanager
async def serving(config: Loaded) -> AsyncIterator[Octavo]:
    async with Octavo(config, lasting=True) as octavo:
        await octavo.feed.followed(["mem"])
        yield octavo


def happen(octavo: Octavo, version: str) -> None:
    ref = Ref("mem", ("n",))
    octavo.feed.publish(Change(kind="updated", ref=ref, at=1.0, new=Entry(ref=ref, name="n", version=version)))


class Follower:
    """Of one server."""

    def __init__(self, octavo: Octavo) -> None:
        self.octavo = octavo
        self.heard: list[str] = []
        self.begun, self.more = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        changes = self.octavo.works.changes
        begin = (await changes.heard(Ref("mem"), 0, marked=True)).next
        self.begun.set()
        async for news in follow(lambda: changes, Ref("mem"), begin, quiet=1_000.0):
            assert not news.gap
            self.heard += [one.new.version for one in news.changes if one.new is not None]
            self.more.set()

    async def until(self, *versions: str) -> None:
        async with asyncio.timeout(LIMIT):
            while len(self.heard) < len(versions):
                self.more.clear()
                await self.more.wait()
        assert self.heard == [*versions]


@asynccontextmanager
async def following(octavo: Octavo) -> AsyncIterator[Follower]:
    follower = Follower(octavo)
    running = asyncio.ensure_future(follower.run())
    try:
        async with asyncio.timeout(LIMIT):
            await follower.begun.wait()
        yield follower
    finally:
        running.cancel()
        await asyncio.wait((running,))


@pytest.mark.parametrize("how", ["woken", "looks"])
async def test_what_one_server_stores_the_followers_of_another_are_told(
    tmp_path: Path, postgres: Service, valkey: Service, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    more = f"store: {{kind: postgres, url: '${{STORE}}', schema: {postgres.schema}}}\n"
    if how == "woken":
        monkeypatch.setattr(tail, "LOOKS", 1_000.0)
        monkeypatch.setattr(tail, "LISTENS", 1_000.0)
        more += SHARED
    config = loaded(tmp_path, more, STORE=postgres.url, SHARED=valkey.url)
    async with serving(config) as one, serving(config) as other, following(other) as follower:
        told: list[str] = []
        async with asyncio.timeout(LIMIT):
            while not follower.heard:  # the first may come before it listens
                told.append(str(len(told)))
                happen(one, told[-1])
                follower.more.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(follower.more.wait(), 0.5)
        await follower.until(*told)
        assert "shared" not in one.remarks() and "shared" not in other.remarks()


@pytest.mark.parametrize("fault", ["nobody there", "wrong password", "never answers"])
async def test_while_it_is_away_everything_goes_on_and_it_is_said(
    tmp_path: Path, valkey: Service, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1_024):
            pass
        writer.close()

    silent = await asyncio.start_unix_server(say_nothing, tmp_path / "s")
    url = {
        "nobody there": f"unix://:hunter2@{tmp_path}/none",
        "wrong password": valkey.url.replace("unix://:", "unix://:hunter2"),
        "never answers": f"unix://:hunter2@{tmp_path}/s",
    }[fault]
    async with silent, serving(loaded(tmp_path, SHARED, SHARED=url)) as octavo, following(octavo) as follower:
        happen(octavo, "1")
        await follower.until("1")
        async with asyncio.timeout(LIMIT):
            while "shared" not in octavo.remarks():
                await asyncio.sleep(0)
        happen(octavo, "2")
        await follower.until("1", "2")
        assert octavo.ready()
    assert "do not wake each other" in caplog.text and "hunter2" not in caplog.text


async def test_without_a_state_folder_nothing_is_shared(tmp_path: Path) -> None:
    from octavo.stores.state import StateDirectory

    config = loaded(tmp_path, SHARED, SHARED="unix:///none")
    async with Octavo(config, state=StateDirectory.in_memory(), lasting=True) as octavo:
        assert await octavo.home.bus() is None


@pytest.mark.parametrize(
    ("section", "key", "said"),
    [
        ("{kind: postgres, url: '${URL}'}", "shared.kind", "redis"),
        ("{kind: redis}", "shared.url", "is required"),
        ("{kind: redis, url: 'redis://:hunter2@cache'}", "shared.url", "only referred to"),
        ("{kind: redis, url: '${URL}'}", "shared.url", "must lead to a Redis or Valkey"),
        ("{kind: redis, url: '${URL}', nmae: x}", "shared.nmae", "unknown key"),
    ],
)
def test_a_mistake_is_named_as_it_stands_in_the_file(tmp_path: Path, section: str, key: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, f"shared: {section}\n", URL="http://hunter2@cache")
    problem = next(one for one in caught.value.problems if one.key == key)
    assert said in problem.message and "hunter2" not in str(problem)
