"""Which repository has the files of a folder: the one whose work tree it stands in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from octavo.core.errors import SourceUnavailable
from octavo.sources._shared.fs.names import canonical_name
from octavo.sources._shared.git.refs import Names


class WorkTree(NamedTuple):
    top: Path
    below: Names  # the names of the folder, from the top on

    @property
    def repository(self) -> Path:
        return self.top / ".git"


def work_tree(folder: Path) -> WorkTree:
    """The innermost, as git finds it. Whether its repository may be read is for `Repository` to say.

    Raises SourceUnavailable where there is none.
    """
    real = Path(os.path.realpath(folder))
    for top in (real, *real.parents):
        if os.path.lexists(top / ".git"):
            names = [canonical_name(part) for part in real.relative_to(top).parts]
            below = tuple(name for name in names if name is not None)
            if len(below) < len(names):
                raise SourceUnavailable("It lies in a folder of its work tree whose name can be no address")
            return WorkTree(top, below)
    raise SourceUnavailable("It lies in no work tree of git: neither it nor a folder above it has a .git")
