"""Real repositories, made by git itself and, where git would refuse, object by object."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path

from octavo.sources.git import GitSource

# Nothing of this machine's configuration counts, and every commit has a time of its own.
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "김",
    "GIT_AUTHOR_EMAIL": "kim@example.com",
    "GIT_COMMITTER_NAME": "김",
    "GIT_COMMITTER_EMAIL": "kim@example.com",
}


def _outside() -> dict[str, str]:
    """Without what a git that runs the tests, as a hook does, would say of its own repository."""
    return {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}


class Clone:
    """A repository with a work tree."""

    def __init__(self, path: Path, *options: str, copy_of: Path | None = None) -> None:
        self.path = path
        self._time = 1_700_000_000
        if copy_of is not None:
            shutil.copytree(copy_of, path)
            return
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", "--template=", *options)

    @property
    def git_dir(self) -> Path:
        inner = self.path / ".git"
        return inner if inner.is_dir() else self.path

    def git(self, *arguments: str, text: str | bytes | None = None) -> str:
        self._time += 60
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{self._time} +0900")
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path, env={**_outside(), **_ENVIRONMENT, **dates}, capture_output=True, check=True, timeout=30,
            input=text.encode() if isinstance(text, str) else text,
        )  # fmt: skip
        return done.stdout.decode("utf-8", "replace").strip()

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        for path, text in files.items():
            place = self.path / path
            if text is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self, files: Mapping[str, str | bytes | None], message: str = "change") -> str:
        """On main. None deletes a file."""
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return (self.git_dir / "refs/heads/main").read_text(encoding="ascii").strip()

    def commit_tree(self, tree: str, *parents: str, branch: str = "main") -> str:
        """Moves a branch to a commit of a tree that need not be one that git would make."""
        options = [part for parent in parents for part in ("-p", parent)]
        commit = self.git("commit-tree", tree, *options, text="made by hand")
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return commit

    def commit_tree_of_anything(self, tree: str, *parents: str, time: int = 1_700_000_000) -> None:
        """As `commit_tree`, also for a tree and a time that git itself cannot read."""
        who = b"x <x@example.com> %d +0000" % time
        above = b"".join(b"parent %s\n" % parent.encode() for parent in parents)
        lines = (b"tree %s\n" % tree.encode(), above, b"author %s\ncommitter %s\n\nodd\n" % (who, who))
        commit = self.put("commit", b"".join(lines))
        (self.git_dir / "refs/heads/main").write_text(f"{commit}\n", encoding="ascii")

    def put(self, kind: str, data: bytes) -> str:
        """Any bytes as an object."""
        raw = b"%s %d\0%s" % (kind.encode(), len(data), data)
        name = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
        place = self.git_dir / "objects" / name[:2] / name[2:]
        place.parent.mkdir(exist_ok=True)
        if not place.exists():
            place.write_bytes(zlib.compress(raw))
        return name

    def tree(self, *items: tuple[str, bytes, str]) -> str:
        """Of modes, names and ids, in whatever order and however odd."""
        return self.put("tree", b"".join(b"%s %s\0" % (m.encode(), n) + bytes.fromhex(i) for m, n, i in items))

    def source(self, **options: object) -> GitSource:
        return GitSource(self.path, secret=b"secret", **options)  # type: ignore[arg-type]
