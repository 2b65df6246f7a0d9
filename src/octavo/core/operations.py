"""The table of operations: for each its name, what it takes and gives, what it does, and what it can reveal.

Every step of the pipeline and every door reads this table instead of lists of its own. Changing is no way to read: what
shows, carries or compares what stands at an address needs `read` there, whatever else it does. The policy asks for
exactly the verbs of an act, `docs/security-model.md` prints them, and a test holds both against the operations that
there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

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


class Operation(NamedTuple):
    name: Op
    verb: Verb  # that the policy asks for
    takes: type[Arguments]
    gives: str  # the values of `core` that answer it; a plugin's tool or prompt may give something else to the wire
    changes: bool = False  # the policy looks at the other end of a move or copy as well: it is written
    kept: bool = False  # whether the cache may give the reply again
    foreign: bool = False  # runs code of tools and prompts
    by_id: bool = False  # its address may be spelled by the id of what it means
    task: bool = False  # is asked about a task, at the address of its tool
    steers: bool = False  # changes the course of that task
    methods: tuple[str, ...] = ()  # of the transport, that lead to it


_TAKEN = "whether something stands there"

ACTS: Final[Mapping[ActName, Act]] = MappingProxyType(
    {
        "list": Act(
            "list",
            "names, sizes, times, versions, titles, descriptions, metadata; with `read` titles out of texts",
            ("list",),
        ),
        "folders": Act("folders", "names of folders", ("list",)),
        "templates": Act("templates", "families of addresses", ("list",)),
        "stat": Act("stat", "what a list tells of one entry", ("list",)),
        "complete": Act("complete", "names and values that a list would tell", ("list",)),
        "directory": Act("directory", "what lists tell, in one answer", ("list",)),
        "skills": Act("skills", "what lists tell of skills", ("list",)),
        "read": Act("read", "the content, its etag and encoding, what a list tells of it", ("read",)),
        "search": Act("search", "what was found, and the words around it", ("search", "read")),
        "watch": Act("watch", "that something changed", ("watch",)),
        "changes": Act(
            "changes", "what a list tells of an entry, before and after, with `read` also its etag", ("watch",)
        ),
        "write": Act("write", f"{_TAKEN}, where it fails", ("write",), way="a new or whole file"),
        "append": Act("write", "size, encoding and kind of what stands there", ("write", "read"), way="append"),
        "write if_match": Act(
            "write", "whether the content is one that the caller knows", ("write", "read"), way="with `if_match`"
        ),
        "edit": Act("edit", "lines of the content, in the diff and in errors", ("write", "read")),
        "make": Act("make", f"{_TAKEN}, where it fails", ("write",)),
        "delete": Act("delete", _TAKEN, ("delete",)),
        "delete if_match": Act(
            "delete", "whether the content is one that the caller knows", ("delete", "read"), way="with `if_match`"
        ),
        "move": Act("move", "the content, where it ends", ("delete", "read"), ("write",)),
        "copy": Act("copy", "the content, where it ends", ("read",), ("write",)),
        "undo": Act("undo", "whether it was changed since", ("write",), way="of a write, copy or delete"),
        "undo move": Act("undo", "the content, where it was before", ("write", "read"), ("write",), "of a move"),
        "invoke": Act("invoke", "what the tool says; what it asks for is asked as its caller", ("invoke",)),
        "poll": Act("poll", "what the caller's own call of a tool came to", ("invoke",)),
        "answer": Act("answer", "the same", ("invoke",)),
        "cancel": Act("cancel", "the same", ("invoke",)),
        "render": Act("render", "the prompt; what it holds is read as its caller", ("render",)),
    }
)


def _row(
    name: Op,
    takes: type[Arguments],
    gives: str,
    *methods: str,
    changes: bool = False,
    kept: bool = False,
    foreign: bool = False,
    by_id: bool = False,
    task: bool = False,
    steers: bool = False,
) -> tuple[Op, Operation]:
    verb = ACTS[name].needs[0]
    return name, Operation(name, verb, takes, gives, changes, kept, foreign, by_id, task, steers, methods)


OPERATIONS: Final[Mapping[Op, Operation]] = MappingProxyType(
    dict(
        (
            _row(
                "list", ListArguments, "Page[Entry]", "resources/list", "tools/list", "prompts/list",
                kept=True, by_id=True,
            ),
            _row("folders", FoldersArguments, "Sequence[Ref]", by_id=True),
            _row("templates", Arguments, "Sequence[Template]", "resources/templates/list"),
            _row("stat", Arguments, "Entry", by_id=True),
            _row("read", Arguments, "Content", "resources/read", kept=True, by_id=True),
            _row("search", SearchArguments, "Page[Entry] | Findings", by_id=True),
            _row("complete", CompleteArguments, "Sequence[str]", "completion/complete"),
            _row("directory", Arguments, "Page[Entry]", "resources/directory/read", by_id=True),
            _row("skills", Arguments, "Page[Skill]", "skills/list", "skills/get"),
            _row("watch", WatchArguments, "None", "resources/subscribe", by_id=True),
            _row("changes", ChangesArguments, "News", by_id=True),
            _row("write", WriteArguments, "Entry", changes=True),
            _row("edit", EditArguments, "Edited", changes=True),
            _row("make", Arguments, "None", changes=True),
            _row("delete", DeleteArguments, "bool", changes=True),
            _row("move", MoveArguments, "Entry", changes=True),
            _row("copy", CopyArguments, "Entry", changes=True),
            _row("undo", UndoArguments, "Sequence[Undone]", changes=True),
            _row("invoke", OwnArguments, "ToolResult | Task", "tools/call", foreign=True),
            _row("render", OwnArguments, "PromptResult", "prompts/get", foreign=True),
            _row("poll", TaskArguments, "Task", "tasks/get", task=True),
            _row("answer", AnswerArguments, "None", "tasks/update", task=True, steers=True),
            _row("cancel", TaskArguments, "None", "tasks/cancel", task=True, steers=True),
        )
    )
)  # fmt: skip

VERB_OF: Final[Mapping[Op, Verb]] = MappingProxyType({name: row.verb for name, row in OPERATIONS.items()})
CHANGING: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.changes)
KEPT: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.kept)
FOREIGN: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.foreign)
BY_ID: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.by_id)
TASKS: Final[frozenset[Op]] = frozenset(name for name, row in OPERATIONS.items() if row.task)
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
