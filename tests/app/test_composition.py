"""The composition root: a configuration becomes a running house (house.md, sections 3, 4 and 6)."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from octavo.app import Octavo
from octavo.app.configuration import load, load_text
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.operations import arguments_of
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, VERBS, Call, Change, Entry, Op, Page, Trail

pytestmark = pytest.mark.anyio

AGENT_KEY = "a-key-that-is-long-enough-to-be-one"


def house(folder: Path, configuration: str, files: dict[str, str] | None = None) -> Octavo:
    for path, text in (files or {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    file = folder / "octavo.yaml"
    file.write_text("version: 1\n" + dedent(configuration), encoding="utf-8")
    return Octavo(load(file, environ={"BRAND_KEY": AGENT_KEY}))


async def ask(house: Octavo, op: Op, uri: str | None = None, *, who: str | None = None, **more: Any) -> Reply:
    ref, fault = EVERYTHING, None
    try:
        ref = EVERYTHING if uri is None else Ref.parse(uri)
    except OctavoError as bad:
        ref, fault = Ref("invalid"), bad
    works = house.works
    limits = works.limits
    call = Call(
        op, ref, works.identity.launched(who), Trail(), uri or "", limit=limits.page, max_bytes=limits.max_bytes,
        timeout=limits.timeout, fault=fault,
    )._replace(arguments=arguments_of(op, more.pop("arguments", {})), **more)  # fmt: skip
    with anyio.fail_after(30):
        return await works.ask(call)


async def listed(house: Octavo, uri: str | None = None, *, who: str | None = None) -> list[str]:
    page: Page[Entry] = await ask(house, "list", uri, who=who)
    return [str(entry.ref) for entry in page.items]


FILES = {
    "work/guide.md": "# Guide\n",
    "work/hr/pay.md": "# Pay\n",
    "prompts/hello.json": json.dumps(
        {
            "id": "hello",
            "description": "Says hello.",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello {{name}}"}]}],
            "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
    ),
}
CONFIGURATION = """
    sources:
      work: {kind: file, uris: relative, roots: [./work]}
      notes:
        kind: memory
        scheme: note
        resources: {today: {text: "buy milk"}}
        templates: {"day/{date}": {text: "on {date}", values: {date: [monday]}}}
    agents:
      agent-brand: {key: "${BRAND_KEY}", roles: [marketing]}
      agent-ops: {}
    policy:
      - {who: "*", may: "*", what: "**"}
      - {who: "role:marketing", may: "*", what: "file://hr/*", effect: deny, why: "HR is not for agents"}
    limits: {read: 1KB, time: 3s, page: 7}
"""


@pytest.mark.seed("O14", "A2")
async def test_a_configuration_becomes_sources_policy_identity_and_limits(tmp_path: Path) -> None:
    """Everything that the file names is there, through the eight folds."""
    async with house(tmp_path, CONFIGURATION, FILES) as octavo:
        assert await listed(octavo) == ["file://guide.md", "file://hr/pay.md", "note://today"]
        assert (await ask(octavo, "read", "file://guide.md")).body == "# Guide\n"
        assert (await ask(octavo, "read", "note://day/monday")).body == "on monday"
        works = octavo.works
        assert works.identity.by_key(AGENT_KEY).roles == {"marketing"}
        assert (works.limits.max_bytes, works.limits.timeout, works.limits.page) == (1000, 3.0, 7)
        with pytest.raises(Forbidden) as refused:
            await ask(octavo, "read", "file://hr/pay.md", who="agent-brand")
        assert refused.value.data == {
            "agent": "agent-brand",
            "required_permission": "read",
            "resource": "file://hr/*",
            "why": "HR is not for agents",
        }
        assert await listed(octavo, who="agent-brand") == ["file://guide.md", "note://today"]
        assert await listed(octavo, "prompt://") == ["prompt://hello"]


@pytest.mark.seed("O14")
async def test_a_star_grants_every_verb(tmp_path: Path) -> None:
    rules = """
        agents: {a: {}}
        policy:
          - {who: a, may: "*", what: "**"}
    """
    async with house(tmp_path, rules) as octavo:
        policy, identity, ref = octavo.works.policy, octavo.works.identity, Ref.parse("tool://x")
        assert all(policy.allows(identity.launched("a"), verb, ref) for verb in VERBS)


@pytest.mark.seed("A5", "A12")
async def test_the_limits_of_the_configuration_hold_for_every_call(tmp_path: Path) -> None:
    """Whatever a call asks for."""
    async with house(tmp_path, CONFIGURATION, {**FILES, "work/large.md": "x" * 1001}) as octavo:
        with pytest.raises(TooLarge) as refused:
            await ask(octavo, "read", "file://large.md", max_bytes=1 << 30)
        assert (refused.value.data["size"], refused.value.data["limit"]) == (1001, 1000)
    many = {f"work/n{number:02}.md": "" for number in range(20)}
    async with house(tmp_path, CONFIGURATION, many) as octavo:
        assert len((await ask(octavo, "list", "file://", limit=1000)).items) == 7


@pytest.mark.seed("A7", "F9")
async def test_every_call_is_recorded_good_or_bad(tmp_path: Path) -> None:
    """F9: every access attempt; the ledger lies in the state directory."""
    async with house(tmp_path, CONFIGURATION, FILES) as octavo:
        await ask(octavo, "read", "file://guide.md")
        for uri, who in (("file://hr/pay.md", "agent-brand"), ("file://none.md", None), ("file://../x", None)):
            with pytest.raises(OctavoError):
                await ask(octavo, "read", uri, who=who)
        octavo.ledger.flush()
    text = "".join(file.read_text(encoding="utf-8") for file in (tmp_path / ".octavo/audit").iterdir())
    records = [json.loads(line) for line in text.splitlines() if '"op"' in line]
    assert [(record["who"], record["uri"], record["outcome"]) for record in records] == [
        ("local", "file://guide.md", "ok"),
        ("agent-brand", "file://hr/pay.md", "forbidden"),
        ("local", "file://none.md", "not_found"),
        ("local", "file://../x", "forbidden"),
    ]


@pytest.mark.seed("A13")
@pytest.mark.parametrize("uris", ["relative", "absolute"])
async def test_words_of_the_operator_are_laid_over_entries_and_templates(tmp_path: Path, uris: str) -> None:
    """A13: `resources:` for any source; with variables it is a template."""
    words = f"""
        sources:
          work: {{kind: file, roots: [{{path: ./work, as: /project}}], uris: {uris}}}
          notes:
            kind: memory
            scheme: note
            resources: {{today: {{text: x}}}}
            templates: {{"d/{{date}}": {{text: x}}}}
        resources:
          - uri: "file:///project/guide.md"
            name: The guide
            description: Read me first
            annotations: {{priority: 1}}
          - {{uri: "note://today", mimeType: text/markdown}}
          - {{uri: "file:///project/logs/{{day}}.log", name: Logs}}
          - {{uri: "note://d/{{date}}", name: Diary}}
    """
    async with house(tmp_path, words, FILES) as octavo:
        page: Page[Entry] = await ask(octavo, "list")
        guide = page.items[0]
        prefix = "file:///project/" if uris == "absolute" else "file://"
        assert (str(guide.ref), guide.name, guide.description, guide.annotations) == (
            f"{prefix}guide.md",
            "The guide",
            "Read me first",
            {"priority": 1},
        )
        assert page.items[-1].mime_type == "text/markdown"
        for uri in ("file://guide.md", "file:///project/guide.md"):
            assert (await ask(octavo, "read", uri)).entry.name == "The guide"
        offered = {template.uri_template: template.name for template in await ask(octavo, "templates")}
        assert offered["file:///project/logs/{day}.log"] == "Logs"
        assert offered["note://d/{date}"] == "Diary"
        assert len(await ask(octavo, "templates")) == len(offered), "each once"


@pytest.mark.seed("A13")
@pytest.mark.parametrize("uris", ["relative", "absolute"])
@pytest.mark.parametrize(
    "described",
    [
        {"file:///a/x.md": "A", "file:///b/x.md": "B", "file:///b/only.md": "Only"},
        {"file://x.md": "A", "file://x.md?root=2": "B", "file://only.md": "Only"},
    ],
)
async def test_words_of_the_operator_hold_in_every_root_and_spelling(
    tmp_path: Path, uris: str, described: dict[str, str]
) -> None:
    told = "".join(f'  - {{uri: "{uri}", name: "{name}"}}\n' for uri, name in described.items())
    roots = "[{path: ./a, as: /a}, {path: ./b, as: /b}]"
    words = f"sources:\n  work: {{kind: file, roots: {roots}, uris: {uris}}}\nresources:\n{told}"
    async with house(tmp_path, words, {"a/x.md": "a", "b/x.md": "b", "b/only.md": "o"}) as octavo:
        page: Page[Entry] = await ask(octavo, "list")
        assert [entry.name for entry in page.items] == ["Only", "A", "B"]
        for name, spellings in {
            "A": ["file://x.md", "file:///a/x.md"],
            "B": ["file://x.md?root=2", "file:///b/x.md"],
            "Only": ["file://only.md", "file://only.md?root=2", "file:///b/only.md"],
        }.items():
            for uri in spellings:
                assert (await ask(octavo, "read", uri)).entry.name == name, uri
                assert (await ask(octavo, "stat", uri)).name == name, uri


# -- what is never served


STORE = """
    sources:
      hidden: {kind: file, roots: [./work], expose: false}
      shown: {kind: file, uris: relative, roots: [./other]}
"""


@pytest.mark.seed("A8")
async def test_a_source_that_is_not_exposed_cannot_be_reached_in_any_way(tmp_path: Path) -> None:
    """house.md section 1: a store behind a catalog would be a way round the catalog's rules."""
    async with house(tmp_path, STORE, {**FILES, "other/a.md": "a"}) as octavo:
        assert await listed(octavo) == ["file://a.md"]
        with pytest.raises(NotFound):
            await ask(octavo, "read", "file://guide.md")
        with pytest.raises(Forbidden):
            await ask(octavo, "read", f"file://{tmp_path}/work/guide.md")
        for scheme in ("file+hidden", "hidden"):
            for op, uri in (("read", f"{scheme}://guide.md"), ("list", f"{scheme}://"), ("stat", f"{scheme}://hr")):
                with pytest.raises(InvalidParams):
                    await ask(octavo, op, uri)  # type: ignore[arg-type]
        asked = {"argument": "path", "prefix": "", "given": {}}
        assert list(await ask(octavo, "complete", "file://", arguments=asked)) == ["a.md"]
        assert len(await ask(octavo, "templates")) == 1


@pytest.mark.seed("O10")
async def test_changes_of_a_source_that_is_not_exposed_are_not_told(tmp_path: Path) -> None:
    """They would go by the addresses of the source that is exposed under the same scheme."""
    memory = """
        sources:
          hidden: {kind: memory, scheme: note, resources: {secret: {text: x}}, expose: false}
          shown: {kind: memory, scheme: note, resources: {open: {text: x}}}
    """
    async with house(tmp_path, memory) as octavo:
        heard: list[Change] = []
        octavo.feed.subscribe(heard.append)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        sources: Any = octavo.works.dispatch._sources  # pyright: ignore[reportPrivateUsage]
        await sources["note+hidden"].write(Ref.parse("note://secret"), "y", if_match=None)
        await sources["note"].write(Ref.parse("note://open"), "y", if_match=None)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert [str(change.ref) for change in heard] == ["note://open"]


@pytest.mark.seed("P1", "F3", "A8")
async def test_the_state_and_the_prompts_are_never_served(tmp_path: Path) -> None:
    """P1 and house.md section 6: neither by list nor by read, even inside a root that shows all files."""
    everything = """
        sources: {all: {kind: file, uris: relative, roots: [.], extensions: ["*"]}}
        prompts: {dirs: [./prompts, ./more]}
        state: {path: ./state}
    """
    files = {**FILES, "more/secret.json": FILES["prompts/hello.json"].replace("hello", "other")}
    async with house(tmp_path, everything, files) as octavo:
        octavo.ledger.flush()
        assert (tmp_path / "state/secret").is_file()
        assert await listed(octavo) == ["file://octavo.yaml", "file://work/guide.md", "file://work/hr/pay.md"]
        for uri in ("state/secret", "prompts/hello.json", "more/secret.json"):
            for spelled in (f"file://{uri}", f"file://{tmp_path}/{uri}"):
                with pytest.raises(NotFound):
                    await ask(octavo, "read", spelled)
        assert await listed(octavo, "prompt://") == ["prompt://hello", "prompt://other"]


@pytest.mark.seed("P1", "F3")
async def test_nobody_writes_prompts_or_the_configuration_through_a_source(tmp_path: Path) -> None:
    """Also where the folder is not there yet: what is written there would be loaded at the next start."""
    everything = """
        sources: {all: {kind: file, uris: relative, roots: [.], extensions: ["*"], write: true}}
        agents: {brand: {key: "file:./brand.txt"}}
    """
    given = {"own/evil.json": FILES["prompts/hello.json"], "brand.txt": "a-key-that-is-long-enough-0123456789"}
    (tmp_path / "brand.txt").touch(0o600)
    async with house(tmp_path, everything, given) as octavo:

        async def change(tool: str, **arguments: Any) -> Any:
            return await ask(octavo, "invoke", f"tool://{tool}", arguments=arguments)

        before = (tmp_path / "octavo.yaml").read_bytes()
        await change("write", target="own/fine.json", content="{}")
        for tool, more in (
            ("write", {"target": "prompts/evil.json", "content": "{}"}),
            ("write", {"target": "octavo.yaml", "content": "version: 1"}),
            ("edit", {"target": "octavo.yaml", "edits": [{"old": "version", "new": "#"}]}),
            ("create_directory", {"target": "prompts"}),
            ("move", {"target": "own", "to": "prompts"}),
            ("copy", {"target": "own/fine.json", "to": "octavo.yaml"}),
            ("move", {"target": "octavo.yaml", "to": "own/octavo.yaml"}),
            ("delete", {"target": "octavo.yaml"}),
            ("write", {"target": "brand.txt", "content": "a-key-of-somebody-else"}),
        ):
            with pytest.raises((NotFound, Forbidden)):
                await change(tool, **more)
        assert (tmp_path / "octavo.yaml").read_bytes() == before and not (tmp_path / "prompts").exists()
        assert {one.name for one in (tmp_path / "own").iterdir()} == {"evil.json", "fine.json"}


# -- plugins


PLUGIN = """
from octavo.sources.memory import MemorySource

def register(octavo):
    octavo.source(MemorySource({scheme!r}, {{"a": "from the plugin"}}))
"""


@pytest.mark.seed("A1")
async def test_a_plugin_brings_a_scheme_of_its_own(tmp_path: Path) -> None:
    """Own schemes by plugin: listed behind the configured sources, under the same policy."""
    config = CONFIGURATION + "    plugins: [{path: ./plugin.py}]\n"
    async with house(tmp_path, config, {**FILES, "plugin.py": PLUGIN.format(scheme="own")}) as octavo:
        assert (await ask(octavo, "read", "own://a")).body == "from the plugin"
        assert (await listed(octavo))[-1] == "own://a"


@pytest.mark.parametrize("scheme", ["file", "note", "tool", "prompt", "changes", "No", "no scheme", "*"])
async def test_a_plugin_cannot_take_a_scheme_that_is_taken(tmp_path: Path, scheme: str) -> None:
    """Two sources with one scheme are refused, also when one of them comes from a plugin."""
    config = CONFIGURATION + "    plugins: [{path: ./plugin.py}]\n"
    octavo = house(tmp_path, config, {**FILES, "plugin.py": PLUGIN.format(scheme=scheme)})
    with pytest.raises(OctavoError):
        async with octavo:
            pass


GIVING = """
from octavo.core.tools import Hints

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)

def register(octavo):
    @octavo.tool("much", description="Gives much.", hints=HINTS)
    async def much(ctx, arguments):
        return "x" * 1_000_000
"""


@pytest.mark.seed("T7")
async def test_an_answer_of_a_plugin_is_as_large_as_any_other_may_be(tmp_path: Path) -> None:
    config = CONFIGURATION + "    plugins: [{path: ./plugin.py}]\n"
    async with house(tmp_path, config, {**FILES, "plugin.py": GIVING}) as octavo:
        with pytest.raises(TooLarge):
            await ask(octavo, "invoke", "tool://much")


@pytest.mark.seed("F1", "O14")
async def test_a_file_that_another_root_hides_is_denied_by_its_absolute_address(tmp_path: Path) -> None:
    """The address that lists print for it has a query, and no pattern has one."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(name, encoding="utf-8")
    text = f"""
version: 1
sources: {{f: {{kind: file, uris: relative, roots: [one, two]}}}}
agents: {{x: {{}}}}
policy:
  - {{who: "*", may: "*", what: "**"}}
  - {{who: "*", may: "*", what: "file://{tmp_path}/two/a.md", effect: deny}}
"""
    async with Octavo(load_text(text, file=tmp_path / "octavo.yaml", environ={})) as house:
        assert (await ask(house, "read", "file://a.md", who="x")).body == "one"
        for uri in ("file://a.md?root=2", f"file://{tmp_path}/two/a.md"):
            with pytest.raises(Forbidden):
                await ask(house, "read", uri, who="x")
