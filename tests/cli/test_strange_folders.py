"""Folders that nobody planned: what is in them is served, or said; never is a server both silent and empty (O17)."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.cli.conftest import Run
from tests.sources.git.clones import Clone

pytestmark = pytest.mark.seed("O17")

Fill: TypeAlias = Callable[[Path], object]
LONG = "가" * 84 + ".md"  # of 255 bytes
TWINS = [unicodedata.normalize(form, "예산.md") for form in ("NFC", "NFD")]
MANY = 600  # 200,000 are for `python bench/world.py --many 200000`


def put(files: Mapping[str, str | bytes]) -> Fill:
    def fill(folder: Path) -> None:
        for name, body in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(body if isinstance(body, bytes) else body.encode())

    return fill


def loops(folder: Path) -> None:
    put({"a/x.md": "# X\n"})(folder)
    (folder / "a/up.md").symlink_to("../a")
    (folder / "a/up").symlink_to("..")
    (folder / "self.md").symlink_to("self.md")
    (folder / "one.md").symlink_to("other.md")
    (folder / "other.md").symlink_to("one.md")


def loops_alone(folder: Path) -> None:
    (folder / "up").symlink_to(".")
    (folder / "self.md").symlink_to("self.md")


NOTHING = "nothing is served"
FOLDERS: dict[str, tuple[Fill, list[str], list[str]]] = {
    # what fills it, what is served of it as `kind: doc`, and what `check` says of it
    "nothing": (put({}), [], [NOTHING]),
    "pictures alone": (put({"a.png": b"\x89PNG", "img/b.jpg": b"\xff\xd8"}), [], [NOTHING]),
    "loops of links": (loops, ["doc://a/x"], []),
    "loops of links alone": (loops_alone, [], [NOTHING]),
    "names that differ in case": (put({"Guide.md": "# A\n", "guide.md": "# B\n"}), ["doc://Guide", "doc://guide"], []),
    "names that differ in their Unicode form": (
        put({TWINS[0]: "# A\n", TWINS[1]: "# B\n"}), ["doc://예산"], ["Unicode form"],
    ),
    "front matter in TOML": (put({"a.md": '+++\ntitle = "T"\n+++\n'}), ["doc://a"], []),
    "front matter in TOML that is none": (put({"a.md": "+++\ntitle = T\n+++\n"}), ["doc://a"], ["is no TOML"]),
    "front matter in TOML without an end": (put({"a.md": "+++\nx = 1\n"}), ["doc://a"], ["does not end"]),
    "front matter in JSON": (put({"a.md": '{\n"title": "T"\n}\n'}), ["doc://a"], []),
    "front matter in JSON that is none": (put({"a.md": '{\n"title": "T",\n}\n'}), ["doc://a"], ["is no JSON"]),
    "a name of 255 bytes": (put({LONG: "# Long\n"}), [f"doc://{LONG[:-3]}"], []),
    "two files of one address": (
        put({"index.mdx": "# X\n", "index.md": "# D\n"}), ["doc://index"],
        ["index.mdx", "another file has its address"],
    ),
    "many files": (
        put({f"{n % 50}/{n}.md": "# T\n" for n in range(MANY)}), [f"doc://{n % 50}/{n}" for n in range(MANY)], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_there_is_served_or_said(run: Run, empty: Path, name: str) -> None:
    fill, served, says = FOLDERS[name]
    (empty / "docs").mkdir()
    fill(empty / "docs")
    (empty / "octavo.yaml").write_text(
        "version: 1\nsources:\n  files: {kind: file, roots: [./docs], expose: false}\n"
        "  docs: {kind: doc, store: files}\n",
        encoding="utf-8",
    )
    checked = run("check", "--all")
    for words in says:
        assert words in checked.output, checked.output
    assert bool(checked.exit_code) is not bool(served), checked.output
    listed = run("ls", "doc://", "--json")
    assert sorted(_addresses(listed.stdout)) == sorted(served), listed.output


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_served_as_it_is_or_said_to_be_empty(run: Run, empty: Path, name: str) -> None:
    fill, _, _ = FOLDERS[name]
    (empty / "docs").mkdir()
    fill(empty / "docs")
    (empty / "octavo.yaml").write_text(
        "version: 1\nsources:\n  files: {kind: file, roots: [./docs], extensions: ['*']}\n", encoding="utf-8"
    )
    listed = _addresses(run("ls", "--json").stdout)
    for uri in listed[:4]:
        assert run("cat", uri).exit_code == 0, uri
    assert listed or "nothing" in name or "alone" in name
    if not listed:
        told = run("ls")
        assert "empty" in told.output or "nothing" in told.output.lower() or "no entries" in told.output, told.output


def _addresses(text: str) -> list[str]:
    return [one["uri"] for one in json.loads(text)["resources"]]


@pytest.mark.parametrize("kind", ["git", "history"])
@pytest.mark.parametrize("headless", [False, True])
def test_a_repository_without_a_commit_or_head_is_said(run: Run, empty: Path, kind: str, headless: bool) -> None:
    clone = Clone(empty / "docs")
    (empty / "docs" / "a.md").write_text("# A\n", encoding="utf-8")
    if headless:
        (clone.git_dir / "HEAD").unlink()
    store = "{kind: git, path: ./docs, expose: false}"
    if kind == "history":
        store = "{kind: file, roots: [./docs], history: all, expose: false}"
    (empty / "octavo.yaml").write_text(
        f"version: 1\nsources:\n  files: {store}\n  docs: {{kind: doc, store: files}}\n", encoding="utf-8"
    )
    checked, listed = run("check"), run("ls", "doc://")
    assert "doc://a" in listed.stdout or checked.exit_code == 1, checked.output + listed.output
    assert "doc://a" in listed.stdout or "octavo: error: " in checked.output
