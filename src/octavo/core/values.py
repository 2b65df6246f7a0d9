"""Values that travel between rooms. All frozen: a step that changes one makes a new one.

Two things are deliberately not frozen, and neither takes part in equality: a call's `trail`, to which
steps append what the audit wants to know, and the `memo` of a page or content, in which an encoder
keeps bytes so that the same value is encoded once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from octavo.core.arguments import NOTHING as NOTHING
from octavo.core.arguments import PLAIN, Arguments, OwnArguments
from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.core.sizes import MIB

if TYPE_CHECKING:
    from octavo.core.ports.client import Channel

T = TypeVar("T")
A = TypeVar("A", bound=Arguments)

# What a caller can ask for, and what a policy rule can grant; `core.operations` has the table. Plain strings rather
# than an enum: they are part of dictionary keys on the hot path, and an enum hashes in Python.
Op = Literal[
    "list", "folders", "templates", "read", "stat", "search", "watch", "changes", "write", "edit", "delete", "move",
    "copy", "make", "undo", "invoke", "render", "complete", "directory", "skills", "poll", "answer", "cancel",
]  # fmt: skip
Verb = Literal[
    "list", "read", "search", "watch", "write", "delete", "invoke", "render", "complete", "approve", "admin",
]  # fmt: skip
VERBS: tuple[Verb, ...] = (
    "list", "read", "search", "watch", "write", "delete", "invoke", "render", "complete", "approve", "admin",
)  # fmt: skip

# Requests that were read in one go carry one number: a look at the world since then is fresh enough for each.
moments = itertools.count(1)

EVERYTHING = Ref("*")  # the scope of a listing over all sources
NOWHERE = Ref("invalid")  # stands in a call whose address could not be parsed; its `fault` says why
FEED = "changes"  # the scheme under which the change feed is read
QUOTED = "quoted"  # key in what is composed: what of an object stands in the content behind its `uri`: name or all
LABELS = ("confidentiality", "integrity")  # keys of metadata, see core.labels
LONGEST_QUESTION = 3600.0  # seconds that a human may be asked for; what a client carries for it must hold as long


class Principal(NamedTuple):
    """Who asks. Made by the identity step from evidence of the transport, never from arguments."""

    id: str
    roles: frozenset[str] = frozenset()
    key: str = ""  # of the key that proved it, enough to tell it from the agent's next one; "" where none did


class Trail(Struct, eq=False, gc=False):
    """What happened to one call on its way, for its audit record. Append-only by convention."""

    id: int = 0  # of the audit record; a child names its parent by it
    begun: float = 0.0  # when it came, by the clock of the audit fold; 0: not known
    ref: Ref | None = None  # the canonical address, where it is not that of the call
    rule: str = ""  # the policy rule that decided
    cache: str = ""  # "hit", "miss" or "" where no cache applies
    size: int = 0  # bytes of content that were given out
    approved: int = 0  # how many people have allowed the call
    missed: bool = False  # it, or a part of it, found nothing where something may be hidden
    intent: int = 0  # the record that was stored before the call changed something; 0: it changes nothing itself
    changed: bool = False  # it, or a part of it, has begun to change something
    kept: bool = False  # the outcome of such a call is stored: nothing holds its answer back
    rehearsal: bool = False  # it is only tried: nothing may be changed by it


class EncoderMemo(dict[Hashable, Any]):
    """What an encoder keeps with a value. No part of the value: any two are equal.

    Whoever keeps something under a key knows what it is; nobody else reads it, and to ask again would cost on each hit.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EncoderMemo)

    def __repr__(self) -> str:
        return "EncoderMemo()"


class Entry(Struct, frozen=True, kw_only=True, eq=False):
    """What is known of a resource without its content."""

    ref: Ref
    name: str  # for people
    mime_type: str = "text/plain"
    version: str = ""  # opaque; changes whenever the content does
    size: int | None = None
    modified: float | None = None  # seconds since 1970
    etag: str = ""  # keyed digest of the content, where it is known without a read
    title: str | None = None
    description: str | None = None
    annotations: Mapping[str, object] = NOTHING
    metadata: Mapping[str, object] = NOTHING
    quoted: bool = False  # title, and a name equal to it, stand in its content: told to whoever may read that
    target: Ref | None = None  # where a link or an alias really led; the policy looks at it too

    def __eq__(self, other: object) -> bool:
        """Whether the same is known, but for what only one of two looks at a file may have found in its content: the
        digest, and a title that is quoted."""
        if not isinstance(other, Entry):
            return NotImplemented
        return _known(self) == _known(other) and (self.quoted or other.quoted or self.title == other.title)


_known = attrgetter(*(name for name in Entry.__struct_fields__ if name not in ("etag", "title", "quoted")))


class Content(Struct, frozen=True, kw_only=True):
    entry: Entry
    body: str | bytes
    etag: str = ""  # keyed digest of the raw content
    encoding: str = ""  # in which the text was, where that is not UTF-8
    # The body is JSON that tells of other resources, each an object with a `uri`: the policy leaves out those that
    # the caller may not see. What is left is what limits of size are for.
    composed: bool = False
    memo: EncoderMemo = field(default_factory=EncoderMemo)

    @property
    def size(self) -> int:
        """Bytes of the body; counted once, since it is asked on every hit."""
        size: int | None = self.memo.get("size")
        if size is None:
            body = self.body
            if isinstance(body, str) and not body.isascii():
                body = body.encode("utf-8")
            size = self.memo["size"] = len(body)
        return size


class Edited(Struct, frozen=True):
    """What became of an edit: the resource as it is now, and a report for who asked, such as a diff."""

    entry: Entry
    report: str
    added: int = 0  # lines
    removed: int = 0
    places: tuple[Mapping[str, int], ...] = ()  # see `Revised`


class Past(Struct, frozen=True):
    """One thing that a principal changed, as far as it is remembered."""

    op: str
    ref: Ref  # where something is since then, or was before
    source: Ref | None  # where it came from, of a move
    at: float  # seconds since 1970
    undone: bool
    id: str = ""  # by which an undo can name it


class Undone(Struct, frozen=True):
    """One change that was taken back, and in which way."""

    op: str
    ref: Ref
    effect: str


class Page(Struct, Generic[T], frozen=True):
    """A part of a longer answer."""

    items: tuple[T, ...]
    cursor: str | None = None  # opaque to everyone but whoever made it; None on the last page
    unavailable: tuple[str, ...] = ()  # names of sources that could not be asked
    memo: EncoderMemo = field(default_factory=EncoderMemo)


ChangeKind = Literal["created", "updated", "deleted", "renamed"]


class Change(Struct, frozen=True, kw_only=True):
    """Something happened to a resource. `old` and `new` are what is known of it before and after."""

    kind: ChangeKind
    ref: Ref
    source: Ref | None = None  # of one that was renamed: where it was before
    at: float  # seconds since 1970
    old: Entry | None = None
    new: Entry | None = None
    seq: int = 0  # place in the feed; given by the feed
    # Of several roots, where lists say in which one something is: these were in them before and are now, as they were.
    # Only what is meant without a root has changed.
    unmoved: tuple[Ref, ...] = ()

    @property
    def listed(self) -> Change | None:
        """What of it whoever goes by the addresses of lists hears."""
        return self.part(lambda ref, entry: shown(ref, entry) not in self.unmoved) if self.unmoved else self

    def part(self, sees: Callable[[Ref, Entry | None], bool]) -> Change | None:
        """What is told of it where not everything is seen. If it is seen only before, it goes; only after, it comes:
        a file that was moved, or a link that leads elsewhere now."""
        left = self.kind != "created" and sees(self.source or self.ref, self.old or self.new)
        came = self.kind != "deleted" and sees(self.ref, self.new or self.old)
        if (left or self.kind == "created") and (came or self.kind == "deleted"):
            return self
        if came:
            return replace(self, kind="created", source=None, old=None)
        return replace(self, kind="deleted", ref=self.source or self.ref, source=None, new=None) if left else None

    @property
    def shown(self) -> Ref:
        """The address as lists give it."""
        entry = self.old if self.kind == "deleted" else self.new
        return shown(self.ref, entry or self.new or self.old)

    @property
    def shown_source(self) -> Ref | None:
        return None if self.source is None else shown(self.source, self.old)

    @property
    def changes(self) -> dict[str, list[object]]:
        """The seeds' `{field: [old, new]}`, for the fields that differ."""
        before, after = _facts(self.old), _facts(self.new)
        keys = [*before, *(key for key in after if key not in before)]
        return {k: [before.get(k), after.get(k)] for k in keys if before.get(k) != after.get(k)}


class News(Struct, frozen=True):
    """What the change feed tells since a number, oldest first."""

    changes: tuple[Change, ...]
    next: int  # the number to go on with
    more: bool = False  # there are changes after it already
    gap: bool = False  # changes may have been lost: whoever wants to know what is there must list anew


def shown(ref: Ref, entry: Entry | None) -> Ref:
    """A canonical address as lists give it, by what is known of what stands there."""
    return entry.ref if entry is not None and entry.ref.absolute else ref


def _facts(entry: Entry | None) -> dict[str, object]:
    if entry is None:
        return {}
    known: dict[str, object] = {"version": entry.version, "size": entry.size, "name": entry.name}
    if entry.etag:
        known["etag"] = entry.etag
    return {**known, **entry.metadata}


class Template(Struct, frozen=True, kw_only=True):
    """A family of addresses: `file:///logs/{date}.log`."""

    uri_template: str
    name: str
    description: str | None = None
    mime_type: str | None = None
    parameters: Mapping[str, object] = NOTHING  # JSON Schema of the variables


class Suggestion(NamedTuple):
    """A value for a variable of a template, and an entry that has it."""

    value: str
    entry: Entry


class Call(Struct, frozen=True):
    """One thing somebody asked for. Tools and prompts that need a resource make child calls.

    A struct: making one and looking at its fields, a few dozen times a request, is on the hot path. `fault` carries
    what was wrong with the address, so that a refusal for a bad URI is counted and recorded like every other.
    """

    op: Op
    ref: Ref
    principal: Principal
    trail: Trail
    uri: str = ""  # the spelling that the client used; answers repeat it
    arguments: Arguments = PLAIN  # of the class that its operation takes; PLAIN where all of them are the usual ones
    cursor: str | None = None
    limit: int = 100
    max_bytes: int = MIB
    timeout: float = 10.0
    parent: Call | None = None
    channel: Channel | None = None  # while a client waits that can be told of progress
    fault: OctavoError | None = None
    moment: int = 0  # of `moments`, when the request came in; 0: not known

    def _replace(self, **changes: object) -> Call:
        return replace(self, **changes)

    def at(self, ref: Ref, cursor: str | None, limit: int, timeout: float | None = None) -> Call:
        """The same call at another place. What `_replace` does, in a part of the time."""
        return Call(
            self.op, ref, self.principal, self.trail, self.uri, self.arguments, cursor, limit, self.max_bytes,
            self.timeout if timeout is None else timeout, self.parent, self.channel, self.fault, self.moment,
        )  # fmt: skip

    def again(self, moment: int) -> Call:
        """The same asked once more: with a trail of its own."""
        return Call(
            self.op, self.ref, self.principal, Trail(), self.uri, self.arguments, self.cursor, self.limit,
            self.max_bytes, self.timeout, self.parent, self.channel, self.fault, moment,
        )  # fmt: skip

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1

    def given(self, kind: type[A]) -> A:
        """Its arguments, of the class that its operation takes. Raises TypeError where it was given none of those
        that are needed, or those of another operation."""
        arguments = self.arguments
        if isinstance(arguments, kind):
            return arguments
        if arguments is not PLAIN:
            raise TypeError(f"{self.op} takes {kind.__name__}, not {type(arguments).__name__}")
        return kind()

    @property
    def values(self) -> Mapping[str, object]:
        """What a tool or a prompt was given, by the names of its schema; nothing for all other operations."""
        arguments = self.arguments
        return arguments.values if isinstance(arguments, OwnArguments) else NOTHING

    def child(self, op: Op, ref: Ref, *, uri: str = "", arguments: Arguments = PLAIN) -> Call:
        """What a tool or a prompt asks on behalf of its caller, and with no more rights than the caller's."""
        return Call(op, ref, self.principal, Trail(), uri or str(ref), arguments, parent=self)

    def child_at(
        self, op: Op, uri: str, arguments: Arguments = PLAIN, *, parse: Callable[[str], Ref] = Ref.parse
    ) -> Call:
        """The same at an address as a caller writes it. What is wrong with that the pipeline raises, so that it is
        counted and recorded."""
        try:
            return self.child(op, parse(uri), uri=uri, arguments=arguments)
        except OctavoError as fault:
            return self.child(op, NOWHERE, uri=uri, arguments=arguments)._replace(fault=fault)
