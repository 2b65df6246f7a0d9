"""Every operation: what its answers and errors can reveal, and the verbs that it needs for that.

Changing is no way to read: what shows, carries or compares what stands at an address needs `read` there, whatever else
it does. The policy asks for exactly these verbs, `docs/security-model.md` prints the table, and a test holds both
against the operations that there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from octavo.core.model import Op, Verb

# An operation, or one way of asking for it that needs more.
Act: TypeAlias = str


class Operation(NamedTuple):
    op: Op
    reveals: str  # to whoever may ask for it
    needs: tuple[Verb, ...]  # at its address; the first is the verb of the act itself, about which a human may be asked
    there: tuple[Verb, ...] = ()  # at its other end
    way: str = ""  # which way of asking this is, where there are several


_TAKEN = "whether something stands there"

OPERATIONS: Final[Mapping[Act, Operation]] = MappingProxyType(
    {
        "list": Operation(
            "list",
            "names, sizes, times, versions, titles, descriptions, metadata; with `read` titles out of texts",
            ("list",),
        ),
        "folders": Operation("folders", "names of folders", ("list",)),
        "templates": Operation("templates", "families of addresses", ("list",)),
        "stat": Operation("stat", "what a list tells of one entry", ("list",)),
        "complete": Operation("complete", "names and values that a list would tell", ("list",)),
        "directory": Operation("directory", "what lists tell, in one answer", ("list",)),
        "skills": Operation("skills", "what lists tell of skills", ("list",)),
        "read": Operation("read", "the content, its etag and encoding, what a list tells of it", ("read",)),
        "search": Operation("search", "what was found, and the words around it", ("search", "read")),
        "watch": Operation("watch", "that something changed", ("watch",)),
        "changes": Operation(
            "changes", "what a list tells of an entry, before and after, with `read` also its etag", ("watch",)
        ),
        "write": Operation("write", f"{_TAKEN}, where it fails", ("write",), way="a new or whole file"),
        "append": Operation("write", "size, encoding and kind of what stands there", ("write", "read"), way="append"),
        "write if_match": Operation(
            "write", "whether the content is one that the caller knows", ("write", "read"), way="with `if_match`"
        ),
        "edit": Operation("edit", "lines of the content, in the diff and in errors", ("write", "read")),
        "make": Operation("make", f"{_TAKEN}, where it fails", ("write",)),
        "delete": Operation("delete", _TAKEN, ("delete",)),
        "delete if_match": Operation(
            "delete", "whether the content is one that the caller knows", ("delete", "read"), way="with `if_match`"
        ),
        "move": Operation("move", "the content, where it ends", ("delete", "read"), ("write",)),
        "copy": Operation("copy", "the content, where it ends", ("read",), ("write",)),
        "undo": Operation("undo", "whether it was changed since", ("write",), way="of a write, copy or delete"),
        "undo move": Operation("undo", "the content, where it was before", ("write", "read"), ("write",), "of a move"),
        "invoke": Operation("invoke", "what the tool says; what it asks for is asked as its caller", ("invoke",)),
        "poll": Operation("poll", "what the caller's own call of a tool came to", ("invoke",)),
        "answer": Operation("answer", "the same", ("invoke",)),
        "cancel": Operation("cancel", "the same", ("invoke",)),
        "render": Operation("render", "the prompt; what it holds is read as its caller", ("render",)),
    }
)


def operation(op: Op, arguments: Mapping[str, Any]) -> Operation:
    """What is asked for, by the way in which it is."""
    if op == "write" and arguments.get("mode") == "append":
        return OPERATIONS["append"]
    if op in ("write", "delete") and arguments.get("if_match") is not None:
        return OPERATIONS[f"{op} if_match"]
    return OPERATIONS[op]
