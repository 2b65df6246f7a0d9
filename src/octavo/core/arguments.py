"""What an operation is given beside an address: one value for each kind of operation, and never a bag of names.

Which operation takes which is said in `core.operations`. What a caller writes for a tool or a prompt stays a mapping,
since the schema of the tool says what is in it: `OwnArguments`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, Never, TypeAlias

from msgspec import UNSET, Struct
from msgspec.structs import fields

from octavo.core.edit import Revision
from octavo.core.query import Query, TextQuery
from octavo.core.ref import Ref

if TYPE_CHECKING:
    from octavo.core.forms import Answer
    from octavo.core.glob import Glob
    from octavo.core.values import Suggestion

NOTHING: Mapping[str, Never] = MappingProxyType({})

Mode = Literal["create", "overwrite", "append", "upsert"]

# Whether a document may be found, by its address; or, where that does not settle it, by its metadata (None: not known).
Allowed: TypeAlias = Callable[[Ref], bool | Callable[[Mapping[str, object] | None], bool]]


class Arguments(Struct, frozen=True):
    """Nothing but the address. What has more is a class of its own."""

    def told(self) -> Mapping[str, object]:
        """What differs from the usual, by name: for a human who is asked, and for telling two calls apart."""
        given = ((one, getattr(self, one.name)) for one in fields(self))
        return {one.name: value for one, value in given if one.default is UNSET or value != one.default}


PLAIN: Final = Arguments()  # one for all: most calls hold nothing else


class ListArguments(Arguments, frozen=True, kw_only=True):
    depth: int | None = None  # of each folder so many names below only one entry, which stands for it
    filter: Mapping[str, object] = NOTHING  # metadata, as in `resources/list`


class FoldersArguments(Arguments, frozen=True, kw_only=True):
    depth: int | None = 0  # levels below the address; None: all
    most: int = 1


class SearchArguments(Arguments, frozen=True):
    query: Query | TextQuery


class RankedArguments(SearchArguments, frozen=True):
    """What the policy makes of a search by rank: who may find what is decided inside of it."""

    query: TextQuery
    allowed: Allowed
    viewer: Hashable


class WatchArguments(Arguments, frozen=True):
    glob: Glob


class ChangesArguments(Arguments, frozen=True):
    after: int | None = None  # a number of the feed; None: the latest


class WriteArguments(Arguments, frozen=True, kw_only=True):
    body: str | bytes
    if_match: str | None = None
    mode: Mode = "upsert"
    encoding: str | None = None


class EditArguments(Arguments, frozen=True, kw_only=True):
    revision: Revision
    if_match: str | None = None
    dry_run: bool = False

    def told(self) -> Mapping[str, object]:
        rest = super().told()
        return {**self.revision.told(), **{name: value for name, value in rest.items() if name != "revision"}}


class DeleteArguments(Arguments, frozen=True, kw_only=True):
    if_match: str | None = None


class CopyArguments(Arguments, frozen=True, kw_only=True):
    to: Ref
    overwrite: bool = False
    written: Ref | None = None  # what the caller wrote for `to`, of which it is the canonical spelling

    def told(self) -> Mapping[str, object]:
        return {name: value for name, value in super().told().items() if name != "written"}


class MoveArguments(CopyArguments, frozen=True, kw_only=True):
    if_match: str | None = None


class UndoArguments(Arguments, frozen=True, kw_only=True):
    count: int = 1
    only: tuple[str, ...] | None = None  # the ids of what somebody has looked at
    look: bool = False  # what would be undone is told, and nothing is


class OwnArguments(Arguments, frozen=True):
    """Those of a tool or a prompt, by the names that its own schema gives them."""

    values: Mapping[str, object] = NOTHING

    def told(self) -> Mapping[str, object]:
        return self.values


class CompleteArguments(Arguments, frozen=True, kw_only=True):
    argument: str
    prefix: str
    given: Mapping[str, str] = NOTHING  # the other arguments
    template: str | None = None
    after: Suggestion | None = None  # the last one of the part before


class TaskArguments(Arguments, frozen=True):
    task: str


class AnswerArguments(TaskArguments, frozen=True):
    answers: Mapping[str, Answer]


def if_match_of(arguments: Arguments) -> str | None:
    """The version that must stand there, of whatever can ask for one."""
    if isinstance(arguments, WriteArguments | EditArguments | DeleteArguments | MoveArguments):
        return arguments.if_match
    return None
