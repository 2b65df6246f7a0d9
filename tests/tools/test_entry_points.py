"""What an installed package offers is loaded when the configuration names it, and only then (T10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.stores.state import StateDirectory
from octavo.tools.plugins import PluginError, load_plugin

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T10")]

MODULE = '''
from octavo.tools import tool

@tool(read_only=True)
def greet(name: str) -> str:
    """Says hello."""
    return f"Hello, {name}!"

def register(octavo):
    octavo.function(greet)
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as pip leaves it behind."""
    site = tmp_path / "site"
    facts = site / "acme_tools-1.0.dist-info"
    facts.mkdir(parents=True)
    (site / "acme_tools.py").write_text(MODULE, encoding="utf-8")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.0\n", encoding="utf-8")
    (facts / "entry_points.txt").write_text(
        "[octavo.tools]\nacme = acme_tools\nacme-function = acme_tools:register\nbroken = acme_tools:nowhere\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["acme", "acme-function"])
async def test_an_entry_point_is_a_module_or_its_function(name: str, tmp_path: Path) -> None:
    sources = "sources: {notes: {kind: memory, scheme: note, resources: {a: {text: x}}}}\n"
    for more, there in ((f"plugins: [{{entry_point: {name}}}]\n", True), ("", False)):
        loaded = load_text(sources + more, file=tmp_path / "octavo.yaml", environ={})
        async with Octavo(loaded, state=StateDirectory.in_memory()) as house:
            assert (house.works.tools.tool("greet") is not None) is there


@pytest.mark.usefixtures("installed")
def test_one_that_is_not_there_or_is_broken_says_so() -> None:
    with pytest.raises(PluginError, match="there is: acme, acme-function, broken"):
        load_plugin("nope", entry_point=True)
    with pytest.raises(PluginError, match="broken failed at start-up"):
        load_plugin("broken", entry_point=True)
