"""What is wrong with a file of a catalog, said so that it can be mended."""

from __future__ import annotations

from typing import NamedTuple

from octavo.core.ref import Ref


class FileProblem(NamedTuple):
    file: str  # below the folder of the store: `sops/brand/brief.md`
    line: int
    message: str
    ref: Ref | None = None  # of the entry; None for a file that has no address
    serious: bool = True  # False: worth a look, such as a file that is not served because of its name
    group: str = ""  # what it has in common with others, where the message says more

    @property
    def kind(self) -> str:
        return self.group or self.message

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"
