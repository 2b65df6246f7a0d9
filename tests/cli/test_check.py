"""`octavo check`, `schema`, `--help`, `--version`, and how errors are said."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from octavo import __version__
from octavo.cli.group import octavo

if TYPE_CHECKING:
    from conftest import Run


def test_the_version(run: Run) -> None:
    assert run("--version").output == f"octavo {__version__}\n"


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    result = run()
    assert (result.exit_code, "Commands:" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", sorted(octavo.commands))
def test_every_command_has_help_that_fits_a_line(command: str, run: Run) -> None:
    assert run(command, "--help").exit_code == 0
    short = octavo.commands[command].get_short_help_str(limit=65)
    assert short and not short.endswith("...")


def test_a_mistyped_command_is_named_and_the_nearest_offered(run: Run) -> None:
    result = run("explian")
    assert result.exit_code == 2
    assert result.stderr.startswith("octavo: error: No such command 'explian'. Did you mean 'explain'?")


def test_check_says_what_is_served_to_whom(run: Run, folder: Path) -> None:
    result = run("check")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"handbook: file, not exposed, {folder}/handbook\n  sops: sop, sop://, handbook/sops" in result.stdout
    assert "agent-brand: key, roles: marketing" in result.stdout
    assert "rules: 11; what none allows is refused" in result.stdout


def test_check_for_programs(run: Run, folder: Path) -> None:
    facts = json.loads(run("check", "--json").stdout)
    assert (facts["ok"], facts["problems"], facts["warnings"], facts["rules"]) == (True, [], [], 11)
    assert facts["agents"][0] == {"id": "agent-brand", "roles": ["marketing"], "key": True}
    assert facts["state"] == str(folder / ".octavo")


def test_check_tells_every_problem_and_fails(run: Run, folder: Path) -> None:
    file = folder / "octavo.yaml"
    file.write_text("version: 1\nsource: {}\nlimits: {page: 0}\n", encoding="utf-8")
    result = run("check")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"octavo: error: {file}:2:1: source: unknown key (did you mean sources?)\n"
        f"octavo: error: {file}:3:10: limits.page: must be greater than or equal to 1\n"
    )
    facts = json.loads(run("check", "--json").stdout)
    assert [(p["line"], p["key"]) for p in facts["problems"]] == [(2, "source"), (3, "limits.page")]


def test_check_says_what_no_policy_means(run: Run, empty: Path) -> None:
    (empty / "docs").mkdir()
    (empty / "octavo.toml").write_text('[sources.docs]\nkind = "file"\nroots = ["docs"]\n', encoding="utf-8")
    result = run("check")
    assert result.exit_code == 0
    assert "no policy: whoever reaches the server reads everything exposed" in result.stdout
    assert "none: HTTP needs --no-auth" in result.stdout


def test_check_tells_warnings(run: Run, empty: Path) -> None:
    (empty / "octavo.yaml").write_text("sources: {}\n", encoding="utf-8")
    result = run("check")
    assert (result.exit_code, "octavo: warning:" in result.stderr) == (0, True)


def test_check_finds_broken_prompts(run: Run, folder: Path) -> None:
    """P5: file, line and reason."""
    (folder / "handbook/prompts/bad.json").write_text('{\n  "id": "bad",\n  "description": 5\n}\n', encoding="utf-8")
    result = run("check")
    assert result.exit_code == 1
    assert f"octavo: error: {folder}/handbook/prompts/bad.json:3: " in result.stderr


def handbook(empty: Path, kind: str, files: dict[str, str]) -> Path:
    (empty / "octavo.yaml").write_text(
        f"sources:\n  book: {{kind: file, roots: [book], expose: false}}\n  it: {{kind: {kind}, store: book}}\n",
        "utf-8",
    )
    folder = empty / "book"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def test_check_finds_what_is_wrong_with_the_files_of_catalogs(run: Run, empty: Path) -> None:
    """File, line and reason; a link that leads nowhere is only worth a look."""
    wrong = "---\nid: pay\nversion: 1.0.0\nstatus: actve\ntitle: Pay\n---\n"
    folder = handbook(empty, "sop", {"sops/hr/pay.md": wrong, "sops/README.md": "[x](none.md) [y](logo.txt)\n"})
    result = run("check")
    assert result.exit_code == 1
    said = f"octavo: error: {folder}/sops/hr/pay.md:4: status must be one of: draft, active, deprecated\n"
    assert said in result.stderr
    assert f"octavo: warning: {folder}/sops/README.md:1: none.md leads nowhere\n" in result.stderr
    assert "it: sop, sop://, book/sops" in result.stdout
    assert not (empty / ".octavo").exists(), "a check leaves nothing behind"


@pytest.mark.seed("O17")
def test_many_problems_are_told_by_message_with_three_examples(run: Run, empty: Path) -> None:
    wrong = "---\nid: x{0}\nversion: 1.0.0\nstatus: actve\ntitle: Pay\n---\n"
    files = {f"hr/{n:02}.md": wrong.format(n) for n in range(20)}
    files |= {f"notes/{n:02}.md": f"# {n}\n\n[next](none-{n}.md)\n" for n in range(30)}
    folder = handbook(empty, "sop", files)
    result = run("check")
    assert result.exit_code == 1
    errors, warnings, begin = result.stderr.splitlines()
    assert errors == (
        f"octavo: error: 20 × status must be one of: draft, active, deprecated: {folder}/hr/00.md:4, "
        f"{folder}/hr/01.md:4, {folder}/hr/02.md:4 and 17 more"
    )
    assert warnings.startswith(f"octavo: warning: 30 × a link leads nowhere: {folder}/notes/00.md:3 (none-0.md leads")
    assert begin == f"octavo: first: mend {folder}/hr/00.md:4; each by itself: octavo check --all"
    everything = run("check", "--all")
    assert everything.exit_code == 1 and len(everything.stderr.splitlines()) == 51
    for one in [*(folder / "hr").iterdir()]:
        one.unlink()
    remarks = run("check")
    assert remarks.exit_code == 0, "nothing is broken"
    assert remarks.stderr.endswith(
        "octavo: nothing is broken; 30 remarks are worth a look; each by itself: octavo check --all\n"
    )


def test_many_errors_of_the_configuration_keep_key_hint_and_line_each(run: Run, empty: Path) -> None:
    """As every other command tells them, and not one of them together with another."""
    wrong = "".join(f"  s{n}: {{knid: file, kind: file, roots: [.], scheme: s{n}}}\n" for n in range(9))
    (empty / "octavo.yaml").write_text(f"version: 1\nsources:\n{wrong}", encoding="utf-8")
    checked = run("check")
    assert checked.exit_code == 1 and "sources.s8.knid: unknown key (did you mean kind?)" in checked.stderr
    *told, begin = checked.stderr.splitlines(keepends=True)
    assert (len(told), begin) == (9, f"octavo: first: mend {empty}/octavo.yaml:3 (9 of 9 errors are there)\n")
    for n in range(9):
        assert f"octavo.yaml:{n + 3}:" in told[n] and f"sources.s{n}.knid" in told[n]


@pytest.mark.seed("O17")
@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "nothing is served: the folder docs is not there, or empty\n"),
        ({"a.png": "", "b.png": "", "Makefile": ""}, "none of the 3 files is a text (2 .png, 1 Makefile)"),
        ({"docs/x.png": "", "docs/y/z.svg": ""}, "none of the 2 files is a text"),
        ({"a.json": "{}", "b/c.json": "{}"}, "files: '**/*.json' would serve 2 of the 2 files"),
    ],
)
def test_a_catalog_that_serves_nothing_is_an_error_that_says_what_would(
    run: Run, empty: Path, files: dict[str, str], says: str
) -> None:
    handbook(empty, "doc", files)
    result = run("check")
    assert result.exit_code == 1
    assert "sources.it: nothing is served: " in result.stderr and says in result.stderr


@pytest.mark.seed("O17")
def test_names_that_differ_in_their_unicode_form_alone_are_said(run: Run, empty: Path) -> None:
    first, second = (unicodedata.normalize(form, "가이드") for form in ("NFC", "NFD"))
    folder = handbook(empty, "doc", {f"a/{first}.md": "1", f"a/{second}.md": "2", f"b/{second}.md": "3"})
    said = "is not served: another name beside it differs in its Unicode form alone"
    assert run("check").stderr.splitlines() == [f"octavo: warning: {folder}/a/{second}.md:1: {said}"]


@pytest.mark.seed("O17")
@pytest.mark.parametrize("kind", ["doc", "file"])
def test_names_that_have_no_address_are_said_on_a_line_each(run: Run, empty: Path, kind: str) -> None:
    folder = handbook(empty, "doc", {"a.md": "a", "b\\c.md": "b", "new\nline.md": "c", "picture\\.exe": "d"})
    if kind == "file":
        (empty / "octavo.yaml").write_text(f"version: 1\nsources: {{it: {{kind: file, roots: [{folder}]}}}}\n", "utf-8")
    (folder / os.fsdecode(b"bad\xff.md")).write_text("e", encoding="utf-8")
    said = "is not served: its name has a backslash, an invisible character or bytes that are no UTF-8"
    assert sorted(run("check").stderr.splitlines()) == [
        f"octavo: warning: {folder}/{name}:1: {said}" for name in ("b\\c.md", "bad\\xff.md", "new\\nline.md")
    ]


@pytest.mark.seed("O17")
def test_a_link_to_a_file_that_is_there_and_not_served_is_not_dead(run: Run, empty: Path) -> None:
    folder = handbook(
        empty, "doc", {"a.md": "[config](data.yml), [gone](gone.yml), `[x](y.md)`\n", "data.yml": "a: 1\n"}
    )
    assert run("check").stderr.splitlines() == [
        f"octavo: warning: {folder}/a.md:1: data.yml is not served as a document",
        f"octavo: warning: {folder}/a.md:1: gone.yml leads nowhere",
    ]


@pytest.mark.seed("O17")
@pytest.mark.parametrize(
    ("option", "hidden"), [('hide: [".*"]', ".github/build.yml"), ("extensions: [.md]", "data.yml")]
)
def test_a_link_to_a_file_that_its_store_never_gives_is_not_dead(
    run: Run, empty: Path, option: str, hidden: str
) -> None:
    folder = handbook(empty, "doc", {"a.md": f"[there]({hidden}), [gone](gone.md)\n", hidden: "a: 1\n"})
    config = (empty / "octavo.yaml").read_text("utf-8")
    (empty / "octavo.yaml").write_text(config.replace("expose: false", f"expose: false, {option}"), "utf-8")
    assert run("check").stderr.splitlines() == [
        f"octavo: warning: {folder}/a.md:1: {hidden} is not served as a document",
        f"octavo: warning: {folder}/a.md:1: gone.md leads nowhere",
    ]


def test_a_link_to_a_file_of_another_source_is_not_dead(run: Run, empty: Path) -> None:
    files = {"a.md": "[code](src/README.md), [gone](src/gone.md)\n", "src/README.md": "# Code\n"}
    folder = handbook(empty, "doc", files)
    (empty / "octavo.yaml").write_text(
        "sources:\n  book: {kind: file, roots: [book], expose: false}\n"
        "  it: {kind: doc, store: book, path: '', without: [src]}\n  files: {kind: file, roots: [book/src]}\n",
        encoding="utf-8",
    )
    told = [line for line in run("check").stderr.splitlines() if "a.md" in line]
    assert told == [
        f"octavo: warning: {folder}/a.md:1: src/README.md is not served as a document",
        f"octavo: warning: {folder}/a.md:1: src/gone.md leads nowhere",
    ]


@pytest.mark.parametrize("closed", [True, False])
def test_a_state_folder_that_cannot_be_used_is_told(run: Run, empty: Path, closed: bool) -> None:
    """`ls` and `serve` refuse to begin with it."""
    (empty / "taken").write_text("", encoding="utf-8")
    handbook(empty, "doc", {"a.md": "# A\n"})
    with (empty / "octavo.yaml").open("a", encoding="utf-8") as config:
        config.write(f"state: {{path: ./taken}}\naudit: {{fail_closed: {str(closed).lower()}}}\n")
    result = run("check")
    level = "error" if closed else "warning"
    assert (result.exit_code, run("ls").exit_code) == (int(closed), int(closed)), result.stderr
    assert (
        f"octavo: {level}: {empty}/octavo.yaml: state: The state folder {empty}/taken cannot be used" in result.stderr
    )


def test_a_text_that_cannot_be_read_is_told(run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = handbook(empty, "doc", {"a.md": "# A\n", "no.md": "# No\n"})
    true = os.access
    monkeypatch.setattr(os, "access", lambda path, *mode, **kw: Path(path).name != "no.md" and true(path, *mode, **kw))
    assert f"octavo: warning: {folder}/no.md:1: cannot be read by this user\n" in run("check").stderr


@pytest.mark.parametrize("command", [("check",), ("serve",), ("ls",), ("cat", "file://x"), ("audit", "verify")])
def test_without_a_configuration_it_says_what_to_do(command: tuple[str, ...], run: Run, empty: Path) -> None:
    result = run(*command)
    assert result.exit_code == 2
    assert "octavo: error: there is no octavo.yaml or octavo.toml here; name one with --config FILE" in result.stderr


def test_a_bad_configuration_is_exit_code_2_everywhere_else(run: Run, folder: Path) -> None:
    (folder / "octavo.yaml").write_text("version: 3\n", encoding="utf-8")
    result = run("ls")
    assert result.exit_code == 2
    assert result.stderr == f"octavo: error: {folder}/octavo.yaml:1:1: version: must be 1\n"


def test_schema_prints_the_committed_schema(run: Run) -> None:
    committed = Path(__file__).parents[2] / "schema" / "octavo.schema.json"
    assert run("schema").stdout == committed.read_text(encoding="utf-8")


@pytest.mark.seed("O14")
@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("sop://hrr/*", "sop://hrr/* matches nothing today (did you mean sop://hr?)"),
        ("sop://brand/campaign-breif", "(did you mean sop://brand/campaign-brief?)"),
        ("tool://serch", "tool://serch matches nothing today (did you mean tool://search?)"),
        ("sop://quality/*", "(a deny of what is not there yet is fine)"),
    ],
)
def test_a_deny_that_matches_nothing_today_is_a_remark_with_the_nearest_name(
    run: Run, folder: Path, pattern: str, says: str
) -> None:
    """A misspelt deny is found before what it was written for is read; and it is no reason not to start."""
    file = folder / "octavo.yaml"
    text = file.read_text(encoding="utf-8")
    rule = f'policy:\n  - {{who: "*", may: "*", what: "{pattern}", effect: deny}}\n'
    file.write_text(text.replace("policy:\n", rule, 1), encoding="utf-8")
    result = run("check")
    assert result.exit_code == 0, result.stderr
    assert says in result.stderr


@pytest.mark.seed("F3")
def test_what_the_server_stands_on_among_writable_files_is_named(run: Run, empty: Path) -> None:
    """Each with what it is and its source; nothing of it, where it lies elsewhere."""
    (empty / "clerk.txt").write_text("a-key-that-is-long-enough-0123456789", encoding="utf-8")
    text = (
        'sources: {%s: {kind: file, roots: [%s], write: true}}\nagents: {clerk: {key: "file:./clerk.txt"}}\n'
        "policy: [{who: clerk, may: read, what: 'file://*'}]\n"
    )
    (empty / "octavo.yaml").write_text(text % ("work", "."), encoding="utf-8")
    kept = {Path(one["path"]).name: one for one in json.loads(run("check", "--json").stdout)["kept"]}
    assert kept["octavo.yaml"] | {"path": ""} == {
        "path": "", "what": "the configuration", "source": "work", "there": True,
    }  # fmt: skip
    assert (kept["octavo.toml"]["there"], kept["clerk.txt"]["what"]) == (False, "a secret or a key set")
    assert {".octavo", "prompts"} <= kept.keys()
    assert f"{empty / 'octavo.yaml'}: the configuration, in work" in run("check").stdout
    (empty / "apart").mkdir()
    (empty / "octavo.yaml").write_text(text % ("work", "./apart"), encoding="utf-8")
    assert json.loads(run("check", "--json").stdout)["kept"] == []
    assert "kept as they are" not in run("check").stdout
