"""Rules that load and do not do what they seem to are told of, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.config.random_rules import compare

from octavo.app.configuration import load_text
from octavo.config.load import Loaded
from octavo.config.problems import ConfigError

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


SERVED = """
sources:
  h: {kind: file, roots: [handbook], expose: false}
  s: {kind: sop, store: h, path: sops, files: "{function}/{name}.md"}
  f: {kind: file, roots: [%s]}
  o: {kind: org, store: h, path: org}
  n: {kind: memory, scheme: note, resources: {today: {text: x}}, templates: {"day/{m}-{d}": {text: x}}}
policy:
  - {who: "*", may: "*", what: "**"}
  - {who: "*", may: %s, what: "%s", effect: %s}
"""


def folders(base: Path) -> None:
    for name in ("work", "handbook"):
        (base / name).mkdir()


def loaded(text: str, base: Path) -> Loaded:
    return load_text(text, file=base / "octavo.yaml", environ={})


NEVER = [
    ("*", "file://a.md?root=2", "goes on behind a question mark (a file that another one hides"),
    ("*", "sop://brand/guide?version=1", "goes on behind a question mark (leave it out"),
    ("*", "spo://hr/*", "no exposed source serves spo:// (did you mean sop://?)"),
    ("*", "db://x", "no exposed source serves db:// (there is sop://, file://"),
    ("*", "tol://write", "did you mean tool://?"),
    ("admin", "server://nothing", "there is server://config, server://metrics"),
    ("*", "sop://hr/pay/2026", "no address of sop:// can look like that (there is sop://*/*)"),
    ("*", "sop://hr/**/pay/x/*", "no address of sop:// can look like that"),
    ("*", "changes://flie/*", "no address of changes:// can look like that"),
    ("*", "file:///nowhere/*", "no root lies there"),
    ("read", "tool://*", "tool:// is asked for approve, invoke"),
]


@pytest.mark.seed("O14")
@pytest.mark.parametrize(("may", "pattern", "says"), NEVER)
def test_a_pattern_that_can_never_match_is_an_error_where_it_denies_and_a_warning_where_it_allows(
    tmp_path: Path, may: str, pattern: str, says: str
) -> None:
    """A deny that denies nothing looks like one that does, until somebody reads what it was about."""
    folders(tmp_path)
    may = '"*"' if may == "*" else may
    warned = loaded(SERVED % ("work", may, pattern, "allow"), tmp_path).warnings
    assert [one.key for one in warned if says in str(one)] == ["policy[1].may" if may == "read" else "policy[1].what"]
    with pytest.raises(ConfigError) as refused:
        loaded(SERVED % ("work", may, pattern, "deny"), tmp_path)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "sop://hr/*", "sop://hrr/*", "sop://*", "**", "*://x", "file://work/*", "file://a%3Fb.md", "tool://nobody",
        "prompt://x", "permission://x", "changes://*", "server://config", "server://*", "file:///*", "sop://**/pay",
        "sop://hr", "org://role/*", "org://r*/x", "org://*/x", "note://todya", "*://*/*/*",
        "changes://file/docs", "server://con*",
    ],
)  # fmt: skip
def test_a_pattern_that_can_match_some_day_is_no_reason_not_to_start(tmp_path: Path, pattern: str) -> None:
    folders(tmp_path)
    assert "never matches" not in str(loaded(SERVED % ("work", '"*"', pattern, "deny"), tmp_path).warnings)


def test_a_deny_of_what_a_catalog_leaves_out_is_an_error(tmp_path: Path) -> None:
    folders(tmp_path)
    text = (
        "sources:\n  h: {kind: file, roots: [handbook], expose: false}\n"
        "  d: {kind: doc, store: h, path: '', without: [skills]}\n"
        "  s: {kind: skill, store: h, path: skills}\n"
        'policy:\n  - {who: "*", may: "*", what: "**"}\n  - {who: "*", may: "*", what: "%s", effect: deny}\n'
    )
    with pytest.raises(ConfigError, match="skills is left out by without"):
        loaded(text % "doc://skills/pdf/*", tmp_path)
    for pattern in ("skill://pdf/*", "doc://skills-guide", "doc://guides/*"):
        assert "never matches" not in str(loaded(text % pattern, tmp_path).warnings)


@pytest.mark.seed("O16")
def test_a_rule_on_a_folder_of_addresses_may_spell_its_dash_as_it_is_read(tmp_path: Path) -> None:
    folders(tmp_path)
    sources = (
        "sources:\n  h: {kind: file, roots: [handbook], expose: false}\n"
        "  s: {kind: catalog, scheme: flow, store: h, path: f, files: '{name}.md', address: 'value-stream/{name}'}\n"
        'policy:\n  - {who: "*", may: "*", what: "**"}\n  - {who: "*", may: "*", what: "flow://%s", effect: deny}\n'
    )
    for pattern in ("value-stream/*", "value_stream/*", "value_stream/launch"):
        loaded(sources % pattern, tmp_path)
    with pytest.raises(ConfigError, match="no address of flow:// can look like that"):
        loaded(sources % "valuestream/*", tmp_path)


def test_an_absolute_pattern_matches_below_a_root_by_its_path_and_by_the_one_that_a_link_leads_to(
    tmp_path: Path,
) -> None:
    folders(tmp_path)
    (tmp_path / "link").symlink_to("work")
    for root, place in (("work", "work"), ("link", "link"), ("link", "work")):
        loaded(SERVED % (root, '"*"', f"file://{tmp_path / place}/hr/*", "deny"), tmp_path)
    with pytest.raises(ConfigError):
        loaded(SERVED % ("work", '"*"', f"file://{tmp_path / 'link'}/hr/*", "deny"), tmp_path)
    public = "{path: work, as: /project}"
    loaded(SERVED % (public, '"*"', "file:///project/hr/*", "deny"), tmp_path)


@pytest.mark.seed("O14")
def test_of_random_rules_exactly_those_that_can_never_match_are_named(tmp_path: Path) -> None:
    """A small count of `python -m tests.config.random_rules`."""
    figures = compare(200, 7, tmp_path.resolve())
    assert (figures.missed, figures.wronged) == (0, 0) and 50 < figures.never < 150


def test_a_pattern_of_any_length_is_looked_at(tmp_path: Path) -> None:
    folders(tmp_path)
    for pattern in (
        "sop://" + "a*" * 1500,
        "sop://" + "**/" * 1300 + "x",
        "org://" + "*/" * 1900,
        "note://" + "t*" * 900,
    ):
        loaded(SERVED % ("work", '"*"', pattern, "allow"), tmp_path)


def test_what_a_plugin_may_bring_is_only_a_warning(tmp_path: Path) -> None:
    folders(tmp_path)
    (tmp_path / "p.py").write_text("", encoding="utf-8")
    text = SERVED % ("work", '"*"', "crm://x", "deny") + "plugins: [{path: ./p.py}]\n"
    assert "no exposed source serves crm://" in str(loaded(text, tmp_path).warnings)


@pytest.mark.parametrize("may", ["read_unredacted", "[read, read_unredacted]"])
def test_a_right_to_what_is_hidden_is_no_verb_and_says_what_is_the_way(tmp_path: Path, may: str) -> None:
    with pytest.raises(ConfigError) as raised:
        warnings(tmp_path, f'  - {{who: agent-ops, may: {may}, what: "**"}}\n')
    assert "policy[0].may" in str(raised.value) and "redact.sources" in str(raised.value)
