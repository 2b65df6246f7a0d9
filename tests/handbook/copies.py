"""Copies of the clean files of a handbook under new names and ids, in which one thing at a time is changed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDERS = {
    "sop": "sops", "doc": "docs", "skill": "skills", "agent": "agents",
    "function": "org/functions", "stream": "org/value-streams", "role": "org/roles",
}  # fmt: skip


@cache
def clean_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.*") if "fault-" not in file.name)


class Copy:
    """One copy. Lines are counted from 1; what changes them says where the change stands."""

    def __init__(self, handbook: Path, kind: str, name: str, number: int) -> None:
        clean = clean_files(handbook / FOLDERS[kind])
        base = clean[number % len(clean)]
        self._handbook = handbook
        self.path = base.with_name(f"fault-{name}-{number}{base.suffix}")
        self.lines = base.read_text(encoding="utf-8").splitlines()
        self.id = f"{kind}-fault-{name}-{number}"
        self.put("id", self.id)

    @property
    def file(self) -> str:
        return self.path.relative_to(self._handbook).as_posix()

    def line(self, key: str) -> int:
        return next(n for n, line in enumerate(self.lines, 1) if line.startswith(f"{key}:"))

    def drop(self, key: str) -> int:
        """With whatever is indented below it."""
        at = self.line(key) - 1
        end = at + 1
        while end < len(self.lines) and self.lines[end].startswith((" ", "-")) and self.lines[end] != "---":
            end += 1
        del self.lines[at:end]
        return at

    def put(self, key: str, value: str) -> int:
        """In place of what stands at the key, or behind the id."""
        there = any(line.startswith(f"{key}:") for line in self.lines)
        at = self.drop(key) if there else self.line("id")
        return self._insert(at, f"{key}: {value}".rstrip())

    def behind(self, key: str, *lines: str) -> int:
        """Lines behind a key that has one line; where the first of them stands."""
        return self._insert(self.line(key), *lines)

    def end(self, *lines: str) -> int:
        return self._insert(len(self.lines), *lines)

    def _insert(self, at: int, *lines: str) -> int:
        self.lines[at:at] = lines
        return at + 1

    def write(self, body: bytes | None = None) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes("\n".join([*self.lines, ""]).encode() if body is None else body)
