"""A folder of tools: what is in it is served, what is broken is told, what changes is loaded again (T10)."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.app.follow import follow_file
from octavo.config.load import Loaded, chosen_as, with_tools
from octavo.config.problems import ConfigError
from octavo.core.arguments import OwnArguments
from octavo.core.errors import InternalError, InvalidParams
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail
from octavo.tools.context import ToolContext
from octavo.tools.declarations import Outside
from octavo.tools.folder import load_tools
from octavo.tools.registry import Tool, ToolRegistry

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T10")]

GREET = '''
from octavo.tools import tool

@tool(read_only=True)
def greet(name: str) -> str:
    """Says hello."""
    print("said to the log")
    return f"Hello, {name}!"

def _helper() -> None: ...
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("one", encoding="utf-8")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "greet.py").write_text(GREET, encoding="utf-8")
    (tmp_path / "octavo.yaml").write_text(
        "sources: {files: {kind: file, roots: [./docs]}}\ntools: {dirs: [./tools]}\n", encoding="utf-8"
    )
    return tmp_path


def loaded(folder: Path) -> Loaded:
    return load(folder / "octavo.yaml", environ={})


async def call(house: Octavo, tool: str, /, **arguments: Any) -> Any:
    who = house.works.identity.launched(None)
    with anyio.fail_after(5):
        return await house.works.ask(
            Call("invoke", Ref("tool", (tool,)), who, Trail(), arguments=OwnArguments(arguments))
        )


async def test_a_function_in_the_folder_is_a_tool_beside_the_built_in_ones(folder: Path) -> None:
    async with Octavo(loaded(folder)) as house:
        assert {"greet", "list", "read"} <= set(house.works.tools.names)
        assert (await call(house, "greet", name="Haru")).content[0].text == "Hello, Haru!"


async def test_what_changes_in_the_folder_is_loaded_again_and_told(folder: Path) -> None:
    """Also twice within one second and with the same length, which kept bytecode would not notice."""
    file = folder / "octavo.yaml"
    async with Octavo(load(file)) as house:
        told = asyncio.Event()
        house.on_swap(told.set)
        wake = asyncio.Event()
        following = asyncio.ensure_future(follow_file(house, file, wake=wake))
        await anyio.lowlevel.checkpoint()
        for word in ("Salut", "Salve"):
            (folder / "tools" / "greet.py").write_text(GREET.replace("Hello", word), encoding="utf-8")
            wake.set()
            with anyio.fail_after(5):
                await told.wait()
            told.clear()
            assert (await call(house, "greet", name="Haru")).content[0].text == f"{word}, Haru!"
        (folder / "tools" / "greet.py").unlink()
        wake.set()
        with anyio.fail_after(5):
            await told.wait()
        assert house.works.tools.tool("greet") is None
        following.cancel()


async def test_a_change_of_a_tool_is_noticed_without_a_word(folder: Path) -> None:
    from octavo.app.follow import _fingerprints  # pyright: ignore[reportPrivateUsage]

    async with Octavo(loaded(folder)) as house:
        before = _fingerprints(house, folder / "octavo.yaml")
        assert _fingerprints(house, folder / "octavo.yaml") == before
        for name in ("other.py", "_helper.py"):
            (folder / "tools" / name).write_text(GREET, encoding="utf-8")
            after = _fingerprints(house, folder / "octavo.yaml")
            assert after != before
            before = after


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("def broken(:\n", 1, "is no Python"),
        ("import nowhere_to_be_found\n", 1, "imports nowhere_to_be_found, which is not installed"),
        ("x = 1\nraise KeyError('why')\n", 2, "KeyError"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit"),
        ("\ndef f(x):\n    'Does.'\n", 2, "no type hint"),
        ("x = 1\n", None, "has no function"),
        ("\ndef greet(name: str) -> str:\n    'Says.'\n    return name\n", None, "there is a tool greet already"),
    ],
)
def test_a_broken_file_is_told_with_its_line_and_the_rest_is_there(
    folder: Path, text: str, line: int | None, says: str
) -> None:
    (folder / "tools" / "wrong.py").write_text(text, encoding="utf-8")
    registry = ToolRegistry()
    problems = load_tools([folder / "tools"], registry.register)
    assert registry.names == ("greet",)
    assert [(Path(problem.path).name, problem.line) for problem in problems] == [("wrong.py", line)]
    assert says in problems[0].reason


async def test_a_tool_never_takes_the_name_of_another_kind(folder: Path) -> None:
    (folder / "tools" / "mine.py").write_text("def read(x: str) -> str:\n    'Mine.'\n    return x\n", encoding="utf-8")
    async with Octavo(loaded(folder)) as house:
        known = house.works.tools.tool("read")
        assert known is not None and known.description != "Mine." and known.hints.read_only


def test_helpers_and_tests_are_no_tools(folder: Path) -> None:
    for name in ("_shared.py", "test_greet.py", ".hidden.py", "notes.txt"):
        (folder / "tools" / name).write_text("raise RuntimeError('never run')", encoding="utf-8")
    assert load_tools([folder / "tools", folder / "nowhere"], ToolRegistry().register) == []


def test_tools_import_the_helpers_beside_them_as_they_are_now(folder: Path) -> None:
    tools = folder / "tools"
    (tools / "uses.py").write_text(
        "from _words import WORD\ndef say() -> str:\n    'Says.'\n    return WORD\n", encoding="utf-8"
    )
    for word in ("Salut", "Salve"):
        (tools / "_words.py").write_text(f"WORD = {word!r}\n", encoding="utf-8")
        made: list[Tool] = []
        assert load_tools([tools], made.append) == []
        [module] = [module for name, module in sys.modules.items() if name.startswith("octavo_plugin_uses_")]
        assert module.say() == word
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("_other_words")


def test_a_tool_that_cannot_be_served_is_told_with_its_file(folder: Path) -> None:
    (folder / "tools" / "wrong.yaml").write_text(
        "name: w\ndescription: W.\narguments: {a: {type: string, pattern: '(?=a)'}}\ncommand: [grep, '{a}']\n",
        encoding="utf-8",
    )

    async def run(ctx: ToolContext, program: str, words: Sequence[str], stdin: bytes) -> Any: ...

    outside = Outside(run=run, programs=frozenset(("grep",)))
    [problem] = load_tools([folder / "tools"], ToolRegistry().register, outside)
    assert Path(problem.path).name == "wrong.yaml" and "regex" in problem.reason


@pytest.mark.seed("T4")
async def test_named_tools_are_offered_alone_of_whatever_toolset_and_a_reload_keeps_the_choice(folder: Path) -> None:
    chosen = with_tools(loaded(folder), ("read", "validate", "greet"))
    async with Octavo(chosen) as house:
        assert house.works.tools.names == ("greet", "read", "validate")
        await house.reload(chosen_as(chosen, loaded(folder)))
        assert house.works.tools.names == ("greet", "read", "validate")
        with pytest.raises(InvalidParams, match="Unknown tool"):
            await call(house, "file-reader", path="a.md")


async def test_a_tool_that_nobody_has_is_told_with_the_nearest(folder: Path) -> None:
    with pytest.raises(InvalidParams, match="There is no tool gret; did you mean greet"):
        async with Octavo(with_tools(loaded(folder), ("gret",))):
            pass


@pytest.mark.seed("T4")
async def test_the_data_tools_are_there_when_they_are_asked_for(folder: Path) -> None:
    async with Octavo(loaded(folder)) as house:
        assert house.works.tools.tool("query") is None
    text = (folder / "octavo.yaml").read_text(encoding="utf-8")
    (folder / "octavo.yaml").write_text(f"{text}toolsets: [data]\n", encoding="utf-8")
    async with Octavo(loaded(folder)) as house:
        assert house.works.tools.names == ("convert", "greet", "profile", "query", "validate")


@pytest.mark.seed("T7")
@pytest.mark.parametrize("place", ["./docs/tools", "./docs", "."])
def test_a_folder_that_clients_may_write_is_no_place_for_code(folder: Path, place: str) -> None:
    (folder / "docs" / "tools").mkdir()
    (folder / "octavo.yaml").write_text(
        f"sources: {{files: {{kind: file, roots: [./docs], write: true}}}}\ntools: {{dirs: [{place}]}}\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError, match="could have the server run code"):
        loaded(folder)
    (folder / "octavo.yaml").write_text(
        "sources: {files: {kind: file, roots: [./docs]}}\ntools: {dirs: [./nowhere]}\n", encoding="utf-8"
    )
    assert ["there is no folder" in warning.message for warning in loaded(folder).warnings] == [True]


@pytest.mark.seed("T7")
@pytest.mark.parametrize("place", ["./docs/later", "./docs/out/tools"])
def test_a_place_for_code_that_clients_could_make_or_lead_elsewhere_is_none(folder: Path, place: str) -> None:
    """One that is not there yet, and one behind a link that stands where they may write."""
    (folder / "docs" / "out").symlink_to("..")
    (folder / "octavo.yaml").write_text(
        f"sources: {{files: {{kind: file, roots: [./docs], write: true}}}}\ntools: {{dirs: [{place}]}}\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError, match="could have the server run code"):
        loaded(folder)


@pytest.mark.seed("T7")
async def test_code_behind_a_link_to_what_clients_may_write_is_not_run(folder: Path) -> None:
    """Tools, the helpers they import, and plugins; a link to what nobody may write is followed."""
    (folder / "own").mkdir()
    (folder / "own" / "kind.py").write_text(GREET.replace("greet", "welcome"), encoding="utf-8")
    (folder / "docs" / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()\n{GREET}", encoding="utf-8")
    (folder / "docs" / "evil.yaml").write_text("name: evil\n", encoding="utf-8")
    (folder / "own" / "step").symlink_to("../docs/evil.py")
    for name, target in {
        "kind.py": "../own/kind.py",
        "evil.py": "../docs/evil.py",
        "evil.yaml": "../docs/evil.yaml",
        "roundabout.py": "../own/step",
        "_helper_of_evil.py": "../docs/evil.py",
    }.items():
        (folder / "tools" / name).symlink_to(target)
    (folder / "tools" / "uses.py").write_text("import _helper_of_evil\n", encoding="utf-8")
    writable = "sources: {files: {kind: file, roots: [./docs], write: true, extensions: ['*']}}\n"
    (folder / "octavo.yaml").write_text(f"{writable}tools: {{dirs: [./tools]}}\n", encoding="utf-8")
    async with Octavo(loaded(folder)) as house:
        assert {"greet", "welcome"} <= {*house.works.tools.names}
    package = folder / "plugin"
    package.mkdir()
    (package / "__init__.py").write_text("from . import part\n\ndef register(octavo):\n    pass\n", encoding="utf-8")
    (package / "part.py").symlink_to("../docs/evil.py")
    (folder / "octavo.yaml").write_text(f"{writable}plugins: [{{path: ./plugin}}]\n", encoding="utf-8")
    with pytest.raises(InternalError, match="is a link to what clients may write"):
        async with Octavo(loaded(folder)):
            pass
    assert not (folder / "ran").exists()
