"""The toolset data as an agent has it: child reads of its caller, bounded, in a process that may be killed (T4, T7)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.arguments import OwnArguments
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError, SourceUnavailable, Timeout, TooLarge
from octavo.core.ref import Ref
from octavo.core.tools import Image, Text, ToolResult
from octavo.core.values import Call, Trail
from octavo.stores.audit.ledger import MemoryLedger
from octavo.stores.state import StateDirectory
from octavo.tools.data.child import Work

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T4")]

CONFIGURATION = """
sources: {files: {kind: file, uris: relative, roots: [./docs], extensions: ["*"], write: true}}
toolsets: [data]
agents: {agent-brand: {}, agent-other: {}}
limits: {time: 20s}
policy:
  - {who: agent-brand, may: "*", what: ["tool://*", "file://*"]}
  - {who: "*", may: "*", what: "file://secret/*", effect: deny}
"""
SECRET = "AKIA" + "Z2Y3X4W5V6U7T2S3"
WORD = "tr0ub4dor" + "3xyZ!"
SALES = "region,amount\nSeoul,10\nBusan,20\nSeoul,\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in {
        "sales.csv": SALES,
        "regions.json": '[{"region": "Seoul", "lead": "김"}]',
        "secret/pay.csv": "who,pay\nHaru,999\n",
        "schema.yaml": "type: array\nitems: {required: [lead, phone]}\n",
        "leak.csv": f"key,value\ntoken,{SECRET}\n",
    }.items():
        file = tmp_path / "docs" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


class Agent:
    def __init__(self, house: Octavo, who: str) -> None:
        self._house, self._who = house, who

    async def call(self, tool: str, /, **arguments: Any) -> ToolResult:
        who = self._house.works.identity.launched(self._who)
        call = Call("invoke", Ref("tool", (tool,)), who, Trail(), arguments=OwnArguments(arguments))
        with anyio.fail_after(60):
            result: ToolResult = await self._house.works.ask(call)
        return result

    def records(self) -> list[dict[str, Any]]:
        ledger = self._house.ledger
        assert isinstance(ledger, MemoryLedger)
        ledger.flush()
        return [json.loads(record) for record in ledger.records]


@asynccontextmanager
async def agent(folder: Path, who: str = "agent-brand") -> AsyncIterator[Agent]:
    loaded = load_text(CONFIGURATION, file=folder / "octavo.yaml", environ={})
    async with Octavo(loaded, state=StateDirectory.in_memory()) as house:
        yield Agent(house, who)


def text(result: ToolResult) -> str:
    assert isinstance(result.content[0], Text)
    return result.content[0].text


async def test_an_agent_converts_validates_profiles_and_asks(folder: Path) -> None:
    async with agent(folder) as one:
        assert json.loads(text(await one.call("convert", target="sales.csv", to="json")))[1] == {
            "region": "Busan",
            "amount": 20,
        }
        wrote = await one.call("convert", target="file://regions.json", to="yaml", save_as="regions.yaml")
        assert "file://regions.yaml" in text(wrote)
        assert (folder / "docs/regions.yaml").read_text(encoding="utf-8") == "- region: Seoul\n  lead: 김\n"
        checked = await one.call("validate", target="regions.json", schema_target="schema.yaml")
        assert checked.structured is not None and checked.structured["valid"] is False
        assert '"phone" is a required property' in text(checked)
        asked = await one.call(
            "query",
            sql="SELECT lead, sum(amount) FROM s JOIN r USING (region)",
            tables={"s": "sales.csv", "r": "regions.json"},
        )
        assert asked.structured == {"columns": ["lead", "sum(amount)"], "rows": [["김", 10]], "more": False}
        assert text(asked) == "lead,sum(amount)\n김,10"


async def test_a_profile_says_columns_types_missing_and_distribution_with_a_picture(folder: Path) -> None:
    async with agent(folder) as one:
        result = await one.call("profile", target="sales.csv")
    assert result.structured is not None and result.structured["rows"] == 3
    region, amount = result.structured["columns"]
    assert (region["type"], region["distinct"], region["top"][0]) == ("text", 2, {"value": "Seoul", "count": 2})
    assert (amount["type"], amount["missing"], amount["mean"]) == ("integer", 1, 15)
    assert amount["histogram"] == {"from": 10, "to": 20, "counts": [1, 1]}
    picture = result.content[1]
    assert isinstance(picture, Image) and picture.data.startswith(b"\x89PNG") and len(picture.data) < 20_000


@pytest.mark.seed("T6", "F11")
async def test_what_the_caller_may_not_read_no_data_tool_reads_for_it(folder: Path) -> None:
    async with agent(folder) as one:
        for tool, arguments in {
            "convert": {"to": "json"},
            "profile": {},
            "validate": {"schema": {}},
            "query": {"sql": "SELECT * FROM data"},
        }.items():
            with pytest.raises(Forbidden):
                await one.call(tool, target="secret/pay.csv", **arguments)
            with pytest.raises(NotFound):
                await one.call(tool, target="nowhere.csv", **arguments)
        with pytest.raises(Forbidden):
            await one.call("query", sql="SELECT 1", tables={"a": "sales.csv", "b": "file://secret/pay.csv"})
        with pytest.raises(Forbidden):
            await one.call("convert", target="sales.csv", to="json", save_as="secret/x.json")
        reads = [record for record in one.records() if record["op"] == "read"]
        assert len(reads) > 8 and all("parent" in record for record in reads)
    async with agent(folder, "agent-other") as other:
        with pytest.raises(Forbidden):
            await other.call("query", target="sales.csv", sql="SELECT 1")


async def test_secrets_are_hidden_before_anything_is_made_of_them(folder: Path) -> None:
    async with agent(folder) as one:
        for sql in ("SELECT value FROM data", "SELECT hex(value) FROM data", "SELECT substr(value, 1, 12) FROM data"):
            said = text(await one.call("query", target="leak.csv", sql=sql))
            assert SECRET[:12] not in said and SECRET[:12].encode().hex().upper() not in said


def _database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE keys (id INTEGER PRIMARY KEY, owner TEXT, password TEXT, raw BLOB, note TEXT);"
            "CREATE INDEX by_note ON keys (note); CREATE VIEW mine AS SELECT id, note FROM keys WHERE owner = '김';"
        )
        database.execute(
            "INSERT INTO keys VALUES (7, '김', ?, ?, ?)", (WORD, f"key {SECRET}".encode(), f"the key is {SECRET} today")
        )
        database.commit()


@pytest.mark.parametrize(
    "spelled",
    [
        "{}", "hex({})", "upper({})", "substr({}, 3, 40)", "replace({}, 'A', 'b')", "json_quote({})", "quote({})",
        "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 60) SELECT group_concat(unicode("
        "substr({}, n, 1)), '-') FROM c)", "{} LIKE '%" + SECRET[:9] + "%' OR {} LIKE 'tr0%'",
    ],
)  # fmt: skip
@pytest.mark.parametrize("column", ["note", "password", "CAST(raw AS TEXT)"])
async def test_sql_sees_no_more_of_a_database_than_its_caller(folder: Path, spelled: str, column: str) -> None:
    """Whatever a function makes of a cell, it makes of what is shown: so two secrets give one answer."""
    _database(folder / "docs/keys.sqlite")
    async with agent(folder) as one:
        sql = "SELECT " + spelled.replace("{}", column) + " AS said FROM keys"
        said = text(await one.call("query", target="keys.sqlite", sql=sql)).partition("\n")[2]
    for secret in (SECRET, WORD):
        for form in (secret[4:], secret[4:].encode().hex(), "-".join(str(ord(c)) for c in secret[4:12])):
            assert form.lower() not in said.lower()
    if "LIKE" in spelled:
        assert said == "0"


async def test_a_database_with_secrets_keeps_its_rows_types_and_views(folder: Path) -> None:
    _database(folder / "docs/keys.sqlite")
    async with agent(folder) as one:
        asked = await one.call(
            "query", target="keys.sqlite", sql="SELECT k.id + 1, typeof(raw), owner FROM keys k JOIN mine USING (id)"
        )
        schema = text(await one.call("query", target="keys.sqlite", sql="SELECT name FROM sqlite_master ORDER BY 1"))
    assert asked.structured is not None and asked.structured["rows"] == [[8, "blob", "김"]]
    assert "keys" in schema and "mine" in schema


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs the extra data")
async def test_nothing_is_made_of_what_a_parquet_file_hides(folder: Path) -> None:
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

    rows = [{"owner": "김", "password": WORD, "deep": {"note": [f"key {SECRET}"]}}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "docs/keys.parquet")
    async with agent(folder) as one:
        told = [
            text(await one.call("convert", target="keys.parquet", to="json")),
            text(await one.call("query", target="keys.parquet", sql="SELECT hex(password), hex(deep) FROM data")),
            text(await one.call("profile", target="keys.parquet")),
            text(
                await one.call(
                    "validate", target="keys.parquet", schema={"items": {"properties": {"password": {"const": 1}}}}
                )
            ),
        ]
        with pytest.raises(InvalidParams, match="secret"):  # as of any text: a mark is not written back
            await one.call("convert", target="keys.parquet", to="csv", save_as="keys.csv")
    for secret in (SECRET, WORD):
        assert not any(secret[4:] in one or secret[4:].encode().hex().upper() in one for one in told)


async def test_mistakes_say_what_to_do(folder: Path) -> None:
    (folder / "docs" / "data.bin").write_bytes(b"\x00\x01\xff")
    async with agent(folder) as one:
        for tool, arguments, says in (
            ("convert", {"target": "data.bin", "to": "json"}, "say it with from"),
            ("convert", {"target": "sales.csv", "to": "parquet"}, "save_as"),
            ("convert", {"target": "regions.json", "to": "csv", "from": "yaml", "save_as": "sales.csv"}, ""),
            ("query", {"sql": "SELECT 1"}, "a target"),
            ("query", {"sql": "SELECT 1", "tables": {"a b": "sales.csv"}}, "no name for a table"),
            ("query", {"sql": "SELECT nope FROM data", "target": "sales.csv"}, r"There is: data \(region, amount\)"),
            ("query", {"sql": "ATTACH 'x' AS y", "target": "sales.csv"}, "only SELECT"),
            ("validate", {"target": "sales.csv"}, "schema_target"),
            ("validate", {"target": "sales.csv", "schema": {"type": "strange"}}, "JSON Schema"),
            ("validate", {"target": "sales.csv", "schema": {"$ref": "file:///etc/hostname"}}, "refer to itself"),
            ("validate", {"target": "sales.csv", "schema": {"allOf": [{"$ref": "#"}]}}, "without end"),
        ):
            with pytest.raises(OctavoError, match=says or None):
                await one.call(tool, **arguments)


async def test_answers_stay_small(folder: Path) -> None:
    rows = "".join(f"{number},{'x' * 50}\n" for number in range(5_000))
    (folder / "docs" / "big.csv").write_text(f"n,t\n{rows}", encoding="utf-8")
    async with agent(folder) as one:
        with pytest.raises(TooLarge, match="save_as"):
            await one.call("convert", target="big.csv", to="json")
        asked = await one.call("query", target="big.csv", sql="SELECT * FROM data", limit=1000)
        assert asked.structured is not None and asked.structured["more"] and 100 < len(asked.structured["rows"]) <= 1000
        assert "OFFSET" in text(asked) and len(text(asked)) < 64_000


async def test_a_question_without_end_or_measure_is_ended() -> None:
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    asked = {"formats": ["csv"], "names": ["data"], "sql": forever, "limit": 1}
    with anyio.fail_after(60), pytest.raises(Timeout, match="ask for less"):
        await Work(seconds=0.01).do("query", asked, [SALES], max_bytes=1 << 20)
    greedy = "SELECT a.t || b.t || c.t AS x FROM data a, data b, data c ORDER BY x"
    rows = "t\n" + "\n".join("x" * 5_000 for _ in range(200))
    with anyio.fail_after(60), pytest.raises((TooLarge, Timeout, InvalidParams)):
        await Work(seconds=2, memory=200 << 20).do("query", {**asked, "sql": greedy}, [rows], max_bytes=1 << 20)


async def test_whoever_stops_waiting_stops_the_work() -> None:
    work = Work(seconds=30, at_once=1)
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    asked = {"formats": ["csv"], "names": ["data"], "sql": forever, "limit": 1}
    waiting = asyncio.ensure_future(work.do("query", asked, [SALES], max_bytes=1 << 20))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with anyio.fail_after(60):  # the only place is free again
        done = await work.do("query", {**asked, "sql": "SELECT 1"}, [SALES], max_bytes=1 << 20)
    assert done.answer["rows"] == [[1]]


async def test_parquet_works_with_its_extra_and_says_its_name_without(folder: Path) -> None:
    async with agent(folder) as one:
        if find_spec("pyarrow") is None:
            with pytest.raises(SourceUnavailable, match="install Octavo with its extra data"):
                await one.call("convert", target="sales.csv", to="parquet", save_as="sales.parquet")
            return
        await one.call("convert", target="sales.csv", to="parquet", save_as="sales.parquet")
        asked = await one.call("query", target="sales.parquet", sql="SELECT sum(amount) FROM data")
        assert asked.structured is not None and asked.structured["rows"] == [[30]]


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"target": "wide.csv"}, InvalidParams, "too many columns"),
        ({"target": "long.csv"}, TooLarge, "select fewer"),
        ({"tables": {"sqlite_x": "sales.csv"}}, InvalidParams, "reserved"),
        ({"tables": {"A": "sales.csv", "a": "sales.csv"}}, InvalidParams, "already exists"),
        ({"target": "sales.csv", "sql": "SELECT '\ud800'"}, InvalidParams, "half a character"),
        (
            {
                "target": "sales.csv",
                "sql": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 50) "
                "SELECT printf('%.*c', 300000, 'x') FROM c",
            },
            TooLarge,
            "ask for less",
        ),
    ],
)
async def test_what_cannot_be_asked_or_answered_says_why(
    folder: Path, asked: dict[str, Any], error: type[Exception], says: str
) -> None:
    for name, count, long in (("wide", 2_500, ""), ("long", 500, "x" * 300)):
        names, ones = ",".join(f"c{number}{long}" for number in range(count)), ",".join("1" * count)
        (folder / f"docs/{name}.csv").write_text(f"{names}\n{ones}\n", encoding="utf-8")
    async with agent(folder) as one:
        with pytest.raises(error, match=says):
            await one.call("query", **{"sql": "SELECT * FROM data", **asked})
