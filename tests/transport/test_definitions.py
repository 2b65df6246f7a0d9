"""Changes of tools and prompts are told whoever made them, once, and to those alone who see something else than before.

Demands: A4, A11, P1; both eras, over stdio and HTTP.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Pipe, Web, modern_headers
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.gate.world import CONFIG, KEYS, configuration, house, lay_out, principal
from tests.transport.test_credentials import Stream, old_session

from octavo.app import Octavo
from octavo.app.configuration import load, load_text
from octavo.app.follow import follow_file
from octavo.config.load import Loaded
from octavo.core.tools import Hints, ToolInfo
from octavo.tools.registry import Tool

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A4")]

TOOLS, PROMPTS = "notifications/tools/list_changed", "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
LISTS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
LIMIT = 30.0
GREET = 'def greet(who: str) -> str:\n    """Greets."""\n    return who\n'
DOORS = [(door, era) for door in ("stdio", "http") for era in ("modern", "2025-11-25")]
every_door = pytest.mark.parametrize(("door", "era"), DOORS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of its own for each test: files are changed here."""
    return lay_out(tmp_path)


class Listener:
    """What one client hears of lists, by whatever door."""

    def __init__(self, hears: Callable[[], AsyncIterator[list[str]]]) -> None:
        self._hears = hears()
        self._heard: list[str] = []

    async def until(self, method: str) -> list[str]:
        """The methods of the notifications up to that one."""
        async with asyncio.timeout(LIMIT):
            while method not in self._heard:
                self._heard += await anext(self._hears)
        at = self._heard.index(method) + 1
        told, self._heard = self._heard[:at], self._heard[at:]
        return told


def methods(lines: list[bytes]) -> list[str]:
    return [one["method"] for one in map(json.loads, lines) if one.get("method", "").endswith("list_changed")]


@asynccontextmanager
async def stdio(octavo: Octavo, era: str, who: str) -> AsyncIterator[Listener]:
    async with Pipe(octavo, principal(octavo, who), lane=True) as pipe:
        if era == "modern":
            await pipe.write(frame("subscriptions/listen", {"notifications": LISTS, "_meta": META}, 9) + b"\n")
            await pipe.until(1)
        else:
            await pipe.ask(initialize(era))
            await pipe.ask(INITIALIZED)

        async def hears() -> AsyncIterator[list[str]]:
            while True:
                yield methods(await pipe.until(1))

        yield Listener(hears)


@asynccontextmanager
async def http(octavo: Octavo, era: str, who: str) -> AsyncIterator[Listener]:
    key = KEYS[f"{who.upper()}_KEY"]
    async with Web(octavo, lane=True) as web:
        if era == "modern":
            body: dict[str, Any] = {
                "jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen",
                "params": {"notifications": LISTS, "_meta": META},
            }  # fmt: skip
            stream = Stream(web, modern_headers(body, key), json.dumps(body).encode())
            await stream.begun("acknowledged")
        else:
            stream = Stream(web, await old_session(web, key), method="GET")
            await stream.begun()

        async def hears() -> AsyncIterator[list[str]]:
            seen = 0
            while True:
                while len(stream.sent) == seen:
                    await asyncio.sleep(0)
                text = b"".join(message.get("body", b"") for message in stream.sent[seen:])
                seen = len(stream.sent)
                yield methods([line[6:] for line in text.splitlines() if line.startswith(b"data: {")])

        yield Listener(hears)
        web.hub.close()
        stream.task.cancel()
        await asyncio.wait({stream.task})


@asynccontextmanager
async def listening(octavo: Octavo, door: str, era: str, who: str = "brand") -> AsyncIterator[Listener]:
    async with (stdio if door == "stdio" else http)(octavo, era, who) as listener:
        yield listener


def tool(name: str, description: str = "Does something.") -> Tool:
    async def does(ctx: Any, arguments: Any) -> str:
        return "done"

    hints = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
    return Tool(ToolInfo(name=name, description=description, input_schema={"type": "object"}, hints=hints), does)


def changed(folder: Path, old: str, new: str) -> Loaded:
    assert old in CONFIG
    return load_text(CONFIG.replace("RATE", "off").replace(old, new), file=folder / "octavo.yaml", environ=KEYS)


NO_PLUGIN = ("plugins: [{path: ./plugin.py}]", "")
NO_SHOW = ('  - {who: "*", may: "*", what: "tool://secret", effect: deny}',
           '  - {who: "*", may: "*", what: "tool://secret", effect: deny}\n'
           '  - {who: brand, may: invoke, what: "tool://show", effect: deny}')  # fmt: skip


@every_door
async def test_whatever_is_registered_while_it_runs_is_told_and_a_burst_is_told_once(
    folder: Path, door: str, era: str
) -> None:
    """Whoever changes the registry has nothing else to do: not even to know that somebody listens."""
    async with house(configuration(folder)) as octavo, listening(octavo, door, era) as client:
        for number in range(20):
            octavo.works.tools.register(tool(f"late_{number}"))
        assert await client.until(TOOLS) == [TOOLS]
        await octavo.reload(changed(folder, *NO_PLUGIN))  # which takes them away
        told = await client.until(PROMPTS)
        told += [] if TOOLS in told else await client.until(TOOLS)
        assert sorted(told) == sorted([RESOURCES, TOOLS, PROMPTS]), "once, after 20 that were told once"


@every_door
async def test_a_reload_tells_of_tools_only_where_there_are_others(folder: Path, door: str, era: str) -> None:
    async with house(configuration(folder)) as octavo, listening(octavo, door, era) as client:
        await octavo.reload(configuration(folder, rule='{who: brand, may: [watch], what: "mem://one", effect: deny}'))
        assert await client.until(RESOURCES) == [RESOURCES]
        await octavo.reload(changed(folder, *NO_SHOW))
        assert await client.until(TOOLS) == [RESOURCES, TOOLS], "a rule took one of them away"


@every_door
async def test_nobody_is_told_of_tools_that_he_cannot_see(folder: Path, door: str, era: str) -> None:
    hidden = ('what: "tool://secret", effect: deny}', 'what: ["tool://secret", "tool://hidden*"], effect: deny}')
    async with house(changed(folder, *hidden)) as octavo, listening(octavo, door, era) as client:
        tools = octavo.works.tools
        tools.register(tool("hidden_one"))
        await asyncio.sleep(0)
        assert isinstance(octavo.works.tools.tool("hidden_one"), ToolInfo)
        await octavo.reload(changed(folder, *hidden))  # without it again, and else the same: nor of resources
        octavo.works.tools.register(tool("hidden_two"))
        octavo.works.tools.register(tool("seen"))
        assert await client.until(TOOLS) == [TOOLS], "once, for the one that it sees"


@pytest.mark.parametrize("era", ["modern", "2025-11-25"])
async def test_each_is_told_of_what_he_sees(folder: Path, era: str) -> None:
    async with (
        house(configuration(folder)) as octavo,
        listening(octavo, "stdio", era, "brand") as brand,
        listening(octavo, "http", era, "hr") as hr,
    ):
        await octavo.reload(changed(folder, *NO_SHOW))  # hr sees what it saw
        assert await brand.until(TOOLS) == [RESOURCES, TOOLS]
        octavo.works.tools.register(tool("for_everybody"))
        assert await brand.until(TOOLS) == [TOOLS]
        assert await hr.until(TOOLS) == [RESOURCES, TOOLS]


@every_door
async def test_a_tool_that_says_something_else_is_told_and_one_that_came_and_went_is_not(
    folder: Path, door: str, era: str
) -> None:
    async with house(configuration(folder)) as octavo, listening(octavo, door, era) as client:
        tools = octavo.works.tools
        before = tools.names
        tools.register(tool("short"))
        tools.keep_only(before)
        plugin = folder / "plugin.py"
        plugin.write_text(
            plugin.read_text(encoding="utf-8").replace('description="Adds."', 'description="Adds one."'),
            encoding="utf-8",
        )
        await octavo.reload(configuration(folder))
        assert await client.until(TOOLS) == [TOOLS]


@every_door
async def test_a_tool_of_a_folder_that_is_saved_is_told(
    folder: Path, door: str, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    (folder / "tools").mkdir()
    file = folder / "octavo.yaml"
    file.write_text(CONFIG.replace("RATE", "off") + "tools: {dirs: [./tools]}\n", encoding="utf-8")
    async with house(load(file)) as octavo, listening(octavo, door, era) as client:
        wake = asyncio.Event()
        following = asyncio.ensure_future(follow_file(octavo, file, wake=wake))
        await asyncio.sleep(0)  # it has looked at what is there
        code = f"from octavo.tools import tool\n\n\n@tool()\n{GREET}"
        (folder / "tools" / "greet.py").write_text(code, encoding="utf-8")
        try:
            assert await client.until(TOOLS) == [TOOLS], "of resources nothing: none came or went"
        finally:
            following.cancel()
        assert "greet" in octavo.works.tools.names


async def test_of_prompts_it_is_the_same(folder: Path) -> None:
    async with house(configuration(folder)) as octavo, listening(octavo, "stdio", "2025-11-25") as client:
        file = folder / "prompts" / "summarise.json"
        file.write_text(file.read_text(encoding="utf-8").replace("Read {{uri}}", "Look at {{uri}}"), encoding="utf-8")
        assert await octavo.works.prompts.refresh() == []
        assert await client.until(PROMPTS) == [PROMPTS]
        deny = '{who: brand, may: render, what: "prompt://summarise", effect: deny}'
        await octavo.reload(configuration(folder, rule=deny))
        assert await client.until(PROMPTS) == [RESOURCES, PROMPTS]
        file.unlink()
        assert await octavo.works.prompts.refresh() == []  # of which it hears nothing
        octavo.works.tools.register(tool("late"))
        assert await client.until(TOOLS) == [TOOLS]
