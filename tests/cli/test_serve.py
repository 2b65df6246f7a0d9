"""`octavo serve` refuses what would let strangers in, before anything is opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--http", "0.0.0.0:8321", "--no-auth"), "--no-auth on 0.0.0.0:8321 would let other machines in"),
        (("--http", "[::]:8321", "--no-auth"), "--no-auth on [::]:8321 would let other machines in"),
        (("--http", "--as", "agent-brand"), "--as needs --no-auth"),
        (("--http", "nonsense"), "--http nonsense: must be host:port"),
        (("--no-auth",), "--no-auth is about HTTP"),
        (
            ("--as", "agent-ghost"),
            "there is no agent agent-ghost; known agents: agent-brand, agent-finance, agent-hr, agent-ops, ",
        ),
        (("handbook", "--config", "octavo.yaml"), "give a folder or --config, not both"),
        (("--log-level", "loud"), "'loud' is not one of 'debug', 'info', 'warning', 'error'"),
    ],
)
def test_what_is_refused(args: tuple[str, ...], says: str, run: Run, folder: Path) -> None:
    result = run("serve", *args)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not (folder / ".octavo").exists()


@pytest.mark.parametrize("args", [("handbook", "--http"), ("--http", "handbook"), ("handbook", "--http", "9000")])
def test_http_without_keys_is_refused_and_says_what_to_do(args: tuple[str, ...], run: Run, folder: Path) -> None:
    """Also shows that `--http DIR` means the folder, not an address."""
    result = run("serve", *args)
    assert result.exit_code == 2
    assert "HTTP needs agents with keys, and there are none" in result.stderr
    assert "add --no-auth" in result.stderr


def test_a_folder_that_has_a_configuration_is_told_that_it_is_not_used(run: Run, folder: Path) -> None:
    result = run("serve", folder, "--http")
    assert f"octavo: warning: {folder}/octavo.yaml is not used" in result.stderr


def test_a_folder_that_is_not_there(run: Run, empty: Path) -> None:
    result = run("serve", "nowhere")
    assert result.exit_code == 2
    assert result.stderr == f"octavo: error: nowhere: there is no folder {empty}/nowhere\n"


def served(*folders: str) -> str:
    """What a server says whose client leaves at once."""
    command = [sys.executable, "-m", "octavo", "serve", *folders]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=True)
    return done.stderr.decode("utf-8")


def test_a_folder_without_files_is_served_and_says_so(empty: Path) -> None:
    """Also one that has nothing but what is never served."""
    for name in ("empty", "hidden", "one"):
        (empty / name).mkdir()
    (empty / "hidden" / ".env").write_text("KEY=1\n", encoding="utf-8")
    (empty / "one" / "below").mkdir()
    (empty / "one" / "below" / "a.md").write_text("# A\n", encoding="utf-8")
    told = "octavo: warning: {} has no file that could be served; what is put there later is served\n"
    for name, says in (("empty", told), ("hidden", told), ("one", "")):
        assert served(name) == says.format(name)
    assert served("one", "empty") == told.format("empty")


def test_links_that_lead_nowhere_are_no_files(empty: Path) -> None:
    """Those that lead out are not served, and loops lead nowhere. Those that stay inside are files as any."""
    for name in ("out", "loops", "inside"):
        (empty / name).mkdir()
    (empty / "beyond.md").write_text("# A\n", encoding="utf-8")
    (empty / "out" / "a.md").symlink_to("../beyond.md")
    (empty / "out" / "folder").symlink_to("..")
    (empty / "loops" / "self.md").symlink_to("self.md")
    (empty / "loops" / "up").symlink_to(".")
    (empty / "inside" / ".git").mkdir()
    (empty / "inside" / ".git" / "kept.md").write_text("# A\n", encoding="utf-8")
    (empty / "inside" / "hidden.md").symlink_to(".git/kept.md")
    told = "octavo: warning: {} has no file that could be served; what is put there later is served\n"
    for name in ("out", "loops", "inside"):
        assert served(name) == told.format(name)
    (empty / "inside" / "real.md").symlink_to("twin.md")
    (empty / "inside" / "twin.md").write_text("# A\n", encoding="utf-8")
    assert served("inside") == ""


def test_names_without_an_address_are_no_news_for_whoever_asks_one_question(run: Run, empty: Path) -> None:
    """Servers warn of them, and `octavo check` says which they are."""
    (empty / "files").mkdir()
    for name in ("a.md", "b\\c.md"):
        (empty / "files" / name).write_text("# A\n", encoding="utf-8")
    sources = "sources: {files: {kind: file, roots: [./files]}}"
    (empty / "octavo.yaml").write_text(f"version: 1\n{sources}\n", encoding="utf-8")
    for command in (("ls",), ("cat", "a.md")):
        done = subprocess.run(
            [sys.executable, "-m", "octavo", *command], input=b"", capture_output=True, timeout=60, check=True
        )
        assert b"Not served" not in done.stderr, command
    assert "backslash" in run("check").stderr


def test_write_is_for_a_folder(run: Run, folder: Path) -> None:
    """In a configuration each source says for itself whether it may be changed."""
    result = run("serve", "--write")
    assert result.exit_code == 2
    assert "say write: true on the source" in result.stderr


def test_an_unknown_toolset_is_refused_with_those_there_are(run: Run, folder: Path) -> None:
    result = run("serve", "--toolsets", "files,everything")
    assert result.exit_code == 2
    assert (
        "there is no toolset everything; there are: data, files, filesystem, people, process, prompts, seed, web"
        in result.stderr
    )


def told_by(config: str, empty: Path) -> tuple[int, str]:
    """What the start of a server comes to whose client leaves at once."""
    for folder in ("book", "other"):
        (empty / folder).mkdir(exist_ok=True)
    (empty / "octavo.yaml").write_text(f"version: 1\nsources:\n{config}", encoding="utf-8")
    command = [sys.executable, "-m", "octavo", "serve", "--config", str(empty / "octavo.yaml")]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False)
    return done.returncode, done.stderr.decode("utf-8")


def test_a_configuration_that_serves_nothing_at_all_does_not_start(empty: Path) -> None:
    """One catalog of several that serves nothing is said, and so is an empty folder; neither keeps the rest away."""
    book = "  book: {kind: file, roots: [./book], expose: false}\n  it: {kind: doc, store: book}\n"
    other = "  other: {kind: file, roots: [./other], expose: false}\n  more: {kind: sop, store: other}\n"
    why = "sources.it: nothing is served: the folder docs is not there, or empty"
    code, said = told_by(book, empty)
    assert code == 1 and f"octavo: error: {why}" in said
    code, said = told_by(book + other, empty)
    assert code == 1 and f"octavo: error: {why}" in said and "sources.more: nothing is served: " in said
    code, said = told_by(book + "  files: {kind: file, roots: [./other]}\n", empty)
    assert code == 0 and "it: nothing is served: " in said
    (empty / "other" / "a.md").write_text("# A\n", encoding="utf-8")
    assert told_by(book + other, empty)[0] == 0
    (empty / "book" / "a.md").write_text("# A\n", encoding="utf-8")
    assert told_by(book, empty) == (0, "")
