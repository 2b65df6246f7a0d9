"""Numbered SQL: `0001.sql` makes the first layout, `0002.sql` makes the second out of the first, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from octavo.core.errors import SourceUnavailable


def steps(package: str) -> Sequence[Sequence[str]]:
    """The statements of each step, in order."""
    folder = files(package).joinpath("sql")
    names = sorted(one.name for one in folder.iterdir() if one.name.endswith(".sql"))
    return [_statements(folder.joinpath(name).read_text(encoding="utf-8")) for name in names]


def newer(layout: int, known: int) -> SourceUnavailable:
    return SourceUnavailable(
        f"The store was written by a newer Octavo: its layout is {layout}, and this one knows up to {known}. "
        "Run that version, or give this one a store of its own; nothing was changed."
    )


def _statements(text: str) -> Sequence[str]:
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [one.strip() for one in "\n".join(lines).split(";") if one.strip()]
