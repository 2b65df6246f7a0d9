"""`explain`, `ls`, `cat`, `watch` and `audit verify` go the way of every client."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run

SECRET = "sop://hr/salary-policy"


def test_explain_names_the_rule_its_line_and_the_reason(run: Run, folder: Path) -> None:
    result = run("explain", "agent-brand", "read", SECRET)
    lines = (folder / "octavo.yaml").read_text(encoding="utf-8").splitlines()
    *_, line = (number for number, text in enumerate(lines, 1) if text == "  - who: agent-brand")
    assert result.exit_code == 1
    assert result.stdout == (
        f"agent-brand may not read {SECRET}\n"
        f"  by policy[8] ({folder}/octavo.yaml:{line}): deny sop://hr/*\n"
        "  why: HR procedures are not for the brand agent (인사 절차는 브랜드 에이전트가 볼 수 없습니다)\n"
    )


def test_explain_for_programs(run: Run, folder: Path) -> None:
    allowed = json.loads(run("explain", "agent-hr", "read", SECRET, "--json").stdout)
    assert (allowed["allowed"], allowed["index"], allowed["pattern"]) == (True, 5, "sop://hr/*")
    refused = run("explain", "agent-brand", "delete", "doc://brand/naming", "--json")
    facts = json.loads(refused.stdout)
    assert (refused.exit_code, facts["allowed"], facts["index"], facts["why"]) == (1, False, None, "no rule allows it")


def test_explain_leaves_no_traces(run: Run, folder: Path) -> None:
    run("explain", "agent-brand", "read", SECRET)
    assert not (folder / ".octavo").exists()


def test_explain_refuses_what_it_does_not_know(run: Run, folder: Path) -> None:
    assert (
        "known agents: agent-brand, agent-finance, agent-hr, agent-ops, agent-orchestrator"
        in run("explain", "ghost", "read", SECRET).stderr
    )
    assert run("explain", "local", "devour", SECRET).exit_code == 2
    assert "No source serves git://" in run("explain", "local", "read", "git://x").stderr


def test_ls_shows_what_the_agent_may_see(run: Run, folder: Path) -> None:
    everything = run("ls", "doc://").stdout.splitlines()
    mine = run("ls", "doc://", "--as", "agent-brand").stdout.splitlines()
    assert set(everything) - set(mine) == {"doc://policies/pay-bands"}
    assert SECRET in run("ls").stdout and SECRET not in run("ls", "--as", "agent-brand").stdout
    assert run("ls", "sop://finance?status=active&tags=closing").stdout == "sop://finance/month-end-close\n"


def test_ls_walks_over_all_pages(run: Run, folder: Path) -> None:
    names = [f"sop://many/{number:03}" for number in range(250)]
    (folder / "handbook/sops/many").mkdir()
    for name in names:
        (folder / f"handbook/sops/many/{name[-3:]}.md").write_text("x", encoding="utf-8")
    assert run("ls", "sop://many").stdout.splitlines() == names


def test_ls_for_programs(run: Run, folder: Path) -> None:
    facts = json.loads(run("ls", "org://function", "--json").stdout)
    names = ("brand", "finance", "hr", "ops", "product")
    assert [(r["uri"], r["mimeType"]) for r in facts["resources"]] == [
        (f"org://function/{name}", "application/yaml") for name in names
    ]


def test_cat_gives_the_bytes_of_the_file(run: Run, folder: Path) -> None:
    result = run("cat", "sop://brand/campaign-brief", "--as", "agent-brand")
    assert result.stdout_bytes == (folder / "handbook/sops/brand/campaign-brief.md").read_bytes()
    facts = json.loads(run("cat", "agent://brand", "--json").stdout)
    assert facts["text"] == (folder / "handbook/agents/brand.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((SECRET, "--as", "agent-brand"), "HR procedures are not for the brand agent"),
        (("sop://brand/nowhere",), "sop://brand/nowhere"),
        (("sop://../octavo.yaml",), "octavo.yaml"),
        (("sop://a#b",), "A resource URI has no fragment"),
    ],
)
def test_a_refusal_is_an_error_and_a_record(args: tuple[str, ...], says: str, run: Run, folder: Path) -> None:
    result = run("cat", *args)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("octavo: error: ") and says in result.stderr
    assert json.loads(run("audit", "verify", "--json").stdout)["records"] == 1


def test_audit_verify_finds_a_changed_record(run: Run, folder: Path) -> None:
    assert "There is no audit log" in run("audit", "verify").stderr
    run("ls", "--as", "agent-brand")
    good = run("audit", "verify")
    assert (good.exit_code, "chains 1, records 1" in good.stdout) == (0, True)
    (chain,) = (folder / ".octavo/audit").glob("*.jsonl")
    chain.write_bytes(chain.read_bytes().replace(b"agent-brand", b"agent-bland"))
    bad = run("audit", "verify")
    assert (bad.exit_code, "BROKEN" in bad.stdout) == (1, True)


def test_audit_verify_of_a_folder_without_configuration(run: Run, empty: Path) -> None:
    (empty / "docs").mkdir()
    result = run("audit", "verify", "docs")
    assert (result.exit_code, f"There is no audit log in {empty}/state/octavo/" in result.stderr) == (1, True)


def test_watch_refuses_what_is_no_pattern(run: Run, folder: Path) -> None:
    result = run("watch", "nope*")
    assert (result.exit_code, "Not a pattern" in result.stderr) == (1, True)


def test_watch_prints_changes_that_the_agent_may_see(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "octavo",
        "watch",
        "sop://*",
        "--as",
        "agent-brand",
        "--count",
        "1",
        "--json",
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline() == b"octavo: watching sop://*\n"
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            for attempt in range(150):  # the first may come before the watch of the folder stands
                (folder / f"handbook/sops/hr/secret-{attempt}.md").write_text("x", encoding="utf-8")
                (folder / f"handbook/sops/brand/new-{attempt}.md").write_text("x", encoding="utf-8")
                if selector.select(timeout=0.2):
                    break
        change = json.loads(process.stdout.readline())
        assert process.wait(timeout=30) == 0
    assert change["type"] == "resource/created"
    assert change["uri"].startswith("sop://brand/new-")


@pytest.mark.seed("F1")
@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("file://work/*", "file:///root/work/a.md"),
        ("file://work/a.md", "file://work/a.md"),
        ("{folder}/root/work/a.md", "{folder}/root/work/a.md"),
        ("{folder}/root/*", "file:///root/work/a.md"),
    ],
)
def test_watch_tells_one_address_as_it_was_asked_and_patterns_as_lists_do(
    tmp_path: Path, pattern: str, told: str
) -> None:
    pattern, told = (text.format(folder=f"file://{tmp_path}") for text in (pattern, told))
    (tmp_path / "root/work").mkdir(parents=True)
    (tmp_path / "octavo.yaml").write_text("sources: {files: {kind: file, roots: [./root]}}\n", encoding="utf-8")
    command = [sys.executable, "-m", "octavo", "watch", pattern, "--count", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline() == f"octavo: watching {pattern}\n".encode()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            for attempt in range(150):  # the first may come before the watch of the folder stands
                (tmp_path / "root/work/a.md").write_text(f"{attempt}", encoding="utf-8")
                if selector.select(timeout=0.2):
                    break
        line = process.stdout.readline().decode()
        assert process.wait(timeout=30) == 0
    assert line.split() in ([kind, told] for kind in ("created", "updated"))


@pytest.mark.seed("B3", "O10")
@pytest.mark.parametrize("beside", ["no server", "a server"])
def test_watch_goes_on_from_a_number_whether_or_not_a_server_runs(tmp_path: Path, beside: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "octavo.yaml").write_text(
        "sources: {work: {kind: file, uris: relative, roots: [./work]}}\nagents: {a: {}}\n"
        "policy: [{who: a, may: '*', what: 'file://*'}, {who: a, may: '*', what: 'file://hidden*', effect: deny}]\n",
        encoding="utf-8",
    )

    def watched(after: str, count: int) -> list[tuple[int, str]]:
        options = ["--as", "a", "--json", "--after", after, "--count", str(count)]
        command = [sys.executable, "-m", "octavo", "watch", "file://*", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [(line["seq"], f"{line['type'][9:]} {line['uri'][7:]}") for line in lines]

    with ExitStack() as stack:
        if beside == "a server":
            serve = [sys.executable, "-m", "octavo", "serve", "--http", "127.0.0.1:0", "--no-auth", "--as", "a"]
            server = stack.enter_context(
                subprocess.Popen(serve, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
            )
            stack.callback(server.terminate)
            assert server.stderr is not None and b"/mcp" in iter(server.stderr.readline, b"").__next__()
        command = [sys.executable, "-m", "octavo"]
        (work / "kept.md").write_text("one", encoding="utf-8")
        with subprocess.Popen(
            [*command, "watch", "file://*", "--as", "a", "--json", "--after", "0"],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as first:  # fmt: skip
            assert first.stderr is not None and first.stdout is not None
            said = first.stderr.readline() + first.stderr.readline()
            assert "changes since 0 may be missing" in said
            number = said.rpartition(" from ")[2].split()[0]
            (work / "a.md").write_text("one", encoding="utf-8")
            assert json.loads(first.stdout.readline())["uri"] == "file://a.md"
            first.terminate()
        (work / "hidden.md").write_text("one", encoding="utf-8")
        (work / "b.md").write_text("one", encoding="utf-8")
        found = watched(number, 2)
        assert [what for _, what in found] == ["created a.md", "created b.md"]
        assert watched(str(found[0][0]), 1) == found[1:]
        for asked in (["cat", f"changes://file?after={number}"], ["tools", "test", "changes", f"after={number}"]):
            done = subprocess.run(
                [*command, *asked, "--as", "a"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
            )
            assert "b.md" in done.stdout and "hidden.md" not in done.stdout and "gap" not in done.stdout, done.stdout
        with subprocess.Popen(
            [*command, "watch", "file://*", "--as", "a", "--json", "--count", "1"],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as plain:  # fmt: skip
            assert plain.stderr is not None and plain.stdout is not None
            plain.stderr.readline()
            (work / "c.md").write_text("one", encoding="utf-8")
            said = json.loads(plain.stdout.readline())
            assert said["uri"] == "file://c.md" and "seq" not in said, "it is no number of the journal"


@pytest.mark.parametrize("after", ["-1", "9" * 400, "one", str(2**53)])
def test_watch_refuses_a_number_that_was_never_given(tmp_path: Path, after: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "octavo.yaml").write_text("sources: {work: {kind: file, roots: [./work]}}\n", encoding="utf-8")
    command = [sys.executable, "-m", "octavo", "watch", "--after", after]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr
    assert "--after" in done.stderr or "not given yet" in done.stderr


def test_a_reader_that_goes_away_is_no_crash(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "octavo", "ls"]
    done = subprocess.run(command, cwd=folder, stdout=write, stderr=subprocess.PIPE, timeout=30, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")
