"""Redaction through the whole pipeline: what holds for everybody, for one source, for one caller."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner
from tests.pipeline import secrets_corpus as corpus

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.cli.group import octavo as cli
from octavo.config.problems import ConfigError
from octavo.core.arguments import OwnArguments
from octavo.core.errors import InputRequired, InvalidParams
from octavo.core.forms import Answer, Form
from octavo.core.operations import arguments_of
from octavo.core.ref import Ref
from octavo.core.tools import Embedded, Text
from octavo.core.values import Call, Op, Trail

pytestmark = pytest.mark.anyio


def made(rule: str, seed: int = 3) -> str:
    return corpus.ALL[rule](corpus.Maker(seed))[1]


TOKEN, MAIL, PHONE, NUMBER = (made(rule) for rule in ("github-token", "email", "kr-phone", "kr-registration-number"))
TEXT = f"token {TOKEN}\nmail {MAIL}\nphone {PHONE}\nid {NUMBER}\n"
CONFIGURATION = """
    version: 1
    sources:
      work: {kind: file, roots: [./work], write: true}
      crm: {kind: file, roots: [./crm], scheme: crm}
    agents: {insider: {}, guest: {roles: [guest]}}
    redact:
      sources: {crm: [email]}
      principals: {"role:guest": [phone]}
    plugins: [{path: ./plugin.py, protocol: true}]
"""
PLUGIN = """
from octavo.core.errors import InputRequired, InvalidParams
from octavo.core.tools import Hints

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}

def register(octavo):
    @octavo.tool("tell", description="Says it.", input_schema=SCHEMA, hints=HINTS)
    async def tell(ctx, arguments):
        return {"password": arguments["text"], "said": arguments["text"]}

    @octavo.tool("fail", description="Fails with it.", input_schema=SCHEMA, hints=HINTS)
    async def fail(ctx, arguments):
        raise InvalidParams("cannot use " + arguments["text"], detail=arguments["text"])

    @octavo.tool("work", description="Tells while it works.", input_schema=SCHEMA, hints=HINTS)
    async def work(ctx, arguments):
        said = "at " + arguments["text"]
        await ctx.progress(1, 2, said)
        await ctx.notify_user(said)
        field = {"type": "string", "title": said}
        answer = await ctx.ask_user(said, {"type": "object", "properties": {"name": field}})
        await ctx.wire.log("info", {"said": said})
        return {"answer": answer.action}
"""


class Client:
    """Hears what a tool tells before it has a result."""

    locales: Sequence[str] = ()
    asks = waits = True
    lasts = False

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.wire = Wire(self.heard)

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        self.heard.append(f"progress {message}")

    async def ask(self, form: Form) -> Answer:
        self.heard.append(f"question {form.text} {form.schema}")
        return Answer(action="accept", content={})

    async def approve(self, question: Any) -> None: ...


class Wire:
    def __init__(self, heard: list[str]) -> None:
        self._heard = heard
        self.shown: Callable[[Any], Any] = str

    async def log(self, level: str, data: Any) -> None:
        self._heard.append(f"log {self.shown(data)}")


def house(folder: Path, configuration: str = CONFIGURATION) -> Octavo:
    for name in ("work", "crm"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "note.md").write_text(TEXT, encoding="utf-8")
    (folder / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    (folder / "octavo.yaml").write_text(dedent(configuration), encoding="utf-8")
    return Octavo(load(folder / "octavo.yaml", environ={}))


async def ask(octavo: Octavo, op: Op, uri: str, who: str = "insider", **arguments: Any) -> Any:
    works = octavo.works
    call = Call(op, Ref.parse(uri), works.identity.launched(who), Trail(), uri, arguments_of(op, arguments))
    return await works.ask(call)


def hidden(text: str) -> set[str]:
    known = {"token": TOKEN, "mail": MAIL, "phone": PHONE, "id": NUMBER}
    return {name for name, secret in known.items() if secret not in text}


@pytest.mark.seed("A6")
async def test_secrets_are_hidden_from_everybody_and_personal_data_as_configured(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo:
        for _ in range(2):  # from the source, and from the cache
            assert hidden((await ask(octavo, "read", "file://note.md")).body) == {"token", "id"}
            assert hidden((await ask(octavo, "read", "crm://note.md")).body) == {"token", "id", "mail"}
            assert hidden((await ask(octavo, "read", "file://note.md", "guest")).body) == {"token", "id", "phone"}
            assert hidden((await ask(octavo, "read", "crm://note.md", "guest")).body) == {
                "token", "id", "mail", "phone",
            }  # fmt: skip


@pytest.mark.seed("A6")
async def test_what_is_hidden_from_one_caller_is_made_once_and_shown_to_no_other(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo:
        first = await ask(octavo, "read", "file://note.md", "guest")
        assert await ask(octavo, "read", "file://note.md", "guest") is first
        assert (await ask(octavo, "read", "file://note.md")).body != first.body


@pytest.mark.parametrize("who", ["insider", "guest"])
async def test_tools_show_a_caller_no_more_than_a_read_does(tmp_path: Path, who: str) -> None:
    async with house(tmp_path) as octavo:
        told = await ask(octavo, "invoke", "tool://read", who, target="note.md")
        text = "".join(
            block.text if isinstance(block, Text) else str(block.content.body)
            for block in told.content
            if isinstance(block, Text | Embedded)
        )
        assert hidden(text) == {"token", "id"} | ({"phone"} if who == "guest" else set())
        found = await ask(octavo, "invoke", "tool://search", who, query="phone")
        assert PHONE not in str(found) or who == "insider"
        assert TOKEN not in str(found)
        change = {"old": "mail ", "new": "e-mail "}
        edited = await ask(octavo, "invoke", "tool://edit", who, target="note.md", edits=[change])
        assert TOKEN not in str(edited) and (PHONE not in str(edited) or who == "insider")


async def test_a_ranked_search_is_no_way_to_ask_whether_a_hidden_number_is_there(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo:
        for query in (PHONE, PHONE[-4:], "phone", "nowhere"):
            asked = {"query": query, "kind": "ranked"}
            assert query == "nowhere" or "note.md" in str(await ask(octavo, "invoke", "tool://search", **asked))
            with pytest.raises(InvalidParams, match=r"cannot search by rank: .* kind: content") as refused:
                await ask(octavo, "invoke", "tool://search", "guest", **asked)
            assert refused.value.data["reason"] == "hidden_data"


CATALOG = """
    version: 1
    sources:
      store: {kind: file, roots: [./work], expose: false}
      docs: {kind: doc, store: store, path: docs, categories: [policies]}
    agents: {insider: {}, guest: {}}
    redact: {principals: {guest: [email]}}
"""


def catalog(folder: Path, configuration: str = CATALOG, *, owner: str = MAIL) -> Octavo:
    for name, by in (("open", "team"), ("plan", owner), ("rules", "team")):
        file = folder / "work/docs/policies" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ntitle: {name}\nowner: {by}\ntags: [all]\n---\n{name}\n", encoding="utf-8")
    return house(folder, configuration)


async def listed(octavo: Octavo, who: str, **filters: str) -> list[str]:
    """Page by page, one entry on each; asked for by parameters, and by a filter beside the address."""
    found: list[list[str]] = []
    uri = str(Ref.of("doc", (), tuple(filters.items())))
    ways: list[tuple[str, dict[str, Any]]] = [(uri, {}), ("doc://", {"filter": filters})]
    for address, asked in ways:
        pages, cursor = list[str](), None
        while True:
            works = octavo.works
            principal = works.identity.launched(who)
            page = await works.ask(
                Call("list", Ref.parse(address), principal, Trail(), address, arguments_of("list", asked), cursor, 1)
            )
            pages.append(" ".join(entry.ref.name for entry in page.items))
            cursor = page.cursor
            if cursor is None:
                break
        found.append(pages)
    assert found[0] == found[1]
    return found[0]


async def test_nobody_filters_by_what_is_hidden_from_him(tmp_path: Path) -> None:
    async with catalog(tmp_path) as octavo:
        for guess in (MAIL, MAIL.upper(), f"team,{MAIL}"):
            assert "plan" in await listed(octavo, "insider", owner=guess)
            for asked in (guess, guess.replace("@", "-x@")):
                with pytest.raises(InvalidParams, match="cannot filter by such data"):
                    await listed(octavo, "guest", owner=asked)
        assert await listed(octavo, "guest", owner="team") == ["open", "rules"]
        assert await listed(octavo, "guest", tags="all") == ["open", "plan", "rules"]


async def test_what_is_hidden_fits_no_filter_and_pages_do_not_tell_either(tmp_path: Path) -> None:
    everybody = CATALOG.replace("principals: {guest: [email]}", "personal: [email]")
    async with catalog(tmp_path, everybody) as octavo:
        assert await listed(octavo, "insider", owner=MAIL) == [""]
        assert await listed(octavo, "insider", owner=f"team,{MAIL}") == ["open", "rules"]


async def test_what_is_hidden_from_everybody_fits_no_filter_of_a_collection_that_is_read(tmp_path: Path) -> None:
    everybody = CATALOG.replace("principals: {guest: [email]}", "personal: [email]")
    async with catalog(tmp_path, everybody) as octavo:

        async def told(uri: str) -> list[str]:
            content = await ask(octavo, "read", uri)
            return [one["name"] for one in json.loads(content.body)["entries"]]

        assert await told(str(Ref.of("doc", (), (("owner", MAIL),)))) == []
        assert await told(str(Ref.of("doc", (), (("owner", f"team,{MAIL}"),)))) == ["open", "rules"]
        assert await told("doc://?tags=all") == await told("doc://") == ["open", "plan", "rules"]


async def test_a_spelling_that_no_rule_knows_finds_nothing_hidden_either(tmp_path: Path) -> None:
    """To a catalog `_` and `-` are the same."""
    otherwise = PHONE.replace("-", "_")
    async with catalog(tmp_path, CATALOG.replace("[email]", "[phone]"), owner=PHONE) as octavo:
        assert await listed(octavo, "insider", owner=otherwise) == ["plan"]
        assert await listed(octavo, "guest", owner=otherwise) == [""]
        assert await listed(octavo, "guest", owner=f"team,{otherwise}") == ["open", "rules"]


@pytest.mark.parametrize("op", ["read", "stat"])
async def test_a_collection_by_filters_is_listed_and_not_read_by_who_may_not_see_all_of_it(
    tmp_path: Path, op: Op
) -> None:
    async with catalog(tmp_path) as octavo:
        for owner in (MAIL, "nobody"):
            uri = str(Ref.of("doc", (), (("owner", owner),)))
            assert await ask(octavo, op, uri)
            with pytest.raises(InvalidParams, match=r"list doc.* instead"):
                await ask(octavo, op, uri, "guest")
        assert MAIL not in str(await ask(octavo, op, "doc://", "guest"))
        assert MAIL not in str(await ask(octavo, op, "doc://policies/plan?view=parsed", "guest"))


async def test_what_a_tool_of_a_plugin_makes_up_is_redacted_and_stays_json(tmp_path: Path) -> None:
    word = "tr0ub4dor" + "3xy"
    async with house(tmp_path) as octavo:
        for secret in (TOKEN, word):
            told = await ask(octavo, "invoke", "tool://tell", text=secret)
            assert told.structured["password"].startswith("[redacted:")
            assert json.loads(told.content[0].text)["password"] == told.structured["password"]
        assert PHONE in str(await ask(octavo, "invoke", "tool://tell", text=PHONE))
        assert PHONE not in str(await ask(octavo, "invoke", "tool://tell", "guest", text=PHONE))
        with pytest.raises(InvalidParams) as raised:
            await ask(octavo, "invoke", "tool://fail", text=TOKEN)
        assert TOKEN not in f"{raised.value}{raised.value.message}{raised.value.data}"
        assert "[redacted:github-token:" in raised.value.message


async def test_what_a_tool_tells_before_its_result_is_redacted(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo:
        for who, hidden in (("insider", TOKEN), ("guest", PHONE)):
            client, principal = Client(), octavo.works.identity.launched(who)
            arguments = {"text": f"{TOKEN} and {PHONE}"}
            call = Call(
                "invoke",
                Ref.parse("tool://work"),
                principal,
                Trail(),
                arguments=OwnArguments(arguments),
                channel=client,
            )
            await octavo.works.ask(call)
            assert [one.split()[0] for one in client.heard] == ["progress", "question", "question", "log"]
            assert all(TOKEN not in one and hidden not in one and "[redacted:" in one for one in client.heard)


async def test_what_is_kept_for_whoever_answers_questions_is_redacted(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo:
        for who, hidden in (("insider", TOKEN), ("guest", PHONE)):
            with pytest.raises(InputRequired):  # the client shows no forms
                await ask(octavo, "invoke", "tool://work", who, text=f"{TOKEN} and {PHONE}")
            command = ["questions", "list", "--config", str(tmp_path / "octavo.yaml"), "--json"]
            shown = await asyncio.to_thread(CliRunner().invoke, cli, command)
            mine = [json.dumps(one) for one in json.loads(shown.output)["questions"] if one["who"] == who]
            assert len(mine) == 2  # a notice, and the question with its field
            assert all(TOKEN not in one and hidden not in one and "[redacted:" in one for one in mine)
        assert TOKEN.encode() not in b"".join(file.read_bytes() for file in (tmp_path / ".octavo").glob("*.*"))


async def test_marks_and_markers_are_not_written_back(tmp_path: Path) -> None:
    async with house(tmp_path) as octavo:
        for text in ("a [redacted:jwt:12345678] b", "a⟨U+200B⟩b"):
            with pytest.raises(InvalidParams, match="Writing it would"):
                await ask(octavo, "write", "file://note.md", body=text)


PUBLIC = """
    version: 1
    sources:
      work: {kind: file, roots: [./work]}
      crm: {kind: file, roots: [./crm], scheme: crm}
    agents: {insider: {}, guest: {roles: [guest]}}
    redact:
      personal: [identity, email]
      principals: {"role:guest": [phone]}
      sources: {crm: off}
"""


@pytest.mark.seed("A6")
async def test_a_source_of_public_content_can_be_left_as_it_is(tmp_path: Path) -> None:
    async with house(tmp_path, PUBLIC) as octavo:
        for _ in range(2):  # from the source, and from the cache
            assert hidden((await ask(octavo, "read", "file://note.md")).body) == {"token", "id", "mail"}
            assert hidden((await ask(octavo, "read", "crm://note.md")).body) == set()
            assert hidden((await ask(octavo, "read", "crm://note.md", "guest")).body) == {"phone"}


async def test_what_was_kept_while_a_source_was_public_is_not_served_afterwards(tmp_path: Path) -> None:
    async with house(tmp_path, PUBLIC) as octavo:
        public = octavo.works.redact.version
        assert hidden((await ask(octavo, "read", "crm://note.md")).body) == set()
    async with house(tmp_path, PUBLIC.replace("sources: {crm: off}", "sources: {crm: []}")) as octavo:
        assert octavo.works.redact.version != public
        assert hidden((await ask(octavo, "read", "crm://note.md")).body) == {"token", "id", "mail"}


async def test_a_source_that_hides_nothing_is_said_by_check(tmp_path: Path) -> None:
    house(tmp_path, PUBLIC)
    loaded = load(tmp_path / "octavo.yaml", environ={})
    assert [(one.key, one.message) for one in loaded.warnings] == [
        ("redact.sources.crm", "neither secrets nor personal data are hidden in what this source gives")
    ]


@pytest.mark.parametrize(
    ("setting", "where"),
    [
        ("sources: {nowhere: [email]}", "redact.sources.nowhere"),
        ("sources: {nowhere: off}", "redact.sources.nowhere"),
        ("sources: {work: on}", "redact.sources.work"),
        ("skip: [no-such-rule]", "redact.skip[0]"),
        ("personal: [emails]", "redact.personal[0]"),
    ],
)
async def test_settings_that_name_nothing_are_refused(tmp_path: Path, setting: str, where: str) -> None:
    with pytest.raises(ConfigError) as raised:
        house(tmp_path, f"version: 1\nsources:\n  work: {{kind: file, roots: [./work]}}\nredact: {{{setting}}}\n")
    assert [problem.key for problem in raised.value.problems] == [where]
