"""What is wrong with a file of a catalog, said so that it can be mended."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from octavo.core.ref import Ref

_NUMBER: Final = re.compile(r"\[\d+\]")  # of an item in a list: what is wrong with it is the same in each


class FileProblem(NamedTuple):
    file: str  # below the folder of the store: `sops/brand/brief.md`
    line: int
    message: str
    ref: Ref | None = None  # of the entry; None for a file that has no address
    serious: bool = True  # False: worth a look, such as a file that is not served because of its name
    group: str = ""  # what it has in common with others, where the message says more

    @property
    def kind(self) -> str:
        return self.group or _NUMBER.sub("", self.message)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"
