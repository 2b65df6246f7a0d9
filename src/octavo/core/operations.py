"""The table of operations: for each its name, what it takes and gives, what it does, and what it can reveal.

Every step of the pipeline and every door reads this table instead of lists of its own. Changing is no way to read: what
shows, carries or compares what stands at an address needs `read` there, whatever else it does. The policy asks for
exactly the verbs of an act, `docs/security-model.md` prints them, and a test holds both against the operations that
there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from octavo.core.arguments import (
    PLAIN,
    AnswerArguments,
    Arguments,
    ChangesArguments,
    CompleteArguments,
    CopyArguments,
    DeleteArguments,
    EditArguments,
    FoldersArguments,
    ListArguments,
    MoveArguments,
    OwnArguments,
    SearchArguments,
    TaskArguments,
    UndoArguments,
    WatchArguments,
    WriteArguments,
    if_match_of,
)
from octavo.core.values import Op, Verb

# An operation, or one way of asking for it that needs more.
ActName: TypeAlias = str


class Act(NamedTuple):
    """One way of asking for an operation, and what it can reveal to whoever may ask for it."""

    op: Op
    reveals: str
    needs: tuple[Verb, ...]  # at its address; the first is the verb of the act itself, about which a human may be asked
    there: tuple[Verb, ...] = ()  # at its other end
    way: str = ""  # which way of asking this is, where there are several


# How the policy decides. One look at the address is enough, unless it is one of these: what is asked over several
# sources or entries, what is made of calls that are decided themselves (`parts`), a change of one place or of two
# (`act`, `arrange`), and what is asked about a task, which was decided when its tool was called.
Decided = Literal[
    "address", "list", "templates", "folders", "search", "complete", "watch", "changes", "parts", "act", "arrange",
    "task",
]  # fmt: skip


class Operation(NamedTuple):
    act: Act  # the usual way of asking for it; others that need more are in `_FURTHER`
    takes: type[Arguments]
    gives: str  # the values of `core` that answer it; a plugin's tool or prompt may give something else to the wire
    methods: tuple[str, ...] = ()  # of the transport, that lead to it
    decided: Decided = "address"
    changes: bool = False  # the policy looks at the other end of a move or copy as well: it is written
    kept: bool = False  # whether the cache may give the reply again
    repeats: bool = False  # a source that failed may be asked again
    foreign: bool = False  # runs code of tools and prompts
    by_id: bool = False  # its address may be spelled by the id of what it means
    steers: bool = False  # changes the course of a task

    @property
    def name(self) -> Op:
        return self.act.op

    @property
    def verb(self) -> Verb:
        """That the policy asks for."""
        return self.act.needs[0]


_TAKEN = "whether something stands there"
_KNOWN = "whether the content is one that the caller knows"

_ROWS: Final = (
    Operation(
        Act(
            "list",
            "names, sizes, times, versions, titles, descriptions, metadata; with `read` titles out of texts",
            ("list",),
        ),
        ListArguments, "Page[Entry]", ("resources/list", "tools/list", "prompts/list"),
        decided="list", kept=True, repeats=True, by_id=True,
    ),
    Operation(
        Act("folders", "names of folders", ("list",)),
        FoldersArguments, "Sequence[Ref]", decided="folders", repeats=True, by_id=True,
    ),
    Operation(
        Act("templates", "families of addresses", ("list",)),
        Arguments, "Sequence[Template]", ("resources/templates/list",), decided="templates",
    ),
    Operation(
        Act("stat", "what a list tells of one entry", ("list",)), Arguments, "Entry", repeats=True, by_id=True,
    ),
    Operation(
        Act("complete", "names and values that a list would tell", ("list",)),
        CompleteArguments, "Sequence[str]", ("completion/complete",), decided="complete", repeats=True,
    ),
    Operation(
        Act("directory", "what lists tell, in one answer", ("list",)),
        Arguments, "Page[Entry]", ("resources/directory/read",), decided="parts", by_id=True,
    ),
    Operation(
        Act("skills", "what lists tell of skills", ("list",)),
        Arguments, "Page[Skill]", ("skills/list", "skills/get"), decided="parts",
    ),
    Operation(
        Act("read", "the content, its etag and encoding, what a list tells of it", ("read",)),
        Arguments, "Content", ("resources/read",), kept=True, repeats=True, by_id=True,
    ),
    Operation(
        Act("search", "what was found, and the words around it", ("search", "read")),
        SearchArguments, "Page[Entry] | Findings", decided="search", repeats=True, by_id=True,
    ),
    Operation(
        Act("watch", "that something changed", ("watch",)),
        WatchArguments, "None", ("resources/subscribe",), decided="watch", by_id=True,
    ),
    Operation(
        Act("changes", "what a list tells of an entry, before and after, with `read` also its etag", ("watch",)),
        ChangesArguments, "News", decided="changes", by_id=True,
    ),
    Operation(
        Act("write", f"{_TAKEN}, where it fails", ("write",), way="a new or whole file"),
        WriteArguments, "Entry", decided="act", changes=True,
    ),
    Operation(
        Act("edit", "lines of the content, in the diff and in errors", ("write", "read")),
        EditArguments, "Edited", decided="act", changes=True,
    ),
    Operation(
        Act("make", f"{_TAKEN}, where it fails", ("write",)), Arguments, "None", decided="act", changes=True,
    ),
    Operation(
        Act("delete", _TAKEN, ("delete",)), DeleteArguments, "bool", decided="arrange", changes=True,
    ),
    Operation(
        Act("move", "the content, where it ends", ("delete", "read"), ("write",)),
        MoveArguments, "Entry", decided="arrange", changes=True,
    ),
    Operation(
        Act("copy", "the content, where it ends", ("read",), ("write",)),
        CopyArguments, "Entry", decided="arrange", changes=True,
    ),
    Operation(
        Act("undo", "whether it was changed since", ("write",), way="of a write, copy or delete"),
        UndoArguments, "Sequence[Undone]", decided="arrange", changes=True,
    ),
    Operation(
        Act("invoke", "what the tool says; what it asks for is asked as its caller", ("invoke",)),
        OwnArguments, "ToolResult | Task", ("tools/call",), decided="act", foreign=True,
    ),
    Operation(
        Act("poll", "what the caller's own call of a tool came to", ("invoke",)),
        TaskArguments, "Task", ("tasks/get",), decided="task",
    ),
    Operation(
        Act("answer", "the same", ("invoke",)),
        AnswerArguments, "None", ("tasks/update",), decided="task", steers=True,
    ),
    Operation(
        Act("cancel", "the same", ("invoke",)), TaskArguments, "None", ("tasks/cancel",), decided="task", steers=True,
    ),
    Operation(
        Act("render", "the prompt; what it holds is read as its caller", ("render",)),
        OwnArguments, "PromptResult", ("prompts/get",), foreign=True,
    ),
)  # fmt: skip

# Ways of asking that need more than the usual one.
_FURTHER: Final[Mapping[ActName, Act]] = {
    "append": Act("write", "size, encoding and kind of what stands there", ("write", "read"), way="append"),
    "write if_match": Act("write", _KNOWN, ("write", "read"), way="with `if_match`"),
    "delete if_match": Act("delete", _KNOWN, ("delete", "read"), way="with `if_match`"),
    "undo move": Act("undo", "the content, where it was before", ("write", "read"), ("write",), "of a move"),
}

OPERATIONS: Final[Mapping[Op, Operation]] = MappingProxyType({row.name: row for row in _ROWS})
ACTS: Final[Mapping[ActName, Act]] = MappingProxyType(
    {
        name: act
        for row in _ROWS
        for name, act in ((row.name, row.act), *(more for more in _FURTHER.items() if more[1].op == row.name))
    }
)

VERB_OF: Final[Mapping[Op, Verb]] = MappingProxyType({name: row.verb for name, row in OPERATIONS.items()})
CHANGING: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.changes)
KEPT: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.kept)
REPEATS: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.repeats)
FOREIGN: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.foreign)
BY_ID: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.by_id)
STEERING: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.steers)
METHODS: Final[Mapping[str, Op]] = MappingProxyType(
    {method: name for name, row in OPERATIONS.items() for method in row.methods}
)


def act_of(op: Op, arguments: Arguments) -> Act:
    """What is asked for, by the way in which it is."""
    if op == "write" and isinstance(arguments, WriteArguments) and arguments.mode == "append":
        return ACTS["append"]
    if op in ("write", "delete") and if_match_of(arguments) is not None:
        return ACTS[f"{op} if_match"]
    return ACTS[op]


def arguments_of(op: Op, values: Mapping[str, object]) -> Arguments:
    """The arguments of an operation from a record of them. Raises TypeError for what it does not take."""
    takes = OPERATIONS[op].takes
    if takes is OwnArguments:
        return OwnArguments(values)
    return takes(**values) if values else PLAIN
