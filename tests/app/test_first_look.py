"""A catalog that takes long to read: what is said of it until it has been read, and that it is said when it has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.app.asking import ask
from tests.gate.doors import Pipe
from tests.gate.twins import INITIALIZED, frame, initialize
from tests.gate.world import principal

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.errors import NotFound, OctavoError, SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.values import Content, Page
from octavo.sources.file import FileSource

pytestmark = pytest.mark.anyio

CONFIGURATION = """
version: 1
sources:
  store: {kind: file, roots: [./work], expose: false}
  docs: {kind: doc, store: store, path: docs}
  notes: {kind: memory, scheme: note, resources: {hello: {text: "zebra"}}}
limits: {time: 1s}
"""
RULES = """
agents: {a: {}, b: {}}
policy:
  - {who: a, may: [list, read, search, watch, invoke], what: ["doc://*", "note://*", "tool://*"]}
  - {who: b, may: [list, read, search, watch, invoke], what: ["note://*", "tool://*"]}
"""
FILES = 20  # that are read at once, and as many that are not


class Slow:
    """A house over a folder of which half the files are read when the test says so."""

    def __init__(self, house: Octavo) -> None:
        self.house = house
        self.goes_on = asyncio.Event()
        self.waits = asyncio.Event()  # for the first of these files

    async def tool(self, name: str, who: str | None = None, **arguments: Any) -> Any:
        return await ask(self.house, who or "local", "invoke", f"tool://{name}", arguments=arguments)


@pytest.fixture
async def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Any]]:
    (tmp_path / "work/docs").mkdir(parents=True)
    for number in range(FILES):
        for name in ("early", "late"):
            (tmp_path / f"work/docs/{name}-{number:02}.md").write_text(
                f"# {name} {number}\n\nzebra\n", encoding="utf-8"
            )
    read = FileSource.read

    async with AsyncExitStack() as stack:

        async def opened(rules: str = "") -> Slow:
            (tmp_path / "octavo.yaml").write_text(CONFIGURATION + rules, encoding="utf-8")
            made = Slow(Octavo(load(tmp_path / "octavo.yaml", environ={})))

            async def slowly(self: FileSource, ref: Ref, *, max_bytes: int) -> Content:
                if ref.name.startswith("late"):
                    made.waits.set()
                    await made.goes_on.wait()
                return await read(self, ref, max_bytes=max_bytes)

            monkeypatch.setattr(FileSource, "read", slowly)
            await stack.enter_async_context(made.house)
            with anyio.fail_after(30):
                await made.waits.wait()  # nobody has asked for anything
            return made

        yield opened


async def test_it_is_read_from_the_start_on_and_a_list_is_told_to_be_incomplete_and_then_to_have_changed(
    slow: Any,
) -> None:
    one: Slow = await slow()
    async with Pipe(one.house, principal(one.house, "local"), lane=True) as pipe:
        await pipe.ask(initialize("2025-11-25"))
        await pipe.ask(INITIALIZED)
        (answer,) = await pipe.ask(frame("resources/list", {}, 1))
        result = answer.value["result"]
        assert result["_meta"] == {"dev.octavo/unavailable": ["doc"]}
        assert [each["uri"] for each in result["resources"]] == ["note://hello"]
        one.goes_on.set()
        assert [json.loads(line)["method"] for line in await pipe.until(1)] == ["notifications/resources/list_changed"]
        (answer,) = await pipe.ask(frame("resources/list", {}, 2))
        result = answer.value["result"]
        assert len(result["resources"]) == 2 * FILES + 1 and "_meta" not in result


async def test_until_it_is_read_nothing_of_it_is_said_not_to_be_there(slow: Any) -> None:
    one: Slow = await slow()
    for op, uri in (
        ("list", "doc://"),
        ("read", "doc://nowhere"),
        ("stat", "doc://nowhere"),
        ("read", "doc://early-03"),
    ):
        with pytest.raises(SourceUnavailable) as refused:
            await ask(one.house, "local", op, uri)  # type: ignore[arg-type]
        why = str(refused.value.data["why"])
        assert "is being read for the first time, 50% of its files so far; ask again" in why
        assert refused.value.retry_after
    one.goes_on.set()
    await one.house.works.catalogs.read()  # type: ignore[union-attr]
    assert "early 3" in (await ask(one.house, "local", "read", "doc://early-03")).body
    with pytest.raises(NotFound):
        await ask(one.house, "local", "read", "doc://nowhere")
    page: Page[Any] = await ask(one.house, "local", "list", "doc://")
    assert len(page.items) == 2 * FILES


async def test_the_tool_list_says_how_far_it_is(slow: Any) -> None:
    one: Slow = await slow()
    (text, *_) = (await one.tool("list")).content
    assert "note://" in text.text and "not available now: doc://" in text.text and "50% of its files" in text.text


async def test_a_search_says_that_it_knows_nothing_of_it_yet_to_whoever_could_find_something(slow: Any) -> None:
    one: Slow = await slow(RULES)
    with anyio.fail_after(30):
        told: dict[str, Any] = {}
        while not (told.get("unavailable") and told["results"]):  # the index is still looking
            told = (await one.tool("search", "a", query="zebra", kind="ranked")).structured
        assert told["unavailable"] == ["doc"] and told["incomplete"]
        other = await one.tool("search", "b", query="zebra", kind="ranked")
        assert "unavailable" not in other.structured and "doc" not in other.content[0].text
        aside = await one.tool("search", "a", query="zebra", kind="ranked", target="note://")
        assert "unavailable" not in aside.structured


async def test_who_gives_up_waiting_does_not_end_it(slow: Any) -> None:
    one: Slow = await slow()
    for _ in range(3):
        with pytest.raises(OctavoError):
            await ask(one.house, "local", "list", "doc://", timeout=0.01)
    one.goes_on.set()
    await one.house.works.catalogs.read()  # type: ignore[union-attr]
    assert len((await ask(one.house, "local", "list", "doc://")).items) == 2 * FILES
