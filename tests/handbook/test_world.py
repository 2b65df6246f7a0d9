"""`bench/world.py` counts what is served of what is there."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORLD = Path(__file__).parents[2] / "bench" / "world.py"


def counted(folder: Path, files: dict[str, str]) -> dict[str, Any]:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    run = subprocess.run(
        [sys.executable, str(WORLD), "--json", "--kind", "doc", str(folder)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    told: dict[str, Any] = json.loads(run.stdout)
    return told


@pytest.mark.seed("O17")
def test_a_folder_of_documents_is_counted_and_what_is_wrong_is_told_by_kind(tmp_path: Path) -> None:
    files = {"README.md": "# Handbook\n\n[gone](gone.md)\n", "team/process/one.mdx": "# One\n", "team/logo.svg": "x"}
    told = counted(tmp_path / "somebody+handbook", files)
    assert (told["name"], told["in_folder"], told["in_whole"], told["exit"]) == ("somebody/handbook", [2, 2], [2, 2], 0)
    assert told["complaints"] == [["a link leads nowhere", 1]]


@pytest.mark.seed("O17")
def test_the_folder_that_a_catalog_chose_and_the_whole_store_are_counted_apart(tmp_path: Path) -> None:
    documents = {"docs/a.md": "a", "docs/b.md": "b", "docs/README.mdx": "c", "guides/d.rst": "d", "README.md": "e"}
    none = ["LICENSE.md", ".github/BUG.md", "web/node_modules/x/README.md", "docs/_build/a.md", "testdata/case.md"]
    told = counted(tmp_path / "handbook", {**documents, **dict.fromkeys(none, "x")})
    assert told["in_folder"] == [4, 4], "what it chose is counted as it is"
    assert told["in_whole"] == [4, 5] and told["missing"] == ["README.md"], "docs/README.mdx has its address"
