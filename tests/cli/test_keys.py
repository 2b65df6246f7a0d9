"""`octavo keys`: made, listed, revoked, and recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

pytestmark = pytest.mark.seed("O14")

CONFIG = """
sources: {mem: {kind: memory, scheme: mem, resources: {one: {text: content}}}}
agents:
  agent-brand: {roles: [marketing]}
  agent-old: {key_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
"""


@pytest.fixture
def site(empty: Path) -> Path:
    (empty / "octavo.yaml").write_text(CONFIG, encoding="utf-8")
    return empty


def test_a_key_is_made_listed_and_revoked(run: Run, site: Path) -> None:
    made = json.loads(run("keys", "new", "agent-brand", "--json").stdout)
    assert made["agent"] == "agent-brand" and made["key"].startswith(f"octavo_{made['id']}_")
    listed = run("keys", "list")
    assert made["id"] in listed.stdout and "configuration" in listed.stdout and made["key"] not in listed.output
    rows = json.loads(run("keys", "list", "--json").stdout)["keys"]
    assert [(row["agent"], row["state"]) for row in rows] == [("agent-old", "live"), ("agent-brand", "live")]
    assert run("keys", "revoke", made["id"]).exit_code == 0
    assert made["id"] not in run("keys", "list").stdout
    audit = "".join(path.read_text(encoding="utf-8") for path in (site / ".octavo" / "audit").iterdir())
    assert f'"op":"keys new","outcome":"ok","key":"{made["id"]}"' in audit and '"op":"keys revoke"' in audit
    written = b"".join(path.read_bytes() for path in site.rglob("*") if path.is_file())
    assert made["key"].encode() not in written


def test_the_key_alone_is_on_stdout(run: Run, site: Path) -> None:
    result = run("keys", "new", "agent-brand", "--days", "1", "--overlap", "0")
    assert result.stdout.startswith("octavo_") and len(result.stdout.splitlines()) == 1
    assert "not shown again" in result.stderr


def test_what_cannot_be_done_is_said(run: Run, site: Path) -> None:
    assert "there is no agent ghost" in run("keys", "new", "ghost").stderr
    assert "is no agent" in run("keys", "new", "local").stderr
    assert run("keys", "revoke", "nope").exit_code == 1
    for _ in range(2):
        assert run("keys", "new", "agent-brand").exit_code == 0
    third = run("keys", "new", "agent-brand")
    assert third.exit_code == 1 and "has 2 keys already" in third.stderr


def test_a_stored_key_is_enough_to_serve_over_http(run: Run, site: Path) -> None:
    """Where no key is in the configuration itself."""
    from octavo.app.configuration import load
    from octavo.cli.serve import guard
    from octavo.config.units import parse_bind

    (site / "octavo.yaml").write_text(CONFIG.partition("  agent-old")[0], encoding="utf-8")
    assert run("serve", "--http", "127.0.0.1:0").exit_code == 2
    run("keys", "new", "agent-brand")
    guard(load(site / "octavo.yaml"), parse_bind("127.0.0.1:0"), as_who=None, no_auth=False)


def test_the_first_key_is_made_where_an_address_that_others_reach_needs_it(run: Run, site: Path) -> None:
    text = CONFIG.partition("  agent-old")[0] + "serve: {http: {bind: '0.0.0.0:8481'}}\n"
    (site / "octavo.yaml").write_text(text, encoding="utf-8")
    refused = run("check")
    assert refused.exit_code == 1 and "octavo keys new AGENT" in refused.output
    assert run("serve").exit_code == 2  # nothing but the commands for keys is lenient
    assert run("keys", "list").exit_code == 0
    made = run("keys", "new", "agent-brand")
    assert made.exit_code == 0 and made.stdout.startswith("octavo_")
    assert "no agent has a key" in made.stderr  # as it was when the command began
    assert run("check").exit_code == 0


def test_only_the_missing_key_is_forgiven(run: Run, site: Path) -> None:
    text = CONFIG.partition("  agent-old")[0] + "serve: {http: {bind: '0.0.0.0:8481'}}\nlimits: {wrong: 1}\n"
    (site / "octavo.yaml").write_text(text, encoding="utf-8")
    assert run("keys", "new", "agent-brand").exit_code == 2


@pytest.mark.seed("A6")
def test_a_key_of_ours_is_hidden_wherever_it_stands(run: Run, site: Path) -> None:
    key = json.loads(run("keys", "new", "agent-brand", "--json").stdout)["key"]
    (site / "notes").mkdir()
    (site / "notes" / "a.md").write_text(f"export OCTAVO_KEY={key}\nthe key {key}\n`{key}`\n?key={key}\n", "utf-8")
    with (site / "octavo.yaml").open("a", encoding="utf-8") as config:
        config.write("policy: [{who: '*', may: '*', what: '**'}]\n")
    text = (site / "octavo.yaml").read_text(encoding="utf-8")
    (site / "octavo.yaml").write_text(
        text.replace("sources: {", "sources: {f: {kind: file, roots: [./notes]}, ", 1), "utf-8"
    )
    shown = run("cat", "file:///notes/a.md")
    assert shown.exit_code == 0, shown.output
    assert key not in shown.output and shown.stdout.count("[redacted:octavo-key:") == 4
