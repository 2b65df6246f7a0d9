"""`octavo tools`, `octavo watch --calls`, JSON logs, and what `octavo doctor` finds worth a second look."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from octavo.app.configuration import load_text
from octavo.cli._logs import Structured
from octavo.cli.resources import follow
from octavo.stores.audit.query import Recent

pytestmark = pytest.mark.seed("T8")

CONFIG = """
version: 1
sources: {docs: {kind: file, roots: [./docs], write: true}}
agents:
  brand: {key_sha256: "%s"}
  idle: {}
policy:
  - {who: brand, may: [list, read, invoke], what: ["file://*", "tool://write"]}
""" % ("a" * 64)


@pytest.fixture
def served(empty: Path) -> Path:
    (empty / "docs").mkdir()
    (empty / "docs" / "a.md").write_text("hello\n", encoding="utf-8")
    (empty / "octavo.yaml").write_text(CONFIG, encoding="utf-8")
    return empty


def test_the_tools_of_an_agent_are_those_that_it_may_use(run: Run, served: Path) -> None:
    told = json.loads(run("tools", "--as", "brand", "--json").stdout)
    offered = {one["name"]: one for one in told["tools"]}
    assert "read" in offered and "write" in offered and "delete" not in offered
    assert not offered["write"]["readOnly"] and offered["read"]["description"]
    assert told["tokens"] == sum(one["tokens"] for one in told["tools"]) > 0
    assert "read  (" in run("tools", "--as", "brand").stdout
    assert not (served / ".octavo").exists()


def test_calls_are_told_as_they_are_recorded(run: Run, served: Path) -> None:
    assert run("cat", "file://a.md", "--as", "brand").exit_code == 0  # before: not told
    loaded = load_text(CONFIG, file=served / "octavo.yaml", environ={})
    told: list[dict[str, object]] = []
    ready = threading.Event()

    def show(record: dict[str, object]) -> bool:
        told.append(record)
        return False

    watching = threading.Thread(target=follow, args=(loaded, show), kwargs={"ready": ready.set}, daemon=True)
    watching.start()
    assert ready.wait(10)
    assert run("cat", "file://missing.md", "--as", "brand").exit_code == 1
    watching.join(10)
    assert [(one["who"], one["op"], one["uri"], one["outcome"]) for one in told] == [
        ("brand", "read", "file://missing.md", "not_found")
    ]


def test_only_whole_records_are_told_and_no_line_of_the_chain(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"chain":"open"}\n{"op":"old"}\n')
    recent = Recent(tmp_path)
    with file.open("ab") as more:
        more.write(b'{"op":"read"}\n{"chain":"batch"}\nnonsense\n{"op":"li')
    assert [*recent.fresh()] == [{"op": "read"}]
    with file.open("ab") as more:
        more.write(b'st"}\n')
    (tmp_path / "y.jsonl").write_bytes(b'{"op":"new"}\n')
    assert [*recent.fresh()] == [{"op": "list"}, {"op": "new"}]


def test_a_log_line_as_json_hides_secrets_too() -> None:
    secret = "ghp_" + "wK3vTq8ZbN5xRj2LcP7mHd4FgY9sAeU6oVtB"
    record = logging.LogRecord("octavo.x", logging.ERROR, "", 0, "token %s", (secret,), None)
    told = json.loads(Structured("%(message)s").format(record))
    assert (told["level"], told["logger"]) == ("error", "octavo.x")
    assert secret not in told["message"] and told["message"].startswith("token ")


def test_the_doctor_mentions_what_is_worth_a_second_look(run: Run, served: Path) -> None:
    with (served / "octavo.yaml").open("a", encoding="utf-8") as file:
        file.write("redact: {rules: off}\naudit: {fail_closed: false}\n")
        file.write("serve: {http: {trusted_proxies: [10.0.0.0/8]}}\n")
    result = run("doctor", "--json")
    told = {(one["about"], one["state"]): one for one in json.loads(result.stdout)["findings"]}
    assert result.exit_code == 0, result.stdout
    for about in ("redaction", "audit", "proxies", "policy"):
        assert told[about, "less"]["advice"]
    assert "idle" in told["policy", "less"]["found"]
    assert told["source", "ok"]["found"] == "file answers"


def test_the_doctor_mentions_keys_that_end_soon(run: Run, served: Path) -> None:
    assert run("keys", "new", "brand", "--days", "1").exit_code == 0
    found = [one for one in json.loads(run("doctor", "--json").stdout)["findings"] if one["about"] == "keys"]
    assert [one["state"] for one in found] == ["less"] and "brand" in found[0]["found"]
