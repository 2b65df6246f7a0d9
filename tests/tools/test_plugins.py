"""Plugins: loaded by path or by name, and every failure says the file and the remedy (T10)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from octavo.core.arguments import OwnArguments
from octavo.core.ref import Ref
from octavo.core.tools import Hints, PromptInfo, Text, ToolResult
from octavo.core.values import Call, Principal, Trail
from octavo.tools.plugins import Plugin, PluginError, load_plugin
from octavo.tools.registry import ToolRegistry

pytestmark = pytest.mark.anyio

GREET = """
from octavo.core.tools import Hints, PromptInfo, PromptMessage, PromptResult, Text

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def register(octavo):
    @octavo.tool("greet", description="Says hello.", input_schema=SCHEMA, hints=HINTS, title="Greeting")
    async def greet(ctx, arguments):
        return f"Hello, {arguments['name']} from {ctx.principal.id}!"

    octavo.tool("again", greet, description="The same.", input_schema=SCHEMA, hints=HINTS, timeout=5.0)

    async def opening(ctx, arguments):
        return PromptResult(messages=(PromptMessage("user", Text(f"{ctx.principal.id}: {arguments['topic']}")),))

    octavo.prompt(PromptInfo(name="opening", description="Begins."), opening)
    octavo.source("a source")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "company.py"


@pytest.fixture
def plugin(file: Path) -> Plugin:
    file.write_text(GREET, encoding="utf-8")
    return load_plugin(file)


async def refuse(call: Call) -> Any:
    raise AssertionError("nothing is asked here")


async def test_a_plugin_file_brings_tools_prompts_and_sources(plugin: Plugin) -> None:
    assert plugin.name == "company"
    assert [tool.info.name for tool in plugin.tools] == ["greet", "again"]
    assert (plugin.tools[0].info.title, plugin.tools[1].info.timeout) == ("Greeting", 5.0)
    assert plugin.sources == ["a source"]
    tools = ToolRegistry()
    for tool in plugin.tools:
        tools.register(tool)
    call = Call("invoke", Ref("tool", ("greet",)), Principal("brand"), Trail(), arguments=OwnArguments({"name": "you"}))
    assert await tools.invoke(call) == ToolResult(content=(Text("Hello, you from brand!"),))
    (info, rendering) = plugin.prompts[0]
    assert info == PromptInfo(name="opening", description="Begins.")
    result = await rendering(call._replace(arguments=OwnArguments({"topic": "colours"})), refuse)
    assert result.messages[0].content == Text("brand: colours")


@pytest.mark.parametrize("protocol", [False, True])
def test_only_the_operator_opens_the_wire(file: Path, protocol: bool) -> None:
    file.write_text(GREET, encoding="utf-8")
    assert {tool.protocol for tool in load_plugin(file, protocol=protocol).tools} == {protocol}


def test_a_tool_without_a_schema_takes_no_arguments() -> None:
    plugin = Plugin("p")
    hints = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)

    @plugin.tool("t", description="d", hints=hints)
    async def handler(ctx: Any, arguments: Any) -> str:
        return ""

    assert plugin.tools[0].handler is handler
    assert plugin.tools[0].info.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_plugin_can_be_a_folder_with_modules_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .inner import register as register\n", encoding="utf-8")
    (folder / "inner.py").write_text(GREET, encoding="utf-8")
    assert len(load_plugin(folder).tools) == 2


def test_two_plugins_with_one_file_name_do_not_disturb_each_other(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.py").write_text(f"def register(octavo): octavo.source({name!r})\n", encoding="utf-8")
    assert [load_plugin(tmp_path / name / "same.py").sources for name in ("a", "b")] == [["a"], ["b"]]


def test_a_plugin_can_be_an_installed_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "octavo_test_module.py").write_text(GREET, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert load_plugin("octavo_test_module").name == "octavo_test_module"
    finally:
        sys.modules.pop("octavo_test_module", None)


@pytest.mark.parametrize(
    "text, says",
    [
        ("x = 1\n", "has no function `register(octavo)`: add one"),
        ("register = 1\n", "has no function `register(octavo)`: add one"),
        ("import no_such_module_at_all\n", "imports no_such_module_at_all, which is not installed"),
        ("def register(:\n", "(line 1)"),
        ("\n\ndef register(octavo):\n    raise ValueError('boom')\n", "(line 4): ValueError: boom"),
        ("def register(octavo):\n    octavo.tool('t')\n", "TypeError"),
        ("def register(octavo):\n    raise SystemExit(1)\n", "(line 2): SystemExit"),
    ],
)
def test_a_plugin_that_cannot_be_used_says_its_file_and_what_to_do(file: Path, text: str, says: str) -> None:
    file.write_text(text, encoding="utf-8")
    before = set(sys.modules)
    with pytest.raises(PluginError) as caught:
        load_plugin(file)
    assert str(file) in str(caught.value)
    assert says in str(caught.value)
    assert not {name for name in set(sys.modules) - before if "company" in name and "import " in text}


def test_a_plugin_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"There is no plugin file .*nope\.py: mend the path"):
        load_plugin(tmp_path / "nope.py")
    with pytest.raises(PluginError, match=r"There is no module company\.nope: install it"):
        load_plugin("company.nope")
