"""A kind of source that nobody here wrote, installed by its entry point: whatever Octavo's own kinds get, it gets."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.cli.group import octavo
from octavo.config.load import Loaded
from octavo.config.problems import ConfigError
from octavo.config.schema import schema
from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable
from octavo.core.operations import arguments_of
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Trail
from octavo.stores.state import StateDirectory
from octavo.testing import SourceSuite

SITE = Path(__file__).parent / "installed"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"  # no token of anybody's
TEXTS = {"one.md": "# One\n", "brand/two.md": f"# Two\n\n{TOKEN}\n", "sops/it/reset.md": "# Reset a password\n"}
PLUGIN = "plugins: [{entry_point: shelf}]\n"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(SITE))
    yield
    sys.modules.pop("acme_shelf", None)


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    file = tmp_path / "shelf.json"
    put(file, TEXTS)
    return file


def put(file: Path, texts: dict[str, str]) -> None:
    file.write_text(json.dumps(texts), encoding="utf-8")


def loaded(folder: Path, configuration: str) -> Loaded:
    return load_text(dedent(configuration) + PLUGIN, file=folder / "octavo.yaml", environ={"SHELF": TOKEN})


async def ask(house: Octavo, op: Op, uri: str, *, arguments: Any = None) -> Reply:
    works = house.works
    call = Call(
        op, Ref.parse(uri), works.identity.launched(None), Trail(), uri, arguments_of(op, arguments or {}), limit=10
    )
    return await works.ask(call._replace(max_bytes=works.limits.max_bytes, timeout=works.limits.timeout))


def house(folder: Path, configuration: str) -> Octavo:
    return Octavo(loaded(folder, configuration), state=StateDirectory.in_memory())


def refused(folder: Path, configuration: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, configuration)
    return str(caught.value)


ONE = "sources: {texts: {kind: shelf, file: shelf.json, token: '${SHELF}'}}\n"


@pytest.mark.anyio
@pytest.mark.usefixtures("shelf")
async def test_it_is_read_listed_cached_and_redacted_as_any_other(tmp_path: Path, shelf: Path) -> None:
    async with house(tmp_path, ONE) as open_house:
        page = await ask(open_house, "list", "shelf://")
        assert [str(entry.ref) for entry in page.items] == [
            "shelf://brand/two.md", "shelf://one.md", "shelf://sops/it/reset.md",
        ]  # fmt: skip
        first = (await ask(open_house, "read", "shelf://brand/two.md")).body
        assert "# Two" in first and TOKEN not in first
        put(shelf, {**TEXTS, "brand/two.md": "new"})
        assert (await ask(open_house, "read", "shelf://brand/two.md")).body == first, "a copy holds for its TTL"
        assert (await ask(open_house, "read", "shelf://one.md?loud=yes")).body == "# ONE\n"
        for op in ("list", "read", "stat"):
            with pytest.raises(InvalidParams, match="Unknown query parameter: 'lowd'"):
                await ask(open_house, op, "shelf://one.md?lowd=yes")
        assert TOKEN not in repr(open_house.works.config.sources) + repr(open_house.works.sources)


@pytest.mark.anyio
@pytest.mark.usefixtures("shelf")
async def test_what_it_can_do_follows_from_its_options(tmp_path: Path, shelf: Path) -> None:
    """Its source has the method `stamp`, and the record claims it for `live: true` alone."""
    async with house(tmp_path, ONE.replace("token", "live: true, token")) as open_house:
        assert (await ask(open_house, "read", "shelf://one.md")).body == "# One\n"
        put(shelf, {"one.md": "another"})
        assert (await ask(open_house, "read", "shelf://one.md")).body == "another"


@pytest.mark.anyio
@pytest.mark.usefixtures("shelf")
async def test_limits_and_redaction_are_set_by_its_name(tmp_path: Path) -> None:
    more = "limits: {sources: {texts: {concurrency: 1}}}\nredact: {sources: {texts: 'off'}}\n"
    async with house(tmp_path, ONE + more) as open_house:
        assert TOKEN in (await ask(open_house, "read", "shelf://brand/two.md")).body


@pytest.mark.anyio
@pytest.mark.usefixtures("shelf")
async def test_a_catalog_stands_on_it(tmp_path: Path) -> None:
    over = """\
        sources:
          texts: {kind: shelf, file: shelf.json, expose: false}
          sops: {kind: sop, store: texts, path: sops}
        """
    async with house(tmp_path, over) as open_house:
        assert "Reset a password" in (await ask(open_house, "read", "sop://it/reset")).body
        with pytest.raises(OctavoError):
            await ask(open_house, "read", "shelf://one.md")


@pytest.mark.anyio
@pytest.mark.usefixtures("shelf")
async def test_it_has_the_general_tools_and_its_own(tmp_path: Path) -> None:
    async with house(tmp_path, ONE) as open_house:
        names = open_house.works.tools.names
        assert {"list", "read", "info", "search", "changes", "shelf_rules"} <= {*names} and "write" not in names
        told = await ask(open_house, "invoke", "tool://read", arguments={"target": "shelf://one.md"})
        assert "# One" in told.content[0].text


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{kind: shelf, file: shelf.json, tokn: x}", "sources.texts.tokn: unknown key (did you mean token?)"),
        ("{kind: shelf, file: shelf.txt}", "sources.texts.file: is no JSON file (name one that ends in .json)"),
        ("{kind: shelf, file: nowhere/shelf.json}", "sources.texts.file: there is no folder"),
        ("{kind: shelf, file: shelf.json, write: true}", "sources.texts.write: kind: shelf cannot be written"),
        ("{kind: shelf}", "sources.texts.file: is required"),
        ("{kind: shelv, file: shelf.json}", "did you mean shelf?"),
    ],
)
def test_its_options_are_checked_with_their_lines(entry: str, said: str, tmp_path: Path) -> None:
    told = refused(tmp_path, f"sources:\n  texts: {entry}\n")
    assert said in told and "octavo.yaml:2:" in told


@pytest.mark.usefixtures("shelf")
def test_check_doctor_and_schema_know_it(tmp_path: Path) -> None:
    (tmp_path / "octavo.yaml").write_text("version: 1\n" + ONE + PLUGIN, encoding="utf-8")
    config = ["--config", str(tmp_path / "octavo.yaml")]
    environ = {**os.environ, "SHELF": TOKEN}
    checked = CliRunner().invoke(octavo, ["check", *config, "--json"], env=environ, prog_name="octavo")
    facts = json.loads(checked.stdout)
    assert facts["ok"] and facts["sources"][0]["serves"] == [str(tmp_path / "shelf.json")], checked.output
    assert facts["sources"][0]["reaches"] == ["shelf.example"]
    seen = CliRunner().invoke(octavo, ["doctor", *config], env=environ, prog_name="octavo").stdout
    assert f"{tmp_path} can be read" in seen and "shelf answers" in seen
    made = json.loads(CliRunner().invoke(octavo, ["schema", *config], env=environ, prog_name="octavo").stdout)
    shape = made["$defs"]["ShelfOptions"]
    assert "shelf" in made["properties"]["sources"]["additionalProperties"]["discriminator"]["mapping"]
    assert all(one["description"] for one in shape["properties"].values())


@pytest.mark.usefixtures("shelf")
def test_its_options_are_documented_as_those_of_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    import generate  # type: ignore[import-not-found]

    page = generate.configuration(schema(loaded(tmp_path, ONE).kinds))
    assert "### `kind: shelf`" in page and "| `sources.NAME.file` |" in page
    sys.modules.pop("generate", None)


@pytest.mark.anyio
async def test_one_that_does_not_open_hurts_nobody_else(tmp_path: Path) -> None:
    more = "  notes: {kind: memory, scheme: note, resources: {a: {text: A}}}\n"
    async with house(tmp_path, f"sources:\n  texts: {{kind: shelf, file: fails.json}}\n{more}") as open_house:
        assert (await ask(open_house, "read", "note://a")).body == "A"
        with pytest.raises(SourceUnavailable):
            await ask(open_house, "read", "shelf://one.md")
        assert "the shelf has fallen down" in open_house.works.unopened["shelf"]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("SHELF, SHELF", "its kind 'shelf' is there already"),
        ("replace(SHELF, name='file')", "its kind 'file' is there already"),
        ("replace(SHELF, options=dict)", "options that are no model over octavo.SourceOptions"),
        ("replace(SHELF, options=Strange)", "options of which no schema can be made"),
        ("replace(SHELF, abilities=frozenset(['fly']))", "claims fly, which is no ability"),
        ("nowhere", "failed at start-up"),
    ],
)
def test_a_record_that_cannot_be_used_is_said_with_its_plugin(record: str, said: str, tmp_path: Path) -> None:
    plugin = f"""\
        from typing import Literal
        from acme_shelf import SHELF, ShelfOptions
        from msgspec.structs import replace

        class Odd:
            pass

        class Strange(ShelfOptions, arbitrary_types_allowed=True):
            odd: Odd

        def register(octavo):
            for kind in [{record}]:
                octavo.kind(kind)
        """
    (tmp_path / "plugin.py").write_text(dedent(plugin), encoding="utf-8")
    text = "sources: {texts: {kind: shelf, file: shelf.json}}\nplugins:\n  - path: plugin.py\n"
    with pytest.raises(ConfigError, match="plugins") as caught:
        load_text(text, file=tmp_path / "octavo.yaml", environ={})
    assert said in str(caught.value) and "octavo.yaml:3:" in str(caught.value)


def test_a_module_that_is_missing_is_said(tmp_path: Path, shelf: Path) -> None:
    plugin = """\
        from acme_shelf import SHELF
        from msgspec.structs import replace

        def register(octavo):
            octavo.kind(replace(SHELF, name="shelf", module="no_such_module"))
        """
    (tmp_path / "plugin.py").write_text(dedent(plugin), encoding="utf-8")
    text = f"sources:\n  texts: {{kind: shelf, file: {shelf.name}}}\nplugins: [{{path: plugin.py}}]\n"
    with pytest.raises(ConfigError, match="shelf needs no_such_module, which is not installed"):
        load_text(text, file=tmp_path / "octavo.yaml", environ={})


class TestShelf(SourceSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Any:
        from acme_shelf import ShelfSource  # type: ignore[import-not-found]

        file = tmp_path / "tree.json"
        file.write_text(json.dumps(SourceSuite.TREE), encoding="utf-8")
        return ShelfSource("shelf", file, b"secret")

    @pytest.fixture
    def kind(self) -> Any:
        from acme_shelf import SHELF, ShelfOptions

        return SHELF, ShelfOptions.model_validate({"kind": "shelf", "file": "/shelf.json", "live": True})
