"""`octavo audit verify`, `query` and `export` on the log of a real configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Run

SECRET = "sop://hr/salary-policy"
VOICE = "sop://brand/campaign-brief"


def configure(folder: Path, more: str) -> Path:
    file = folder / "octavo.yaml"
    file.write_text(file.read_text(encoding="utf-8") + f"\n{more}\n", encoding="utf-8")
    return file


@pytest.fixture
def asked(run: Run, folder: Path) -> Path:
    """Three requests: a list, a read, and a refusal."""
    run("ls", "sop://brand")
    run("cat", VOICE, "--as", "agent-brand")
    run("cat", SECRET, "--as", "agent-brand")
    return folder


def queried(run: Run, *args: object) -> list[dict[str, Any]]:
    result = run("audit", "query", *args, "--json")
    assert result.exit_code == 0, result.stderr
    records: list[dict[str, Any]] = json.loads(result.stdout)["records"]
    return records


@pytest.mark.seed("A7", "T8")
@pytest.mark.parametrize(
    ("args", "uris"),
    [
        (("--who", "agent-brand"), [VOICE, SECRET]),
        (("--outcome", "forbidden"), [SECRET]),
        (("--uri", "sop://hr/*"), [SECRET]),
        (("--rule", "policy[8]"), [SECRET]),
        (("--op", "list"), ["sop://brand"]),
        (("--limit", "1"), [SECRET]),
        (("--since", "1h", "--who", "agent-brand", "--outcome", "ok"), [VOICE]),
        (("--until", "2001-01-01"), []),
        (("--since", "2999-01-01T00:00:00+09:00"), []),
    ],
)
def test_query_gives_what_fits(run: Run, asked: Path, args: tuple[str, ...], uris: list[str]) -> None:
    assert [one["uri"] for one in queried(run, *args)] == uris


def test_query_for_people(run: Run, asked: Path) -> None:
    (line,) = run("audit", "query", "--outcome", "forbidden").stdout.splitlines()
    assert [word for word in line.split() if word in ("agent-brand", "forbidden", "read", SECRET, "policy[8]")] == [
        "agent-brand",
        "forbidden",
        "read",
        SECRET,
        "policy[8]",
    ]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--since", "yesterday"), "must be a time such as"),
        (("--uri", "nonsense"), "Not a pattern"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_query_says_what_it_does_not_understand(run: Run, asked: Path, args: tuple[str, ...], says: str) -> None:
    result = run("audit", "query", *args)
    assert (result.exit_code != 0, result.stdout, says in result.stderr) == (True, "", True)


def test_nothing_to_ask_where_nothing_was_recorded(run: Run, folder: Path) -> None:
    for command in ("query", "export"):
        assert "There is no audit log" in run("audit", command).stderr


@pytest.mark.parametrize(("form", "lines"), [("jsonl", 3), ("csv", 4), ("otel", 1)])
def test_export(run: Run, asked: Path, form: str, lines: int) -> None:
    result = run("audit", "export", "--format", form)
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, lines)
    assert VOICE in result.stdout
    assert VOICE not in run("audit", "export", "--format", form, "--op", "list").stdout


@pytest.mark.seed("A7")
@pytest.mark.parametrize("form", ["jsonl", "csv", "otel"])
def test_no_secret_is_in_the_log_or_in_what_is_made_of_it(run: Run, folder: Path, form: str) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    run("cat", f"sop://brand/{token}")
    run("cat", f"nonsense://{token}")
    run("ls", f"sop://{token}")
    assert len(queried(run)) == 3
    for shown in (run("audit", "export", "--format", form), run("audit", "query"), run("audit", "query", "--json")):
        assert token not in shown.stdout
    assert token.encode() not in b"".join(file.read_bytes() for file in (folder / ".octavo/audit").iterdir())


@pytest.mark.seed("B7")
def test_verify_uses_the_checkpoints_of_the_configuration(run: Run, folder: Path) -> None:
    (folder.parent / "second").mkdir()
    configure(folder, "audit: {checkpoints: {path: ../second/checkpoints.jsonl}}")
    run("ls")
    run("ls")
    good = run("audit", "verify", "--json")
    assert [chain["witnessed"] for chain in json.loads(good.stdout)["chains"]] == [1, 1]
    chain = sorted((folder / ".octavo/audit").glob("*.jsonl"))[0]
    for file in (chain, chain.with_suffix(".head")):
        file.unlink()
    bad = run("audit", "verify")
    assert (bad.exit_code, "deleted: all files" in bad.stdout) == (1, True)


@pytest.mark.seed("B7")
def test_verify_uses_a_copy_of_the_checkpoints_that_is_named(run: Run, folder: Path) -> None:
    (folder.parent / "second").mkdir()
    configure(folder, "audit: {checkpoints: {path: ../second/checkpoints.jsonl}}")
    run("ls")
    copy = folder.parent / "copy.jsonl"
    copy.write_bytes((folder.parent / "second/checkpoints.jsonl").read_bytes())
    (folder.parent / "second/checkpoints.jsonl").write_bytes(b"")
    (chain,) = (folder / ".octavo/audit").glob("*.jsonl")
    chain.unlink()
    chain.with_suffix(".head").unlink()
    assert run("audit", "verify").exit_code == 0
    assert run("audit", "verify", "--checkpoints", copy).exit_code == 1
    missing = run("audit", "verify", "--checkpoints", "nowhere")
    assert (missing.exit_code, "cannot be read: No such file" in missing.stderr) == (1, True)


@pytest.mark.parametrize(
    ("path", "says", "code"),
    [
        ("handbook/checkpoints.jsonl", "and would be served", 1),
        (".octavo/checkpoints.jsonl", "lies in the state folder", 0),
        ("../nowhere/checkpoints.jsonl", "there is no folder", 0),
    ],
)
def test_check_looks_at_the_second_place(run: Run, folder: Path, path: str, says: str, code: int) -> None:
    (folder / ".octavo").mkdir()
    configure(folder, f"audit: {{checkpoints: {{path: {path}}}}}")
    result = run("check")
    assert (result.exit_code, says in result.stdout + result.stderr) == (code, True)


def test_doctor_looks_at_the_second_place(run: Run, folder: Path) -> None:
    configure(folder, "audit: {checkpoints: {path: ../second/checkpoints.jsonl}}")
    away = run("doctor")
    assert (away.exit_code, "second cannot be written" in away.stdout) == (1, True)
    (folder.parent / "second").mkdir()
    run("ls")
    assert "is on the disk of the audit log" in run("doctor").stdout


@pytest.mark.parametrize("age", ["90", "0d", "1w", "90m"])
def test_check_wants_an_age_in_hours_or_days(run: Run, folder: Path, age: str) -> None:
    configure(folder, f"audit: {{max_age: {age}}}")
    result = run("check")
    assert (result.exit_code != 0, 'must be an age, such as "12h" or "90d"' in result.stdout + result.stderr) == (
        True,
        True,
    )


@pytest.mark.seed("A7")
@pytest.mark.parametrize("command", ["verify", "query", "export"])
def test_the_log_is_read_where_what_is_served_is_gone(
    run: Run, asked: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the machine of an auditor, or beside a disk that is not there: what it needs is the state folder."""
    before = run("audit", command)
    (asked / "handbook").rename(asked.parent / "elsewhere")
    configure(asked, "plugins: [{path: ./gone.py}]\nresources: [{uri: 7}]")
    text = (asked / "octavo.yaml").read_text(encoding="utf-8")
    (asked / "octavo.yaml").write_text(text.replace("file:.keys/agent-brand", "${NO_SUCH_KEY}"), encoding="utf-8")
    assert run("check").exit_code == 1
    after = run("audit", command)
    assert (after.exit_code, after.stdout, after.stderr) == (0, before.stdout, "")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("audit: {keep: 1}", "audit.keep: must be greater than or equal to 2"),
        ("audit: {sync: never}", "audit.sync: must be"),
        ("audit: {checkpoints: {path: ~nobody-of-that-name/checkpoints}}", "audit.checkpoints.path: begins with ~"),
        ("state: {folder: ./state}", "state.folder: unknown key"),
        ("state: ./state", "state: must be a mapping"),
        ("version: 7", "version: must be 1"),
        ("state: {path: ./elsewhere}", "There is no audit log in"),
        ("policy: [", "is no YAML"),
    ],
)
def test_what_verify_needs_has_to_be_right(run: Run, asked: Path, more: str, says: str) -> None:
    text = (asked / "octavo.yaml").read_text(encoding="utf-8")
    (asked / "octavo.yaml").write_text(f"{text.replace('version: 1', '')}\n{more}\n", encoding="utf-8")
    result = run("audit", "verify")
    assert (result.exit_code in (1, 2), result.stdout) == (True, "")
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_log_of_a_folder_that_is_gone_is_verified(run: Run, empty: Path) -> None:
    for name in ("notes", "more"):
        (empty / name).mkdir()
        (empty / name / "a.md").write_text("a\n", encoding="utf-8")
    asked = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    for folders in (("notes",), ("notes", "more")):
        serve = [sys.executable, "-m", "octavo", "serve", *folders]
        subprocess.run(serve, input=asked, cwd=empty, capture_output=True, check=True)
    before = [run("audit", "verify", "notes"), run("audit", "verify", "more", "notes")]
    for name in ("notes", "more"):
        (empty / name).rename(empty / f"{name}-elsewhere")
    assert [one.stdout for one in before] == [
        run("audit", "verify", "notes").stdout,
        run("audit", "verify", "more", "notes").stdout,
    ]
    assert all(one.exit_code == 0 and "records" in one.stdout for one in before)
    unknown = run("audit", "verify", "more")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert unknown.stderr == "octavo: error: more: there is no folder {}\n".format(empty / "more")
