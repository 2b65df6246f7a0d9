"""What a tool says of itself, checked against what it does.

from octavo.testing import ToolSuite

class TestCountWords(ToolSuite):
    RESOURCES = {"file://a.md": "one two"}
    CASES = [{"uri": "file://a.md"}]

    @pytest.fixture
    def tool(self):
        return count_words          # the function, or an octavo.tools.registry.Tool
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import pytest

from octavo.core.arguments import DeleteArguments, EditArguments, OwnArguments, WriteArguments
from octavo.core.errors import InvalidParams, NotFound, OctavoError
from octavo.core.operations import CHANGING
from octavo.core.ref import Ref
from octavo.core.sizes import GIB
from octavo.core.tools import ToolResult
from octavo.core.values import Call, Content, Edited, Principal, Trail
from octavo.sources.memory import MemoryEntry, MemorySource
from octavo.text.revise import revise
from octavo.tools.registry import Tool, ToolRegistry

# Events that the interpreter tells of itself, and what they mean here.
_CHANGES: Final = {
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
    "shutil.rmtree", "shutil.move", "shutil.copyfile",
}  # fmt: skip
_STARTS: Final = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"}
_CONNECTS: Final = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"}
_WRITING: Final = frozenset("wax+")


class World:
    """Resources in memory, of any scheme, and a note of everything that was asked of them."""

    def __init__(self, resources: Mapping[str, str]) -> None:
        self.asked: list[Call] = []
        self._sources: dict[str, MemorySource] = {}
        by_scheme: dict[str, dict[str, MemoryEntry]] = {"file": {}}
        for uri, text in resources.items():
            ref = Ref.parse(uri)
            by_scheme.setdefault(ref.scheme, {})[ref.path] = MemoryEntry(body=text)
        for scheme, entries in by_scheme.items():
            self._sources[scheme] = MemorySource(scheme, entries, writable=True)

    async def ask(self, call: Call) -> Any:
        self.asked.append(call)
        if call.fault is not None:
            raise call.fault
        source = self._sources.get(call.ref.scheme)
        if source is None:
            raise NotFound(f"Resource not found: {call.ref}", uri=str(call.ref))
        match call.op:
            case "read":
                return await source.read(call.ref, max_bytes=call.max_bytes)
            case "stat":
                return await source.stat(call.ref)
            case "list":
                return await source.list(call.ref, cursor=call.cursor, limit=call.limit)
            case "write":
                asked = call.given(WriteArguments)
                return await source.write(call.ref, asked.body, if_match=asked.if_match, mode=asked.mode)
            case "delete":
                return await source.delete(call.ref, if_match=call.given(DeleteArguments).if_match)
            case "edit":
                return await self._edited(source, call)
            case _:
                raise InvalidParams(f"The test world cannot {call.op}: test this tool against a server of its own")

    async def _edited(self, source: MemorySource, call: Call) -> Edited:
        content = await source.read(call.ref, max_bytes=GIB)
        asked = call.given(EditArguments)
        made, entry = revise(str(content.body), asked.revision), content.entry
        if not asked.dry_run:
            entry = await source.write(call.ref, made.text, if_match=asked.if_match)
        return Edited(entry, made.report, made.added, made.removed, made.places)

    async def state(self) -> dict[str, str | bytes]:
        found: dict[str, str | bytes] = {}
        for source in self._sources.values():
            page = await source.list(Ref(source.scheme), cursor=None, limit=10_000)
            for entry in page.items:
                content: Content = await source.read(entry.ref, max_bytes=GIB)
                found[str(entry.ref)] = content.body
        return found


class ToolSuite:
    """Override the fixture `tool`, and CASES: arguments that the tool must answer."""

    pytestmark = pytest.mark.anyio

    #: Address -> text: what the tool finds.
    RESOURCES: ClassVar[Mapping[str, str]] = {}
    #: Arguments of calls that must succeed. A tool that is never called proves nothing.
    CASES: ClassVar[Sequence[Mapping[str, Any]]] = ()

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def tool(self) -> Tool | Callable[..., Any]:
        raise NotImplementedError("override the fixture `tool`")

    @pytest.fixture
    def made(self, tool: Tool | Callable[..., Any]) -> Tool:
        if isinstance(tool, Tool):
            return tool
        from octavo.tools.functions import tool_of

        return tool_of(tool)

    def test_it_can_be_registered(self, made: Tool) -> None:
        registry = ToolRegistry()
        registry.register(made)
        assert registry.names == (made.info.name,)

    def test_its_hints_do_not_contradict_each_other(self, made: Tool) -> None:
        hints = made.info.hints
        assert not (hints.read_only and hints.destructive), "what only reads destroys nothing"
        assert not hints.read_only or hints.idempotent, "what only reads can be asked twice"

    def test_it_is_described_for_a_model(self, made: Tool) -> None:
        properties: Mapping[str, Any] = made.info.input_schema.get("properties", {})
        mute = [name for name, shape in properties.items() if not {"description", "enum", "$ref"} & {*shape}]
        assert mute == [], "arguments that nothing is said of"

    async def test_every_case_is_answered_as_announced(self, made: Tool) -> None:
        assert self.CASES, "give CASES: arguments that the tool must answer"
        for case in self.CASES:
            result = await self._call(made, World(self.RESOURCES), case)
            assert not result.is_error, (case, result.content)

    async def test_an_argument_that_it_does_not_know_is_refused(self, made: Tool) -> None:
        with pytest.raises(InvalidParams):
            await self._call(made, World(self.RESOURCES), {**(self.CASES[0] if self.CASES else {}), "of_no_tool": 1})

    async def test_a_read_only_tool_changes_nothing(self, made: Tool) -> None:
        if not made.info.hints.read_only:
            pytest.skip("it says that it may change something")
        for case in self.CASES:
            world = World(self.RESOURCES)
            before = await world.state()
            with _events() as seen:
                await self._call(made, world, case)
            assert [call.op for call in world.asked if call.op in CHANGING] == [], case
            assert await world.state() == before, case
            assert [event for event in seen if event[0] in ("changes", "starts")] == [], case

    async def test_what_is_not_destructive_keeps_what_was_there(self, made: Tool) -> None:
        if made.info.hints.destructive:
            pytest.skip("it says that it may destroy something")
        for case in self.CASES:
            world = World(self.RESOURCES)
            before = await world.state()
            await self._call(made, world, case)
            after = await world.state()
            kept = {uri: str(after.get(uri, ""))[: len(body)] for uri, body in before.items()}
            assert kept == before, case

    async def test_what_is_idempotent_changes_nothing_the_second_time(self, made: Tool) -> None:
        if not made.info.hints.idempotent:
            pytest.skip("it says that twice is more than once")
        for case in self.CASES:
            world = World(self.RESOURCES)
            await self._call(made, world, case)
            once = await world.state()
            try:
                await self._call(made, world, case)
            except OctavoError:
                pass  # a refusal changes nothing either
            assert await world.state() == once, case

    async def test_a_tool_of_a_closed_world_connects_to_nothing(self, made: Tool) -> None:
        if made.info.hints.open_world:
            pytest.skip("it says that it may touch the world outside")
        for case in self.CASES:
            with _events() as seen:
                await self._call(made, World(self.RESOURCES), case)
            assert [event for event in seen if event[0] in ("connects", "starts")] == [], case

    async def _call(self, tool: Tool, world: World, case: Mapping[str, Any]) -> ToolResult:
        registry = ToolRegistry()
        registry.register(tool)
        registry.bind(world.ask)
        call = Call(
            "invoke",
            Ref.of("tool", (tool.info.name,)),
            Principal("tester"),
            Trail(),
            arguments=OwnArguments(dict(case)),
        )
        result: ToolResult = await registry.invoke(call)
        return result


_listening: list[list[tuple[str, str]]] = []
_hooked: list[bool] = []


@contextmanager
def _events() -> Iterator[list[tuple[str, str]]]:
    """What the code of the process does meanwhile, past the context: files written, programs, connections."""
    if not _hooked:  # a hook stays for ever, so there is one
        sys.addaudithook(_hear)
        _hooked.append(True)
    seen: list[tuple[str, str]] = []
    _listening.append(seen)
    try:
        yield seen
    finally:
        _listening.remove(seen)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if not _listening:
        return
    kind = ""
    if event == "open" and isinstance(arguments[1], str) and _WRITING & {*arguments[1]}:
        kind = "" if "__pycache__" in str(arguments[0]) else "changes"
    elif event in _CHANGES:
        kind = "changes"
    elif event in _STARTS:
        kind = "starts"
    elif event in _CONNECTS:
        kind = "connects"
    if kind:
        for seen in _listening:
            seen.append((kind, f"{event} {str(arguments[0])[:200] if arguments else ''}"))
