"""`octavo scan`, and what a log line may say."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from tests.cli.conftest import Run
from tests.pipeline import secrets_corpus as corpus

from octavo.cli._logs import Discreet

SECRET = corpus.ALL["github-token"](corpus.Maker(3))[1]
NUMBER = corpus.ALL["kr-registration-number"](corpus.Maker(3))[1]


def test_scan_names_rule_address_and_line_and_never_the_secret(empty: Path, run: Run) -> None:
    docs = empty / "docs"
    docs.mkdir()
    (docs / "메모.md").write_text(f"첫 줄\n\n토큰 {SECRET}\n번호 {NUMBER}\nzero\u200bwidth\n", encoding="utf-8")
    (docs / "clean.md").write_text("nothing\n", encoding="utf-8")
    done = run("scan", docs)
    lines = done.stdout.splitlines()
    assert [line.rpartition("md:")[2] for line in lines] == [
        "3: github-token",
        "4: kr-registration-number",
        "5: invisible",
    ]
    assert SECRET not in done.output and NUMBER not in done.output
    assert done.exit_code == 1
    told = json.loads(run("scan", docs, "--json").stdout)
    assert [one["rule"] for one in told["hidden"]] == ["github-token", "kr-registration-number", "invisible"]
    assert told["unread"] == []


def test_scan_of_a_clean_configuration_ends_well_and_leaves_nothing_behind(folder: Path, run: Run) -> None:
    done = run("scan")
    assert (done.exit_code, done.stdout) == (0, "")
    assert not (folder / ".octavo").exists()


def test_scan_of_an_address_looks_there_alone(folder: Path, run: Run) -> None:
    file = folder / "handbook" / "docs" / "policies" / "expense.md"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*lines, f"use {SECRET}", ""]), encoding="utf-8")
    told = f"doc://policies/expense:{len(lines) + 1}: github-token\n"
    assert run("scan").stdout == told
    assert run("scan", "doc://policies/expense").stdout == told
    assert run("scan", "doc://onboarding").stdout == ""


def test_what_is_too_large_is_told(empty: Path, run: Run) -> None:
    docs = empty / "docs"
    docs.mkdir()
    (docs / "large.txt").write_text("x" * (2 << 20), encoding="utf-8")
    done = run("scan", docs)
    assert done.exit_code == 0
    assert "large.txt was not looked at" in done.stderr


def test_a_log_line_holds_no_secret_not_even_in_its_traceback() -> None:
    try:
        raise RuntimeError(f"cannot log in with {SECRET}")
    except RuntimeError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, __file__, 1, "failed: %s", (SECRET,), (type(error), error, error.__traceback__)
        )
    line = Discreet("%(message)s").format(record)
    assert SECRET not in line and line.count("[redacted:github-token:") == 2
