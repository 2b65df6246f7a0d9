"""Rules that load and do not do what they seem to are told of, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.config.load import load_text

SOURCES = """
sources:
  files: {kind: file, roots: [./files]}
  store: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: store, path: sops}
agents:
  agent-brand: {roles: [marketing]}
  agent-ops: {}
policy:
"""
READER = '  - {who: "role:marketing", may: [list, read], what: "sop://*"}\n'


def warnings(base: Path, rules: str) -> list[tuple[str, str]]:
    for folder in ("files", "handbook"):
        (base / folder).mkdir(exist_ok=True)
    return [
        (one.key, one.message) for one in load_text(SOURCES + rules, file=base / "octavo.yaml", environ={}).warnings
    ]


@pytest.mark.parametrize(
    ("rules", "key", "says"),
    [
        # contradict
        (
            READER + '  - {who: "*", may: [read, list, search], what: "**", effect: deny}\n',
            "policy[0]",
            "has no effect: policy[1] denies all of it",
        ),
        (
            '  - {who: agent-brand, may: read, what: "sop://hr/pay"}\n'
            '  - {who: agent-ops, may: read, what: "sop://*"}\n'
            '  - {who: "role:marketing", may: "*", what: "sop://hr/*", effect: deny}\n',
            "policy[0]",
            "has no effect: policy[2] denies all of it",
        ),
        # shadowed
        (
            READER + '  - {who: agent-brand, may: read, what: ["sop://hr/*", "sop://a"]}\n',
            "policy[1]",
            "adds nothing to policy[0], which is wider",
        ),
        (
            READER + '  - {who: agent-brand, may: read, what: "sop://*", when: {time: {days: mon}}}\n',
            "policy[1]",
            "adds nothing to policy[0], which is wider",
        ),
        # granted for nothing
        (
            READER + "  - {who: agent-ops, may: approve, what: 'sop://*'}\n",
            "policy[1].may",
            "has no effect: no grant is needed",
        ),
        # never matches
        (READER + "  - {who: agent-ops, may: read, what: 'tool://*'}\n", "policy[1].may", "never matches: tool:// is"),
        (READER + "  - {who: agent-ops, may: invoke, what: 'sop://*'}\n", "policy[1].may", "never matches: sop:// is"),
        (
            READER + "  - {who: agent-ops, may: read, what: 'sop://*', when: {time: {until: 2020-02-29}}}\n",
            "policy[1].when.time.until",
            "the rule is over since 2020-02-29",
        ),
        (
            READER + "  - {who: agent-ops, may: read, what: 'file://*', when: {metadata: {status: active}}}\n",
            "policy[1].when.metadata",
            "files have no metadata but labels",
        ),
        # hangs on what authors write
        (
            READER + "  - {who: agent-ops, may: read, what: 'sop://*', when: {metadata: {status: active}}}\n",
            "policy[1].when.metadata",
            "who writes a document decides",
        ),
        # locks everybody out
        (
            "  - {who: '*', may: '*', what: '**', when: {time: {until: 2020-02-29}}}\n",
            "policy",
            "locks everybody out: no rule allows",
        ),
        ("  - {who: '*', may: '*', what: '**', effect: deny}\n", "policy", "locks everybody out: no rule allows"),
        (
            "  - {who: [agent-nobody, 'role:nothing'], may: '*', what: '**'}\n",
            "policy",
            "locks everybody out: who is allowed something does not exist",
        ),
        (
            READER + "  - {who: '*', may: '*', what: '**', effect: deny}\n",
            "policy",
            "locks everybody out: every rule that allows something is denied by another",
        ),
    ],
)
def test_a_rule_that_does_not_do_what_it_seems_to_is_told_of(tmp_path: Path, rules: str, key: str, says: str) -> None:
    found = warnings(tmp_path, rules)
    assert any(where == key and said.startswith(says) for where, said in found), found


@pytest.mark.parametrize(
    "rules",
    [
        READER + '  - {who: "*", may: "*", what: "sop://hr/*", effect: deny}\n',
        READER + '  - {who: agent-brand, may: [read, watch], what: "sop://hr/*"}\n',
        READER + '  - {who: "*", may: "*", what: "**", effect: deny, when: {metadata: {confidentiality: secret}}}\n',
        '  - {who: "*", may: "*", what: "**"}\n  - {who: "*", may: invoke, what: "tool://run", approve: human}\n',
        READER
        + '  - {who: "*", may: read, what: "file://*", effect: deny, unless: {metadata: {integrity: trusted}}}\n',
        READER
        + '  - {who: "*", may: "*", what: "sop://hr/*", effect: deny}\n'
        + '  - {who: "*", may: "*", what: "sop://hr/pay", effect: deny, hide: true}\n',
    ],
)
def test_rules_that_say_something_are_not(tmp_path: Path, rules: str) -> None:
    assert warnings(tmp_path, rules) == []
