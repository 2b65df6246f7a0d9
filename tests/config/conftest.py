"""A folder with what good and bad configurations talk about."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SECRETS = ("correct-horse-battery-staple", "another-long-secret-value", "*star-secret-value", "file-secret-value-00")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("site")
    for folder in ("handbook/inner", "other/handbook", "prompts", ".octavo/cache", "package", "핸드북"):
        (base / folder).mkdir(parents=True)
    (base / "alias").symlink_to("handbook")
    (base / "handbook/a.md").write_text("# A\n", encoding="utf-8")
    (base / "plugin.py").write_text("", encoding="utf-8")
    (base / "plugin.txt").write_text("", encoding="utf-8")
    (base / "key").write_text("file-secret-value-00\n", encoding="utf-8")
    os.chmod(base / "key", 0o600)
    (base / "empty-key").write_text("\n", encoding="utf-8")
    (base / "binary-key").write_bytes(b"\xff\xfe\x00")
    return base


@pytest.fixture(scope="session")
def environ() -> dict[str, str]:
    return {
        "BRAND_KEY": "correct-horse-battery-staple",
        "OTHER_KEY": "another-long-secret-value",
        "EMPTY": " ",
        "SHORT": "abc",
    }
