"""`bench/world.py` counts what is served of what is there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WORLD = Path(__file__).parents[2] / "bench" / "world.py"


@pytest.mark.seed("O17")
def test_a_folder_of_documents_is_counted_and_what_is_wrong_is_told_by_kind(tmp_path: Path) -> None:
    folder = tmp_path / "somebody+handbook"
    (folder / "team/process").mkdir(parents=True)
    (folder / "README.md").write_text("# Handbook\n\n[gone](gone.md)\n", "utf-8")
    (folder / "team/process/one.mdx").write_text("# One\n", "utf-8")
    (folder / "team/logo.png").write_bytes(b"\x89PNG")
    run = subprocess.run(
        [sys.executable, str(WORLD), "--json", "--kind", "doc", str(folder)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    told = json.loads(run.stdout)
    assert (told["name"], told["served"], told["there"], told["outside"], told["exit"]) == (
        "somebody/handbook", 2, 2, 0, 0,
    )  # fmt: skip
    assert told["complaints"] == [["a link leads nowhere", 1]]
