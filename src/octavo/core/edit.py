"""An edit is a value: what is to become of a text, so that it can be recorded, shown to a human and sent elsewhere.

It is applied by the source, to the text as it is on disk but for what is hidden from the caller: `text.revise`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from msgspec import Struct


class Edit(NamedTuple):
    """`old` becomes `new`, in `expected` places."""

    old: str
    new: str
    expected: int | Literal["all"] = 1


class Words(NamedTuple):
    """How the messages call `old`, and what else they advise where it stands in more places than expected."""

    old: str = "`old`"
    otherwise: str = ', or set `expected` to the number or to "all"'


USUAL: Final = Words()


class Revision(Struct, frozen=True, kw_only=True):
    """Edits, or a patch. All of it applies or nothing does."""

    edits: tuple[Edit, ...] = ()
    patch: str | None = None  # a unified diff, instead of edits
    label: str = ""  # what the report calls the text
    most: int = 64_000  # bytes of the report
    words: Words = USUAL  # what the caller's arguments are called

    def told(self) -> Mapping[str, object]:
        """What is to be done, without how it is spoken of."""
        if self.patch is not None:
            return {"patch": self.patch}
        return {"edits": [edit._asdict() for edit in self.edits]}


class Revised(Struct, frozen=True):
    """What has become of a text. The report is for who asked: a unified diff."""

    text: str
    report: str
    added: int = 0  # lines
    removed: int = 0
    places: tuple[Mapping[str, int], ...] = ()  # in the text as it was: of each edit or hunk, the line and how it fits
