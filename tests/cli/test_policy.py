"""`octavo policy test`, `octavo policy diff`, and `explain` where rules have conditions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run

CONFIGURATION = """
version: 1
sources:
  sops:
    kind: memory
    scheme: sop
    resources:
      brand/guide: {text: guide, metadata: {status: active}}
      brand/plan: {text: plan, metadata: {status: draft}}
agents:
  agent-brand: {roles: [marketing]}
  agent-ops: {}
policy:
  - {who: "role:marketing", may: [list, read], what: "sop://*", when: {metadata: {status: active}}}
  - {who: agent-ops, may: "*", what: "sop://*", when: {time: {days: mon-fri, hours: "09:00-18:00", zone: Asia/Seoul}}}
  - {who: "*", may: "*", what: "sop://board/*", effect: deny, hide: true}
  - {who: "*", may: invoke, what: "tool://*", when: {arguments: {path: "docs/*"}}}
  - {who: "*", may: invoke, what: "tool://*", when: {arguments: {path: "docs/pay/*"}}, approve: {by: 2}}
"""
RIGHT = """
decisions:
  - {who: agent-brand, may: [list, read], what: "sop://brand/guide", expect: allow}
  - {who: ["role:marketing", agent-brand], may: read, what: ["sop://brand/plan", "sop://none"], expect: deny}
  - {who: agent-brand, may: read, what: "sop://brand/plan", metadata: {status: active}, expect: allow}
  - {who: agent-ops, may: write, what: "sop://x", at: "2026-11-16T10:00+09:00", expect: allow}
  - {who: agent-ops, may: write, what: "sop://x", at: "2026-11-15T10:00+09:00", expect: deny}
  - {who: local, may: read, what: "sop://board/minutes", expect: hidden}
  - {who: local, may: invoke, what: "tool://run", arguments: {path: docs/a}, expect: allow}
  - {who: local, may: invoke, what: "tool://run", arguments: {path: etc}, expect: deny}
  - {who: local, may: invoke, what: "tool://run", expect: deny}
  - {who: local, may: invoke, what: "tool://run", arguments: {path: docs/pay/a}, expect: approve}
"""


@pytest.fixture
def configured(empty: Path) -> Path:
    (empty / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    return empty


@pytest.mark.seed("O14")
def test_a_table_of_expected_decisions_is_held_against_the_policy(run: Run, configured: Path) -> None:
    (configured / "table.yaml").write_text(RIGHT, encoding="utf-8")
    result = run("policy", "test", "table.yaml")
    assert (result.exit_code, result.stderr) == (0, "octavo: 14 decisions, none of them wrong\n")
    assert not (configured / ".octavo").exists()


def test_a_wrong_row_is_told_by_file_and_line(run: Run, configured: Path) -> None:
    (configured / "table.yaml").write_text(RIGHT.replace("expect: hidden", "expect: allow"), encoding="utf-8")
    result = run("policy", "test", "table.yaml")
    assert result.exit_code == 1
    said = "table.yaml:8: local read sop://board/minutes: expected allow, is hidden by policy[2]"
    assert result.stderr == f"octavo: error: {said}\noctavo: 14 decisions, 1 of them wrong\n"
    facts = json.loads(run("policy", "test", "table.yaml", "--json").stdout)
    assert (facts["ok"], facts["decisions"], facts["wrong"][0]["line"], facts["wrong"][0]["got"]) == (
        False,
        14,
        8,
        "hidden",
    )


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("decisions: []\n", "table.yaml:1:1: decisions: must not be empty"),
        ("decisons: []\n", "unknown key"),
        ("- a\n", "must be a mapping"),
        ("decisions:\n  - {who: a, may: read, what: 'sop://x'}\n", "table.yaml:2:5: decisions[0].expect: is required"),
        ("decisions:\n  - {who: a, may: raed, what: 'sop://x', expect: deny}\n", "decisions[0].may[0]: must be 'list'"),
        ("decisions:\n  - {who: a, may: read, what: x, expect: deny}\n", "decisions[0].what[0]: is no address"),
        ("decisions:\n  - {who: a, may: read, what: 'sop://x', expect: deny, at: noon}\n", "must be a time such as"),
        ("decisions:\n  - {who: a, may: read, what: 'sop://x', expect: deny, if: 1}\n", "unknown key; a row has who"),
    ],
)
def test_a_bad_table_is_told_and_nothing_tested(run: Run, configured: Path, table: str, says: str) -> None:
    (configured / "table.yaml").write_text(table, encoding="utf-8")
    result = run("policy", "test", "table.yaml")
    assert result.exit_code != 0
    assert says in result.stderr
    assert "decisions," not in result.stderr


def test_an_agent_that_there_is_not_is_a_wrong_row(run: Run, configured: Path) -> None:
    row = "decisions:\n  - {who: ghost, may: read, what: 'sop://x', expect: allow}\n"
    (configured / "table.yaml").write_text(row, encoding="utf-8")
    result = run("policy", "test", "table.yaml")
    assert result.exit_code == 1
    assert "Unknown agent 'ghost'" in result.stderr


@pytest.mark.seed("O14")
def test_diff_says_what_changes_for_whom(run: Run, configured: Path) -> None:
    changed = CONFIGURATION.replace("status: active}}}", "status: [active, draft]}}}").replace(
        'who: "*", may: "*", what: "sop://board/*", effect: deny, hide: true',
        'who: agent-brand, may: "*", what: "sop://board/*", effect: deny',
    )
    (configured / "new.yaml").write_text(changed.replace("agent-ops: {}", "agent-ops: {roles: [marketing]}"), "utf-8")
    result = run("policy", "diff", "octavo.yaml", "new.yaml", "--json")
    found = {
        (one["who"], one["may"], one["what"]): (one["old"], one["new"])
        for one in json.loads(result.stdout)["differences"]
    }
    assert result.exit_code == 1
    active = "allow when status is active; else deny"
    either = "allow when status is active or draft; else deny"
    assert found["agent-brand", "read", "sop://brand/plan"] == (active, either)
    assert found["agent-brand", "read", "sop://board"] == ("hidden", "deny")
    assert found["anybody else", "read", "sop://board/*"] == ("hidden", "deny")
    assert ("agent-brand", "write", "sop://brand/plan") not in found
    assert found["agent-ops", "read", "sop://brand/guide"][1].count("allow when") == 2
    told = run("policy", "diff", "octavo.yaml", "new.yaml")
    assert "anybody else: list, read, search, watch, write, delete, complete: hidden -> deny\n" in told.stdout


def test_diff_of_the_same_rules_is_silent(run: Run, configured: Path) -> None:
    (configured / "same.yaml").write_text(CONFIGURATION + "# the same\n", encoding="utf-8")
    result = run("policy", "diff", "octavo.yaml", "same.yaml")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "octavo: both decide the same\n")


def test_explain_says_which_conditions_hold(run: Run, configured: Path) -> None:
    result = run("explain", "agent-brand", "read", "sop://brand/plan")
    assert result.exit_code == 1
    assert result.stdout == (
        "agent-brand may not read sop://brand/plan\n"
        "  policy[0]: allow when status is active: does not hold\n"
        "  why: no rule allows it\n"
    )
    allowed = run("explain", "agent-ops", "delete", "sop://x", "--at", "2026-11-16T10:00+09:00", "--json")
    facts = json.loads(allowed.stdout)
    assert (allowed.exit_code, facts["allowed"], facts["index"]) == (0, True, 1)
    assert facts["conditions"] == [
        {
            "rule": "policy[1]",
            "effect": "allow",
            "condition": "when the time is mon, tue, wed, thu, fri 09:00-18:00 (Asia/Seoul)",
            "holds": True,
        }
    ]
    called = run("explain", "local", "invoke", "tool://run", "--argument", "path=docs/a")
    assert called.exit_code == 0
    unknown = run("explain", "local", "invoke", "tool://run")
    assert "when argument path is docs/*: cannot be known" in unknown.stdout
    assert run("explain", "local", "invoke", "tool://run", "--argument", "path").exit_code == 2
    assert run("explain", "local", "invoke", "tool://run", "--at", "noon").exit_code == 2


def test_explain_says_who_is_asked(run: Run, configured: Path) -> None:
    asked = ["explain", "agent-ops", "invoke", "tool://run", "--argument", "path=docs/pay/a"]
    assert "asked before each: 2 people" in run(*asked).stdout
    assert json.loads(run(*asked, "--json").stdout)["people"] == 2
    assert json.loads(run(*asked[:-1], "path=docs/a", "--json").stdout)["people"] is None


def test_diff_says_where_a_human_is_asked_otherwise(run: Run, configured: Path) -> None:
    old, new = configured / "octavo.yaml", configured / "new.yaml"
    base = CONFIGURATION.partition("policy:")[0]
    rule = "policy:\n  - {who: agent-ops, may: '*', what: 'sop://*'APPROVE}\n"
    old.write_text(base + rule.replace("APPROVE", ""), encoding="utf-8")
    new.write_text(base + rule.replace("APPROVE", ", approve: human"), encoding="utf-8")
    told = json.loads(run("policy", "diff", str(old), str(new), "--json").stdout)
    changed = {
        (one["who"], one["may"]): one["new"] for one in told["differences"] if one["what"] == "sop://brand/guide"
    }
    assert changed == {("agent-ops", verb): "allow after a human has" for verb in ("write", "delete")}


def test_diff_says_whose_client_answers_no_more(run: Run, configured: Path) -> None:
    rule = '  - {who: agent-ops, may: approve, what: "tool://*", effect: deny}\n'
    (configured / "new.yaml").write_text(CONFIGURATION + rule, encoding="utf-8")
    told = json.loads(run("policy", "diff", "octavo.yaml", "new.yaml", "--json").stdout)["differences"]
    assert {(one["who"], one["may"], one["old"], one["new"]) for one in told} == {
        ("agent-ops", "approve", "allow", "deny")
    }
    assert run("explain", "agent-ops", "approve", "tool://run").exit_code == 0


def test_diff_says_what_is_believed_and_asked_about_otherwise(run: Run, configured: Path) -> None:
    old = 'labels:\n  - {what: "sop://brand/plan", integrity: untrusted}\n'
    new = """
labels:
  - {what: "sop://brand/guide", integrity: untrusted, confidentiality: internal}
  - {what: "tool://fetch", integrity: untrusted}
approval: {after_untrusted: 8h}
"""
    (configured / "octavo.yaml").write_text(CONFIGURATION + old, encoding="utf-8")
    (configured / "new.yaml").write_text(CONFIGURATION + new, encoding="utf-8")
    result = run("policy", "diff", "octavo.yaml", "new.yaml", "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == 1 and told["differences"] == []
    assert {(one["key"], one["what"], one["old"], one["new"]) for one in told["otherwise"]} == {
        ("integrity", "sop://brand/plan", "untrusted", ""),
        ("integrity", "sop://brand/guide", "", "untrusted"),
        ("confidentiality", "sop://brand/guide", "", "internal"),
        ("integrity", "tool://fetch", "", "untrusted"),
        ("approval.after_untrusted", "", "", "8h"),
    }
    lines = run("policy", "diff", "octavo.yaml", "new.yaml").stdout
    assert "integrity: untrusted -> nothing said\n  sop://brand/plan\n" in lines
    assert "approval.after_untrusted: nothing said -> 8h\n" in lines


@pytest.mark.seed("F1")
def test_a_diff_names_files_as_lists_name_them(run: Run, empty: Path) -> None:
    for root in ("work", "other"):
        (empty / root).mkdir()
        (empty / root / "a.md").write_text(root, encoding="utf-8")
    old = "version: 1\nsources: {w: {kind: file, roots: [./work, ./other]}}\nagents: {ann: {}}\npolicy:\n"
    (empty / "octavo.yaml").write_text(old + '  - {who: ann, may: read, what: "file://*"}\n', encoding="utf-8")
    (empty / "new.yaml").write_text(old + '  - {who: ann, may: list, what: "file://*"}\n', encoding="utf-8")
    told = json.loads(run("policy", "diff", "octavo.yaml", "new.yaml", "--json").stdout)["differences"]
    files = {one["what"] for one in told if "a.md" in one["what"]}
    assert files == {"file:///work/a.md", "file:///other/a.md"}
