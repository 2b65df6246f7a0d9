"""The toolset `data`: convert, query, validate, profile. What they work on are child reads of their caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from octavo.core.errors import InvalidParams, TooLarge
from octavo.core.sizes import MIB
from octavo.core.tools import Block, Image, Text, ToolResult
from octavo.core.values import Entry
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address, repeated
from octavo.tools.builtin.answer_budget import Budget, Room
from octavo.tools.context import ToolContext
from octavo.tools.data.child import Work
from octavo.tools.registry import Tool
from octavo.tools.threads import in_thread

FORMATS: Final = ("json", "jsonl", "yaml", "toml", "csv", "xml", "parquet")
_ENDINGS: Final[Mapping[str, str]] = {
    "json": "json", "jsonl": "jsonl", "ndjson": "jsonl", "yaml": "yaml", "yml": "yaml", "toml": "toml", "csv": "csv",
    "tsv": "csv", "xml": "xml", "parquet": "parquet", "pq": "parquet", "sqlite": "sqlite", "sqlite3": "sqlite",
    "db": "sqlite",
}  # fmt: skip
_TYPES: Final[Mapping[str, str]] = {
    "application/json": "json", "application/yaml": "yaml", "text/csv": "csv", "application/xml": "xml",
    "text/xml": "xml", "application/toml": "toml",
}  # fmt: skip
_OPAQUE: Final = frozenset(("parquet", "sqlite"))  # no text as a whole, so nothing of it is hidden when it is read
_TABLES: Final = 10
_ROWS: Final = 1_000
_NAME: Final = re.compile(r"[^\W\d]\w{0,62}\Z")


class _Given(NamedTuple):
    """What is worked on; `hidden` are the texts in it that its caller may not see, and what it sees instead."""

    body: str | bytes
    format: str
    hidden: Mapping[str, str]


class _Data(NamedTuple):
    """The toolset, with its budgets and the process that does the work."""

    work: Work
    budget: Budget
    max_output: int

    async def convert(self, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        given = await self._read(ctx, asked["target"], asked.get("from"))
        to, place = asked["to"], asked.get("save_as")
        if to == "parquet" and place is None:
            raise InvalidParams("Parquet is no text: say with save_as where to write it")
        done = await self.work.do(
            "convert",
            {"formats": [given.format, to], "names": [asked["target"]], "hidden": [given.hidden]},
            [given.body],
            max_bytes=self.max_output,
        )
        if place is not None:
            written: str | bytes = done.body if to == "parquet" else done.body.decode("utf-8")
            entry = await ctx.write(address(place), written, mode="create")
            said = f"Wrote {repeated(address(place))}, {len(done.body):,} bytes{d.versioned(entry)}"
            return ToolResult(content=(Text(said),))
        text = done.body.decode("utf-8")
        if not Room(self.budget).take(text):
            raise TooLarge(
                f"The result has {len(done.body):,} bytes, more than an answer holds: write it with save_as, "
                "or take a part of the data with query",
                size=len(done.body), limit=self.budget.max_bytes,
            )  # fmt: skip
        return ToolResult(content=(Text(text),))

    async def query(self, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        wanted: dict[str, str] = dict(asked.get("tables", {}))
        if "target" in asked:
            wanted["data"] = asked["target"]
        if not wanted:
            raise InvalidParams('Say what to ask: a target, which is the table data, or tables: {"name": "target"}')
        for name in wanted:
            if not _NAME.match(name):
                raise InvalidParams(f"{name[:80]!r} is no name for a table: letters, digits and _")
        read = [await self._read(ctx, target, asked.get("from"), sqlite=True) for target in wanted.values()]
        formats = [one.format for one in read]
        if formats.count("sqlite") > 1:
            raise InvalidParams("Only one SQLite database at a time can be asked")
        header = {
            "formats": formats,
            "names": [*wanted],
            "sql": asked["sql"],
            "limit": asked.get("limit", 100),
            "hidden": [one.hidden for one in read],
        }
        done = await self.work.do("query", header, [one.body for one in read], max_bytes=self.max_output)
        answer = done.answer
        room, rows = Room(self.budget.told_twice), list[Any]()
        lines = [_line(answer["columns"])]
        if not room.take(*lines):
            raise TooLarge(f"The names of its {len(answer['columns'])} columns fill more than an answer: select fewer")
        for row in answer["rows"]:
            line = _line(row)
            if not room.take(line, "\n"):
                break
            rows.append(row)
            lines.append(line)
        more = bool(answer["more"]) or len(rows) < len(answer["rows"])
        if more:
            lines.append(
                f"[there are more than these {len(rows)} rows: ask for less, or go on with OFFSET {len(rows)}]"
            )
        return d.result("\n".join(lines), {"columns": answer["columns"], "rows": rows, "more": more})

    async def validate(self, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        if ("schema" in asked) is ("schema_target" in asked):
            raise InvalidParams("Give the schema itself, or schema_target, where it stands")
        given = [await self._read(ctx, asked["target"], asked.get("from"))]
        names = [asked["target"]]
        if "schema_target" in asked:
            given.append(await self._read(ctx, asked["schema_target"], None))
            names.append(asked["schema_target"])
        header: dict[str, Any] = {
            "formats": [one.format for one in given],
            "names": names,
            "schema": asked.get("schema"),
            "hidden": [one.hidden for one in given],
        }
        done = await self.work.do("validate", header, [one.body for one in given], max_bytes=self.max_output)
        problems = done.answer["problems"]
        lines = [f"{one['path'] or '/'}: {one['message']}" for one in problems]
        said = "It fits the schema." if done.answer["valid"] else "It does not fit the schema:\n" + "\n".join(lines)
        return d.result(said, {"valid": done.answer["valid"], "problems": problems})

    async def profile(self, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        given = await self._read(ctx, asked["target"], asked.get("from"))
        header = {
            "formats": [given.format],
            "names": [asked["target"]],
            "chart": asked.get("chart", True),
            "hidden": [given.hidden],
        }
        done = await self.work.do("profile", header, [given.body], max_bytes=self.max_output)
        answer = done.answer
        lines = [f"{answer['rows']:,} rows, {len(answer['columns']) + answer['left_out']} columns"]
        room, columns = Room(self.budget.told_twice), list[Any]()
        for column in answer["columns"]:
            line = _described(column)
            if not room.take(line, str(column)):
                break
            columns.append(column)
            lines.append(line)
        left_out = answer["left_out"] + len(answer["columns"]) - len(columns)
        if left_out:
            lines.append(f"[{left_out} columns more: select some with query first]")
        if asked.get("chart", True) and not answer["chart"]:
            lines.append("[no chart: there is nothing to draw, or the server is without its extra images]")
        blocks: list[Block] = [Text("\n".join(lines))]
        if answer["chart"]:
            blocks.append(Image(done.body, "image/png"))
        structured = {"rows": answer["rows"], "columns": columns, "left_out": left_out}
        return ToolResult(content=tuple(blocks), structured=structured)

    async def _read(self, ctx: ToolContext, target: str, said: str | None, *, sqlite: bool = False) -> _Given:
        content = await ctx.read(address(target))
        ref, body = content.entry.ref, content.body
        format = _format(content.entry, target, said, sqlite=sqlite)
        if format not in _OPAQUE:
            return _Given(body, format, {})  # a text is read as its caller may see it
        header = {"formats": [format], "names": [target]}
        done = await self.work.do("texts", header, [body], max_bytes=self.max_output)
        texts: Mapping[str, list[str]] = done.answer["texts"]

        def hidden() -> Mapping[str, str]:
            return {
                text: shown
                for name, these in texts.items()
                for text in these
                if (shown := ctx.seen(ref, name, text)) != text
            }

        return _Given(body, format, await in_thread(hidden))


def _format(entry: Entry, target: str, said: str | None, *, sqlite: bool) -> str:
    """As it was said, by its ending, or by its media type."""
    found = said or _ENDINGS.get(entry.ref.name.rpartition(".")[2].lower()) or _TYPES.get(entry.mime_type)
    if found is None or (found == "sqlite" and not sqlite):
        known = (*FORMATS, "sqlite") if sqlite else FORMATS
        raise InvalidParams(f"It is not clear what {target} is: say it with from, one of {', '.join(known)}")
    return found


def _line(cells: list[Any]) -> str:
    """As CSV writes it."""
    return ",".join(_cell("" if value is None else str(value)) for value in cells)


def _cell(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if re.search(r'[",\r\n]', text) else text


def _described(column: Mapping[str, Any]) -> str:
    parts = [f"{column['name']}: {column['type']}", f"{column['missing']} missing", f"{column['distinct']} distinct"]
    if "mean" in column:
        quartiles = ", ".join(f"{value:g}" for value in column["quartiles"])
        parts.append(f"{column['min']:g} to {column['max']:g}, mean {column['mean']:g}, quartiles {quartiles}")
    elif column.get("top"):
        parts.append("top " + ", ".join(f"{one['value']} ({one['count']})" for one in column["top"]))
    return "; ".join(parts)


def data_tools(*, write: bool, budget: Budget, max_input: int, seconds: float) -> list[Tool]:
    """The toolset `data`. Inputs are as large as a read may be; the work may take as long as one."""
    data = _Data(Work(seconds=seconds), budget, max_output=max(8 * max_input, MIB))
    target = d.said(d.FILLED, "path or URI of a file")
    source = d.said(d.one_of(*FORMATS), "its format; default: by its name")
    schema = {"type": "object", "description": "JSON Schema (2020-12)"}
    convert: dict[str, d.Schema] = {"target": target, "to": d.one_of(*FORMATS), "from": source}
    if write:
        convert["save_as"] = d.said(d.FILLED, "new file for the result; needed for parquet")
    return [
        d.tool(
            "validate", "Validate data",
            "Checks a data file against a JSON Schema; tells the first problems with their places.",
            data.validate, d.READS,
            {
                "target": target, "schema": schema, "from": source,
                "schema_target": d.said(d.FILLED, "file with the schema"),
            },
            required=("target",),
            gives=d.an_object({"valid": d.FLAG, "problems": d.a_list()}, ("valid", "problems")),
        ),
        d.tool(
            "convert", "Convert data",
            "Gives a data file in another format: JSON, JSON lines, YAML, TOML, CSV, XML, Parquet."
            + (" save_as writes a new file." if write else ""),
            data.convert, d.ADDS if write else d.READS, convert, required=("target", "to"),
        ),
        d.tool(
            "profile", "Profile data",
            "Tells what a table is like: columns, types, missing and distinct values, distribution, with a chart.",
            data.profile, d.READS, {"target": target, "from": source, "chart": d.said(d.FLAG, "default: true")},
            required=("target",),
            gives=d.an_object({"rows": d.WHOLE, "columns": d.a_list(), "left_out": d.WHOLE}, ("rows", "columns")),
        ),
        d.tool(
            "query", "Query data",
            "Runs one SQL SELECT (SQLite dialect) over CSV, JSON, YAML, XML, Parquet files or one SQLite database. "
            "A target is the table data; tables names several.",
            data.query, d.READS,
            {
                "sql": d.said({"type": "string", "maxLength": 20_000}, "one SELECT"),
                "target": target,
                "tables": {
                    "type": "object", "additionalProperties": d.TEXT, "maxProperties": _TABLES,
                    "description": "table name: path or URI",
                },
                "from": d.said(d.one_of(*FORMATS, "sqlite"), "format of all of them; default: by their names"),
                "limit": d.said(d.at_least(1, _ROWS), "rows, default 100"),
            },
            required=("sql",),
            gives=d.an_object(
                {"columns": d.a_list(d.TEXT), "rows": d.a_list({"type": "array"}), "more": d.FLAG},
                ("columns", "rows", "more"),
            ),
        ),
    ]  # fmt: skip
