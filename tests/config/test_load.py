"""Good configurations load, files that cannot be read say why, and zero configuration works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from octavo.app.configuration import load, load_text, zero
from octavo.config.load import Loaded, find, prompt_directories, state_directory
from octavo.config.problems import ConfigError
from octavo.config.sections.source import Cache
from octavo.config.units import Bind, Rate, parse_bind, parse_rate, parse_size, parse_time
from octavo.sources.file.options import FileOptions
from octavo.sources.memory.options import MemoryOptions

HOUSE = """\
version: 1
sources:
  handbook: {kind: file, roots: [./handbook], extensions: [.md, .yml, .json], cache: {ttl: 300}}
  work:     {kind: file, roots: [./other], scheme: work}
agents:
  agent-brand: {key: "${BRAND_KEY}", roles: [marketing]}
policy:
  - {who: agent-brand, may: [read, list, search, watch], what: ["file://brand/*", "work://*"]}
  - {who: "*", may: "*", what: "file://hr/*", effect: deny, why: "HR records are not for agents"}
  - {who: "role:marketing", may: [invoke], what: "tool://run_command"}
prompts: {dirs: [./prompts]}
limits:  {read: 1MB, time: 10s, per_principal: 50/s}
serve:   {http: {bind: 127.0.0.1:8321}}
"""

KOREAN = """\
sources:
  핸드북: {kind: file, roots: [핸드북]}
  메모:
    kind: memory
    scheme: note
    resources:
      인사/휴가.md:
        text: "연차는 15일입니다.\\n"
        mimeType: text/markdown
        name: 휴가 규정
        metadata: {담당: 인사팀, 판: null}
      logo.png: {base64: iVBORw0KGgo=}
    templates:
      주문/{id}/자료: {text: "{id}번 주문", values: {id: ["1", "2"]}}
agents:
  에이전트-브랜드: {key: "file:key", roles: [마케팅]}
policy:
  - {who: "role:마케팅", may: read, what: "note://인사/*", effect: deny, hide: true, why: "인사 기록은 볼 수 없습니다"}
resources:
  - {uri: "file://안내/{이름}", name: 안내}
"""

TOML = """\
version = 1

[sources.docs]
kind = "file"
roots = ["handbook", { path = "other", as = "/project" }]

[agents.agent-brand]
key = "${BRAND_KEY}"

[[policy]]
who = "agent-brand"
may = ["read", "list"]
what = "file://*"

[limits]
cache = "1.5MiB"
per_principal = "off"
"""


def loaded(text: str, site: Path, environ: dict[str, str], name: str = "octavo.yaml") -> Loaded:
    return load_text(text, file=site / name, environ=environ)


def test_the_example_of_the_house_loads(site: Path, environ: dict[str, str]) -> None:
    found = loaded(HOUSE, site, environ)
    config = found.config
    handbook = config.sources["handbook"]
    assert isinstance(handbook, FileOptions)
    assert [root.path for root in handbook.roots] == [site / "handbook"]
    assert (handbook.extensions, handbook.cache, handbook.scheme) == (
        (".md", ".yml", ".json"),
        Cache(ttl=300.0),
        "file",
    )
    assert config.policy[1].may == ("*",)
    assert config.policy[1].what == ("file://hr/*",)
    assert (config.limits.read, config.limits.time, config.limits.per_principal) == (1_000_000, 10.0, Rate(50, 1.0))
    assert config.serve.http.bind == Bind("127.0.0.1", 8321)
    assert found.warnings == ()
    assert [found.line("policy", index) for index in range(3)] == [8, 9, 10]
    assert (found.base, found.file) == (site, site / "octavo.yaml")


def test_korean_names_and_values_load(site: Path, environ: dict[str, str]) -> None:
    config = loaded(KOREAN.replace("{이름}", "{name}"), site, environ).config
    notes = config.sources["메모"]
    assert isinstance(notes, MemoryOptions)
    assert notes.resources["인사/휴가.md"].body == "연차는 15일입니다.\n"
    assert notes.resources["인사/휴가.md"].metadata == {"담당": "인사팀", "판": None}
    assert notes.resources["logo.png"].body == b"\x89PNG\r\n\x1a\n"
    assert notes.templates["주문/{id}/자료"].values == {"id": ("1", "2")}
    assert config.agents["에이전트-브랜드"].digest is not None
    assert config.resources[0].is_template


def test_toml_loads(site: Path, environ: dict[str, str]) -> None:
    found = loaded(TOML, site, environ, "octavo.toml")
    docs = found.config.sources["docs"]
    assert isinstance(docs, FileOptions)
    assert [(root.path, root.public) for root in docs.roots] == [
        (site / "handbook", None),
        (site / "other", "/project"),
    ]
    assert (found.config.limits.cache, found.config.limits.per_principal) == (1_572_864, None)
    assert found.line("policy", 0) == 10


def test_the_defaults_are_those_of_the_house(site: Path) -> None:
    config = loaded("sources: {docs: {kind: file, roots: [handbook]}}", site, {}).config
    docs = config.sources["docs"]
    assert isinstance(docs, FileOptions)
    assert (docs.extensions, docs.expose, docs.symlinks, docs.hard_links, docs.uris) == (
        (),
        True,
        "inside",
        "auto",
        "absolute",
    )
    assert (docs.listing.under, docs.listing.recursive, docs.cache.ttl) == ("", True, 60.0)
    limits = config.limits
    assert (limits.read, limits.time, limits.page, limits.in_flight) == (1 << 20, 10.0, 100, 64)
    assert (limits.subscriptions, limits.cache, limits.line) == (100, 64 << 20, 4 << 20)
    assert limits.per_principal == Rate(50, 1.0)
    assert (config.audit.sync, config.audit.fail_closed, config.audit.rotate, config.audit.keep) == (
        "batch",
        True,
        64 << 20,
        16,
    )
    assert (config.serve.error_codes, config.serve.lane, config.serve.http.allowed_hosts) == ("seed", True, ())


def test_yaml_is_version_1_2(site: Path) -> None:
    """`off` and `no` are words, a date is text, and a leading zero is no octal."""
    text = """\
redact: {rules: off}
sources: {n: {kind: memory, scheme: note, resources: {no: {text: 2025-01-01}}}}
limits: {page: 010}
"""
    config = loaded(text, site, {}).config
    notes = config.sources["n"]
    assert isinstance(notes, MemoryOptions)
    assert (config.redact.rules, notes.resources["no"].text, config.limits.page) == ("off", "2025-01-01", 10)


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("policy: [{who: ghost, may: read, what: '**'}]\nsources: {}", "policy[0].who", "there is no agent ghost"),
        ("policy: [{who: 'role:x', may: read, what: '**'}]\nsources: {}", "policy[0].who", "no agent has the role x"),
        (
            "policy: [{who: '*', may: read, what: 'sop://*'}]\nsources: {}",
            "policy[0].what",
            "no exposed source serves sop://",
        ),
        (
            "policy: [{who: '*', may: read, what: '**'}, {who: ['*'], may: [read], what: ['**']}]\nsources: {}",
            "policy[1]",
            "says the same as policy[0]",
        ),
        ("agents: {a: {key: '${SHORT}'}}", "agents.a.key", "could be guessed"),
        ("sources: {}", "", "nothing is served"),
        ("limits: {in_flight: 300}\nsources: {}", "limits.in_flight", "more than limits.total (512) leaves"),
    ],
)
def test_what_is_odd_is_a_warning(text: str, key: str, says: str, site: Path, environ: dict[str, str]) -> None:
    warnings = loaded(text, site, environ).warnings
    assert [w.key for w in warnings if says in w.message] == [key], warnings


def test_local_and_reserved_schemes_are_no_oddities(site: Path) -> None:
    text = """\
sources: {docs: {kind: file, roots: [handbook]}}
policy:
  - {who: local, may: "*", what: ["tool://*", "prompt://*", "changes://*", "server://*", "**"]}
"""
    assert loaded(text, site, {}).warnings == ()


def test_one_folder_may_be_a_store_and_exposed_once(site: Path) -> None:
    text = """\
sources:
  store: {kind: file, roots: [handbook], expose: false}
  docs:  {kind: file, roots: [handbook]}
"""
    assert set(loaded(text, site, {}).config.sources) == {"store", "docs"}


def test_an_open_bind_with_keys_loads(site: Path, environ: dict[str, str]) -> None:
    text = 'agents: {a: {key: "${BRAND_KEY}"}}\nserve: {http: {bind: "[::]:8321"}}'
    bind = loaded(text, site, environ).config.serve.http.bind
    assert (bind, str(bind), bind.loopback) == (Bind("::", 8321), "[::]:8321", False)


def test_a_byte_order_mark_is_accepted(site: Path, tmp_path: Path) -> None:
    file = tmp_path / "octavo.yaml"
    file.write_bytes(b"\xef\xbb\xbfversion: 1\r\nsources: {}\r\n")
    assert load(file).config.version == 1


def _refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path)
    return str(caught.value)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    large, binary, pipe = tmp_path / "large.yaml", tmp_path / "binary.yaml", tmp_path / "pipe.yaml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    binary.write_bytes(b"version: 1\n# \xff\n")
    os.mkfifo(pipe)
    assert "there is no such file" in _refusal(tmp_path / "nowhere.yaml")
    assert "is a folder" in _refusal(tmp_path)
    assert "larger than 1048576 bytes" in _refusal(large)
    assert _refusal(binary).startswith(f"{binary}:2: is not UTF-8")
    assert "no ordinary file" in _refusal(pipe)


def test_find_prefers_yaml(tmp_path: Path) -> None:
    assert find(tmp_path) is None
    (tmp_path / "octavo.toml").write_text("version = 1\n", encoding="utf-8")
    assert find(tmp_path) == tmp_path / "octavo.toml"
    (tmp_path / "octavo.yaml").write_text("version: 1\n", encoding="utf-8")
    assert find(tmp_path) == tmp_path / "octavo.yaml"


def test_zero_configuration_serves_one_folder(site: Path, tmp_path: Path) -> None:
    found = zero(site / "handbook", environ={"XDG_STATE_HOME": str(tmp_path)})
    source = found.config.sources["files"]
    assert isinstance(source, FileOptions)
    assert ([root.path for root in source.roots], source.extensions) == ([site / "handbook"], ("*",))
    assert (found.config.agents, found.config.policy, found.file) == ({}, (), None)
    assert state_directory(found).parent == tmp_path / "octavo"
    assert prompt_directories(found) == ()


def test_zero_configuration_keeps_one_state_a_real_folder(site: Path, tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    by_link, direct, other = (
        state_directory(zero(site / name, environ=environ)) for name in ("alias", "handbook", "other")
    )
    assert by_link == direct != other


def test_zero_configuration_serves_several_folders(tmp_path: Path) -> None:
    for name in ("a", "b", "c/a"):
        (tmp_path / name).mkdir(parents=True)
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    a, b = tmp_path / "a", tmp_path / "b"
    both = zero(a, b, environ=environ)
    source = both.config.sources["files"]
    assert isinstance(source, FileOptions)
    assert [root.shown for root in source.roots] == [str(a), str(b)]
    assert state_directory(both) == state_directory(zero(b, a, environ=environ))
    assert state_directory(both) not in [state_directory(zero(one, environ=environ)) for one in (a, b)]
    assert zero(a, tmp_path / "c/a", environ=environ)  # a client of this machine knows both by their paths


def test_folders_that_cannot_be_told_apart_are_refused_with_what_to_do(tmp_path: Path) -> None:
    for name in ("a/x", "c/a"):
        (tmp_path / name).mkdir(parents=True)
    a = tmp_path / "a"
    with pytest.raises(ConfigError, match=r"c/a: would be shown as /a, .* (\S+)/a \(write an octavo.yaml and .* as: /"):
        zero(a, tmp_path / "c/a", here=False)
    for other, relation in ((a, "is the same folder as"), (a / "x", "lies inside")):
        with pytest.raises(ConfigError, match=relation) as caught:
            zero(a, other)
        assert [problem.hint for problem in caught.value.problems] == ["serve the outer folder once"]
    with pytest.raises(ConfigError, match="there is no folder"):
        zero(a, tmp_path / "nowhere")


def test_zero_configuration_ignores_a_relative_state_home(site: Path) -> None:
    state = state_directory(zero(site / "handbook", environ={"XDG_STATE_HOME": "here"}))
    assert state.parent == Path.home() / ".local/state/octavo"


def test_zero_configuration_of_no_folder_is_refused(site: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        zero(site / "nowhere")


def test_state_and_prompts_stand_beside_the_configuration(site: Path) -> None:
    plain = loaded("sources: {}", site, {})
    chosen = loaded("state: {path: var/octavo}\nprompts: {dirs: [other]}", site, {})
    assert (state_directory(plain), prompt_directories(plain)) == (site / ".octavo", (site / "prompts",))
    assert (state_directory(chosen), prompt_directories(chosen)) == (site / "var/octavo", (site / "other",))


def test_units() -> None:
    assert [parse_size(text) for text in ("64KB", "64KiB", "1.5M", "2 GiB", "10", 7)] == [
        64_000,
        65_536,
        1_500_000,
        1 << 31,
        10,
        7,
    ]
    assert [parse_time(text) for text in ("500ms", "10s", "2m", "1h", 1.5)] == [0.5, 10.0, 120.0, 3600.0, 1.5]
    rate = parse_rate("300/m")
    assert rate is not None and (rate.per_second, str(rate)) == (5.0, "300/m")
    hosts = ("localhost:1", "127.8.0.1:1", "[::1]:1", "0.0.0.0:1", "example.com:1")
    assert [parse_bind(text).loopback for text in hosts] == [True, True, True, False, False]
