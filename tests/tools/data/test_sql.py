"""SQL over tables in memory: what it answers, and that no statement reaches anything else (T7)."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import InvalidParams
from octavo.tools.data.sql import query

pytestmark = pytest.mark.seed("T7")

CANARY = "canary-7f3a"
SALES = b"region,amount\nSeoul,10\nBusan,20\nSeoul,5\n"


def ask(sql: str, limit: int = 100, **tables: tuple[str, bytes]) -> dict[str, Any]:
    tables = tables or {"data": ("csv", SALES)}
    asked = {"formats": [format for format, _ in tables.values()], "names": [*tables], "sql": sql, "limit": limit}
    return dict(query(asked, [raw for _, raw in tables.values()])[0])


def test_tables_are_joined_grouped_and_counted() -> None:
    regions = json.dumps([{"region": "Seoul", "lead": "Kim", "tags": ["a", "b"]}, {"region": "Busan", "lead": "Lee"}])
    answer = ask(
        "SELECT lead, sum(amount) AS total FROM sales JOIN r USING (region) GROUP BY lead ORDER BY total DESC",
        sales=("csv", SALES),
        r=("json", regions.encode()),
    )
    assert (answer["columns"], answer["rows"], answer["more"]) == (["lead", "total"], [["Lee", 20], ["Kim", 15]], False)
    tags = ask("SELECT value FROM r, json_each(r.tags)", r=("json", regions.encode()))
    assert tags["rows"] == [["a"], ["b"]]
    assert ask("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 5) SELECT count(*) FROM n")[
        "rows"
    ] == [[5]]
    assert ask("SELECT row_number() OVER (ORDER BY amount) FROM data", limit=2)["more"] is True


def database(*statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        return connection.serialize()


def test_a_database_is_asked_beside_other_files() -> None:
    raw = database("CREATE TABLE staff (name, region)", "INSERT INTO staff VALUES ('Haru', 'Seoul')")
    answer = ask("SELECT name, count(*) FROM staff JOIN sales USING (region)", db=("sqlite", raw), sales=("csv", SALES))
    assert answer["rows"] == [["Haru", 2]]
    with pytest.raises(InvalidParams, match="no SQLite database"):
        ask("SELECT 1", db=("sqlite", b"garbage" * 100))


@pytest.mark.parametrize("sql", ["SELECT typo FROM data", "SELECT * FROM dta", "SELEC", "SELECT 1; SELECT 2", ""])
def test_a_mistake_is_told_with_what_there_is(sql: str) -> None:
    with pytest.raises(InvalidParams, match=r"data \(region, amount\)|one statement|SELECT"):
        ask(sql)


def escapes(canary: Path, new: Path) -> list[str]:
    """Statements that would read, write, load or tell more than the tables."""
    read, write = str(canary), str(new)
    functions = [
        f"readfile('{read}')", f"writefile('{write}', 'x')", f"load_extension('{read}')", f"edit('{read}')",
        f"fsdir('{read}')", "fts3_tokenizer('simple')", "fts3_tokenizer('simple', x'00')",
        "sqlite_compileoption_get(1)", "sqlite_source_id()", "randomblob(1000000000)", "zeroblob(1000000000)",
        "sqlite_log(1, 'x')", f"importcsv('{read}')", f"lsmode('{read}')", "getenv('HOME')", "system('id')",
        "shell('id')", "http_get('x')", f"read_csv_auto('{read}')", f"read_text('{read}')",
        f"glob('{read}*')||readfile('{read}')", "eval('SELECT 1')", "sha3_query('SELECT 1')", "geopoly_debug(1)",
        "icu_load_collation('a','b')", "rtreecheck('a')", "last_insert_rowid()", "changes()", "total_changes()",
        "sqlite_offset(amount)", "unknown_function(1)", "snippet(data)", "match('a','b')",
    ]  # fmt: skip
    pragmas = [
        "database_list", "compile_options", "function_list", "module_list", "table_info('data')",
        "temp_store_directory", f"temp_store_directory='{new.parent}'", "journal_mode=WAL", "query_only=OFF",
        "trusted_schema=ON", "writable_schema=ON", "data_store_directory", "mmap_size=99999999", "integrity_check",
        "page_count", "key='x'", f"wal_checkpoint('{write}')", "hard_heap_limit=1", "threads=8",
        "cache_size=-999999999", "user_version=1",
    ]  # fmt: skip
    changing = [
        "CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)", "CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON data (amount)", "CREATE TRIGGER t AFTER INSERT ON data BEGIN SELECT 1; END",
        "DROP TABLE data", "ALTER TABLE data ADD b", "INSERT INTO data VALUES (1, 2)", "UPDATE data SET amount = 0",
        "DELETE FROM data", "REPLACE INTO data VALUES (1, 2)", "WITH x AS (SELECT 1) INSERT INTO data SELECT 1, 1",
        "INSERT INTO data VALUES (1, 2) RETURNING *", "DELETE FROM sqlite_temp_master",
        "UPDATE sqlite_temp_master SET sql = 'x'", "REINDEX", "ANALYZE", "VACUUM", f"VACUUM INTO '{write}'",
        f"VACUUM main INTO '{write}'", f"ATTACH '{read}' AS a", f"ATTACH '{write}' AS a",
        f"ATTACH 'file:{write}?mode=rwc' AS a", "ATTACH ':memory:' AS a", "DETACH temp", "BEGIN", "COMMIT",
        "ROLLBACK", "SAVEPOINT a", "RELEASE a", "EXPLAIN INSERT INTO data VALUES (1, 2)",
        f"CREATE VIRTUAL TABLE v USING csv(filename='{read}')", "CREATE VIRTUAL TABLE v USING fts5(a)",
        f"CREATE VIRTUAL TABLE v USING zipfile('{read}')", "CREATE VIRTUAL TABLE v USING dbstat",
        "CREATE VIRTUAL TABLE v USING rtree(a, b, c)",
    ]  # fmt: skip
    tables = [
        "sqlite_dbpage", "dbstat", "bytecode('SELECT 1')", "tables_used('SELECT 1')", "sqlite_stmt",
        "generate_series(1, 9)", f"zipfile('{read}')", f"fsdir('{read}')", f"'{read}'", f'"{read}"',
        f"read_csv('{read}')", "pragma_database_list", "pragma_function_list", "pragma_module_list",
        "pragma_compile_options", "pragma_table_info('data')", "pragma_temp_store_directory", "completion('a')",
        "carray(1)", "sqlite_sequence", "information_schema.tables",
    ]  # fmt: skip
    found = [f"SELECT {function} FROM data" for function in functions]
    found += [f"SELECT amount FROM data WHERE {function}" for function in functions]
    found += [f"SELECT (SELECT max({function})) FROM data" for function in functions]
    found += [f"WITH x AS (SELECT {function} AS a) SELECT a FROM x" for function in functions]
    found += [f"PRAGMA {pragma}" for pragma in pragmas]
    found += changing
    found += [f"SELECT * FROM {table}" for table in tables]
    found += [f"SELECT * FROM data JOIN {table}" for table in tables]
    found += [f"SELECT * FROM data UNION SELECT * FROM {table}" for table in tables]
    hidden = [text.replace(" ", "/**/") for text in found if "'" not in text]
    return [*found, *hidden, *(f"SELECT 1; {text}" for text in found), *(f"{text};" for text in found)]


def test_no_statement_of_the_corpus_reaches_a_file_or_changes_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the engine's own rules alone: nothing else keeps it back in this process."""
    monkeypatch.chdir(tmp_path)
    canary = tmp_path / "canary.db"
    canary.write_text(CANARY, encoding="utf-8")
    corpus = escapes(canary, tmp_path / "new.db")
    assert len(corpus) > 700
    for sql in corpus:
        with pytest.raises(InvalidParams) as refused:
            ask(sql)
        assert CANARY not in str(refused.value), sql
    assert [path.name for path in tmp_path.iterdir()] == ["canary.db"]
    assert canary.read_text(encoding="utf-8") == CANARY
    assert ask("SELECT count(*), sum(amount) FROM data")["rows"] == [[3, 35]]


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE VIEW v AS SELECT load_extension('x') AS a"],
        ["CREATE VIEW v AS SELECT a FROM pragma_database_list"],
        ["CREATE TABLE t (a)", "CREATE VIEW v AS SELECT readfile('x') AS a FROM t"],
    ],
)
def test_a_database_that_brings_its_own_statements_gets_no_further(statements: list[str]) -> None:
    with pytest.raises(InvalidParams):
        ask("SELECT a FROM v", db=("sqlite", database(*statements)))


SEALED = """
import json, os, socket, sys
from octavo.tools.data import sql, worker
worker._limit(1 << 30, 5)
worker._seal(2)
refused = []
for name, attempt in {
    "read": lambda: open("/etc/hostname"), "write": lambda: open(sys.argv[1], "w"), "connect": socket.socket,
    "pipe": os.pipe, "dup": lambda: os.dup(0),
    "sqlite": lambda: sql.sqlite3.connect(sys.argv[1]).execute("CREATE TABLE a (b)"),
}.items():
    try:
        attempt()
    except (OSError, sql.sqlite3.Error):
        refused.append(name)
print(json.dumps(refused))
"""


def test_the_process_that_asks_can_open_nothing_at_all(tmp_path: Path) -> None:
    """The second wall, by itself: whatever the engine would do, there is no descriptor for it."""
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", SEALED, str(tmp_path / "new")],
        capture_output=True, text=True, check=True, timeout=60, env={"PYTHONPATH": path},
    )  # fmt: skip
    assert json.loads(done.stdout) == ["read", "write", "connect", "pipe", "dup", "sqlite"]
    assert [*tmp_path.iterdir()] == []
