"""The interface of a source: list, stat and read, and the abilities that a source may have beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, runtime_checkable

from octavo.core.arguments import Allowed as Allowed
from octavo.core.arguments import Mode as Mode
from octavo.core.edit import Revision
from octavo.core.errors import OctavoError
from octavo.core.query import Query
from octavo.core.ref import Ref
from octavo.core.values import Change, Content, Edited, Entry, Page, Past, Suggestion, Template, Undone

if TYPE_CHECKING:
    pass

T = TypeVar("T")


class Source(Protocol):
    """What every backend must offer. Four members; everything else is an ability of its own.

    The contract, checked clause by clause by `octavo.testing.SourceSuite`:

    1. `list` gives every entry under the scope exactly once whatever the page size, ordered by segment
       tuple; cursors are opaque and survive inserts and deletes; an unknown scope is an empty page.
    2. What `list` does not give, `stat` and `read` answer with NotFound; `stat` and `read` agree.
    3. `read` refuses with TooLarge above `max_bytes`; it never truncates.
    4. `Entry.version` changes whenever the content changes.
    5. `Ref.parse(str(ref)) == ref` for everything that is listed.
    6. Only OctavoErrors leave, also when the system behind fails, hangs or answers garbage.
    7. A `write` with a stale `if_match` is a Conflict; afterwards `read` sees it and `watch` tells it.
    8. `watch` tells created, updated, deleted, and a move as renamed or as both its ends; nothing outside
       the scope; ends cleanly.
    9. Safe under concurrent calls and cancellation.
    10. Secrets in its options never show in repr, errors or logs.

    A source that holds resources is an async context manager: opened once before the first call,
    closed once after the last, also when opening failed half-way.
    """

    scheme: str

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]: ...
    async def stat(self, ref: Ref) -> Entry: ...
    async def read(self, ref: Ref, *, max_bytes: int) -> Content: ...


@runtime_checkable
class Watches(Protocol):
    def watch(self, scope: Ref) -> AsyncIterator[Change]:
        """Changes under the scope, from the moment the iterator is first awaited until it is closed."""
        ...


@runtime_checkable
class Ready(Protocol):
    """Watching some sources takes a while to begin."""

    async def armed(self) -> None:
        """Returns once every change from then on will be told to whoever watches already."""
        ...


@runtime_checkable
class Levels(Protocol):
    """Listing the upper levels without looking at all that lies deeper."""

    async def list_levels(self, scope: Ref, *, depth: int, cursor: str | None, limit: int) -> Page[Entry]:
        """As `list`, but of each folder that stands `depth` names below the scope only the first entry, which stands
        for the folder. A cursor goes on behind that folder, and belongs to a listing of the same depth."""
        ...


@runtime_checkable
class Filters(Protocol):
    """Some sources narrow a listing themselves, by parameters of its scope: `sop://brand?status=active`."""

    @property
    def filters(self) -> Collection[str]:
        """The parameters. A value may be several, with commas between them, of which one must fit."""
        ...


@runtime_checkable
class Folders(Protocol):
    """Some sources have folders, which are no entries: an empty one is there too."""

    async def folders(self, scope: Ref, *, depth: int | None, limit: int) -> Sequence[Ref]:
        """The scope, if it is a folder, and the folders as many levels below it, ordered by segment tuple; None is
        all levels. Nothing for an unknown scope. Of more than `limit` the first ones."""
        ...


@runtime_checkable
class Searches(Protocol):
    async def search(self, scope: Ref, query: Query, *, cursor: str | None, limit: int) -> Page[Entry]:
        """Candidates under the scope, ordered as a listing. Whoever asks looks at their contents himself: what is
        found in a text must be found in the text that may be shown."""
        ...


@runtime_checkable
class Writes(Protocol):
    """`by` is the id of the principal: what it changed, it can undo."""

    async def write(
        self,
        ref: Ref,
        body: str | bytes,
        *,
        if_match: str | None,
        mode: Mode = "upsert",
        encoding: str | None = None,
        by: str = "",
    ) -> Entry: ...
    async def delete(self, ref: Ref, *, if_match: str | None, by: str = "") -> None: ...


@runtime_checkable
class Edits(Protocol):
    async def edit(
        self,
        ref: Ref,
        revision: Revision,
        *,
        if_match: str | None,
        dry_run: bool = False,
        by: str = "",
    ) -> Edited:
        """Replaces the text by what `octavo.text.revise.revise` makes of it, which also gives the report and knows
        what is hidden from the caller: nothing else may look for an edit in the text. All or nothing: what it raises
        leaves everything as it was, and so does somebody else's change in between (Conflict)."""
        ...


@runtime_checkable
class Arranges(Protocol):
    """Resources that have places: they can be moved and copied."""

    async def move(
        self, ref: Ref, to: Ref, *, if_match: str | None, overwrite: bool = False, by: str = ""
    ) -> Entry: ...
    async def copy(self, ref: Ref, to: Ref, *, overwrite: bool = False, by: str = "") -> Entry: ...
    async def make_directory(self, ref: Ref, by: str = "") -> None: ...


@runtime_checkable
class Undoes(Protocol):
    """Every change can be taken back. A source without it cannot: a human is asked before each change in it. With a
    `scope`, which is given only where somebody asked for one, it is about changes at, below or above that address."""

    async def undo(
        self, by: str, *, count: int = 1, only: Sequence[str] | None = None, scope: Ref | None = None
    ) -> Sequence[Undone]:
        """Takes back the newest changes of a principal. With `only`, the ids of what somebody has looked at: a
        Conflict, and nothing is undone, when these are not what would be."""
        ...

    async def history(
        self, by: str, limit: int = 20, *, standing: bool = False, scope: Ref | None = None
    ) -> Sequence[Past]:
        """What a principal changed, the newest first; `standing`: only what is not undone."""
        ...


@runtime_checkable
class Completes(Protocol):
    async def complete(self, argument: str, prefix: str, given: Mapping[str, str]) -> Sequence[str]:
        """Values for one variable of a template of this source, or paths for the argument `path`."""
        ...


@runtime_checkable
class Suggests(Protocol):
    """Completes, and says for which entries. Where a source can, nothing is asked of its `complete`."""

    async def suggest(
        self, template: str, argument: str, prefix: str, given: Mapping[str, str]
    ) -> Iterable[Suggestion]:
        """Values for a variable of one template. A value comes once for each entry that has it: who may list none of
        them is not told the value."""
        ...


@runtime_checkable
class SuggestsMore(Protocol):
    """Suggests a part at a time. Where a source cannot, what it suggests is all."""

    async def suggest_more(
        self, after: Suggestion, template: str, argument: str, prefix: str, given: Mapping[str, str]
    ) -> Iterable[Suggestion]:
        """What comes behind this one; nothing when there is no more."""
        ...


@runtime_checkable
class Aliases(Protocol):
    """Some addresses have two spellings (`file://x.md`, `file:///root/x.md`)."""

    def canonical(self, ref: Ref) -> Ref:
        """The spelling that policy, cache and feed use. Forbidden for one outside every root."""
        ...

    def spelled(self, ref: Ref) -> Ref:
        """The other public spelling of a canonical address; itself where there is none."""
        ...


class Called(NamedTuple):
    """What else a name is called. `taken` are those that are the name of something else as well: an address there means
    the other one."""

    free: Sequence[Ref] = ()
    taken: Sequence[Ref] = ()


@runtime_checkable
class Names(Protocol):
    """Some addresses are spelled by an id: `agent://agent-brand` is `agent://brand`."""

    @property
    def ids(self) -> object:
        """The same one as long as everything is called as it is, by what was seen last."""
        ...

    def named(self, ref: Ref, moment: int | None) -> bool:
        """Whether the address is known for a name, at once: by what was seen last, or, of a `moment`, only if nothing
        has changed since that was seen."""
        ...

    async def meanings(self, ref: Ref) -> Sequence[Sequence[Ref]]:
        """The names that an address could mean, the likeliest first; policy, cache and feed use names. Several that
        have the same right to it stand together. Whoever may not have one is answered as if it were not there."""
        ...

    def called(self, ref: Ref) -> Called:
        """By what was seen last. What a rule says of that, it says of the name; of what is taken, only if it denies:
        what comes later and takes the name must not lift a deny, and an allow for it must not open this one."""
        ...


@runtime_checkable
class Rejects(Protocol):
    """Some names are refused whatever stands behind them: an extension that is not allowed."""

    def refuses(self, ref: Ref) -> OctavoError | None:
        """What `read` would raise for the name alone, without a look at what is there."""
        ...


@runtime_checkable
class TellsTwins(Protocol):
    """Where names are kept as they were written, two can differ in their Unicode form alone, and there is one address
    for both: it is that of one of them."""

    async def is_twin(self, ref: Ref, names: Sequence[str]) -> bool:
        """Whether something else than what the address stands for has these names, which are another form of its
        own."""
        ...


@runtime_checkable
class Collects(Protocol):
    """Some addresses stand for several entries, and reading one tells of those."""

    def collects(self, ref: Ref) -> bool:
        """Whether reading the address gives a composed content (see `Content`), by its name alone."""
        ...


@runtime_checkable
class Components(Protocol):
    """Some addresses are parts of an entry, such as the files of a skill."""

    def whole(self, ref: Ref) -> Ref | None:
        """The entry that the address would be a part of, by its name alone. What a rule says of the entry, it says of
        its parts as well."""
        ...


@runtime_checkable
class Stamps(Protocol):
    """Cheap proof that a cached reply still holds."""

    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        """A value that changes when the reply to `op` on `ref` would; None: do not reuse a reply.

        Synchronous, microseconds, and never raises: it runs on every cache hit. What was looked at since
        `moment` (see `Call`) need not be looked at again; 0 asks for a look now.
        """
        ...


@runtime_checkable
class Deltas(Protocol):
    """Whoever keeps something of a whole source can bring it up to date without a look at everything."""

    def changed_since(self, stamp: object) -> Sequence[Ref] | None:
        """What has come, gone or changed since a listing had that stamp; None when that is no longer known.

        It is what the stamp of now stands for, if both are asked for at once, with nothing awaited in between.
        """
        ...


@runtime_checkable
class Syncs(Protocol):
    """A source whose stamp of any listing is that of all of it, and which has one also while it changes."""

    async def caught_up(self) -> object | None:
        """A stamp with everything in it that had changed when this was called; None when only a look can tell."""
        ...


@runtime_checkable
class History(Protocol):
    """Some sources know what a resource was before."""

    async def past(self, ref: Ref, *, limit: int) -> Sequence[Entry]:
        """What it is and what it was, newest first, as far back as there was time to look. Each entry has an address
        at which that content can be read, and which without its parameters is where the resource stood then."""
        ...


@runtime_checkable
class Pins(Protocol):
    """Some of those know states of everything that they have by a name: a tag, a commit, a day."""

    async def pinned(self, ref: Ref, name: str) -> Entry | None:
        """What it was in that state, with an address as those of `past` have. None if it was nothing then, and equally
        if there is no such state."""
        ...


@runtime_checkable
class Offers(Protocol):
    """Templates beyond the listed entries."""

    def templates(self) -> Sequence[Template]: ...


ABILITIES: Mapping[str, type] = {
    "watch": Watches,
    "levels": Levels,
    "filter": Filters,
    "folders": Folders,
    "search": Searches,
    "write": Writes,
    "edit": Edits,
    "arrange": Arranges,
    "undo": Undoes,
    "complete": Completes,
    "suggest": Suggests,
    "suggest_more": SuggestsMore,
    "spell": Aliases,
    "refuse": Rejects,
    "stamp": Stamps,
    "template": Offers,
}


def abilities(source: Source) -> frozenset[str]:
    """What `source` can do beyond the contract, seen from the methods it has."""
    return frozenset(name for name, ability in ABILITIES.items() if isinstance(source, ability))
