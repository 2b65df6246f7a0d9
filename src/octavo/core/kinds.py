"""A kind of source is one record: what can be said of its sources before one is opened, and how one is.

The configuration, its schema and pages, `octavo check` and `octavo doctor`, the sandbox, the tools and the composition
are made from records. A kind that comes with Octavo and one of a plugin are the same to all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from octavo.core.foundation import Essential, Foundation
from octavo.core.ports.source import ABILITIES, Source
from octavo.core.values import NOTHING, Template

O = TypeVar("O")  # noqa: E741 - the options of a kind
T = TypeVar("T")

UNWRITTEN: Final = "writing-a-source.md"  # the page of a kind that has none of its own

KeyPath: TypeAlias = tuple[str | int, ...]  # where something stands below the entry of a source


class SourceFolder(NamedTuple):
    """A folder of this machine on which a source stands."""

    path: Path
    key: KeyPath
    write: bool = False
    files: bool = True  # what lies in it is served as it lies there, by that source or by a catalog over it
    shown: str = ""  # the absolute path under which clients see it; "" where there is none
    named: bool = False  # they understand its real path as well


class Needs(NamedTuple):
    """What a source needs beyond this process. The sandbox gives it no more."""

    folders: Sequence[SourceFolder] = ()
    reads: Sequence[Path] = ()  # that it reads for itself, and never serves as they lie there
    programs: Sequence[Path] = ()
    hosts: Sequence[str] = ()  # that the operator wrote, as host or host:port
    essentials: Sequence[Essential] = ()  # what nobody may change through any source


class Over(NamedTuple):
    """The store on which a source stands, and the folder in it that is served, but for those that are left out."""

    store: str
    folder: str
    without: Sequence[str] = ()
    key: KeyPath = ("path",)
    endings: Sequence[str] = ()  # of all files that it could ever serve; empty: they may be any
    # Where the folder is found by looking, because no other source stands on the store: all that it could turn out to
    # be, "" being the whole store. No other source may serve any of them.
    looked: Sequence[str] = ()


class AddressTemplate(NamedTuple):
    """Addresses that a source could ever have: `{name}` is one name, `{+rest}` is any number of them."""

    template: str
    below: bool = False  # and all that stands deeper


class Objection(NamedTuple):
    """What is wrong or odd with the options of one source, and what to do about it."""

    key: KeyPath
    message: str
    hint: str = ""
    fatal: bool = True


class Host(Protocol):
    """What the house gives to a source that is opened. When something that a source has asked for is another after a
    reload, that source is opened anew."""

    @property
    def name(self) -> str:
        """Of the source in the configuration."""
        ...

    @property
    def secret(self) -> bytes:
        """For versions and etags: the same after a restart, and nobody else's."""
        ...

    @property
    def seconds(self) -> float:
        """That one request may take."""
        ...

    @property
    def templates(self) -> Sequence[Template]:
        """That the operator describes for this scheme."""
        ...

    @property
    def kept(self) -> Sequence[Essential]:
        """What is never served."""
        ...

    @property
    def foundation(self) -> Foundation:
        """What is never changed."""
        ...

    @property
    def extensions(self) -> Sequence[str] | None:
        """To which a client narrowed what is served; None: it did not."""
        ...

    @property
    def relative(self) -> bool:
        """Whether a client knows files by their paths below its folders."""
        ...

    @property
    def alone(self) -> bool:
        """Whether no other source stands on the same store."""
        ...

    @property
    def ruled(self) -> bool:
        """Whether rules or labels name addresses of its scheme: these must go on to mean what they mean."""
        ...

    @property
    def asked(self) -> Sequence[str]:
        """Metadata that rules ask for: a deny on a key that nobody tells would deny nothing."""
        ...

    def within(self, folder: Path) -> tuple[tuple[str, ...], ...] | None:
        """The names below a folder to which a client narrowed it; None for all of it."""
        ...

    def folder(self, purpose: str) -> Path | None:
        """A folder for state of its own, which may not be there yet; None where state is kept in memory."""
        ...

    def store(self) -> Source:
        """On which it stands: the one that `over` of its kind names."""
        ...

    def together(self, make: Callable[[], T]) -> T:
        """One for all sources that stand on stores and ask with the same function, made for the first of them."""
        ...


def _no_needs(options: Any) -> Needs:
    return Needs()


def _nothing(options: Any) -> Sequence[Any]:
    return ()


def _none(options: Any) -> None:
    return None


class SourceKind(Struct, Generic[O], frozen=True, kw_only=True):
    """`options` is the model of an entry of `sources`: a pydantic model over `octavo.SourceOptions`, whose key
    `kind` is a Literal of the name with a description. Whatever depends on options is a function of them."""

    name: str
    options: type[O]
    open: Callable[[O, Host], Awaitable[Source]]  # gives a source that was not entered yet
    page: str = UNWRITTEN  # of its documentation, below docs/

    # What its sources can do beyond list, stat and read: the words of docs/writing-a-source.md. The most that holds
    # of any of them, and with these options; the methods that are there are the most that may be claimed.
    abilities: frozenset[str] = frozenset()
    able: Callable[[O], frozenset[str]] | None = None
    parameters: Mapping[str, str] = NOTHING  # that its addresses take, and what each is for; all others are refused
    metadata: Literal["none", "own", "document"] = "own"  # who says what entries tell of themselves
    templates: bool = False  # it offers, and completes, the templates that the operator describes for its scheme
    lines: bool = False  # a search in it looks at lines, unless it is asked for something else
    chosen: Callable[[O], bool] | None = None  # whether callers could have chosen what it tells

    needs: Callable[[O], Needs] = _no_needs
    module: str = ""  # that must be installed
    extra: str = ""  # of Octavo, which installs it
    checks: Callable[[O], Iterable[Objection]] = _nothing
    forms: Callable[[O], Sequence[AddressTemplate] | None] = _none  # of its addresses; None where they may be any
    over: Callable[[O], Over | None] = _none
    serves: Callable[[O], Sequence[str]] = _nothing  # for people, in a few words
    extensions: Callable[[O], Sequence[str]] | None = None  # of a kind that clients can narrow; empty is the usual set
    by_name: frozenset[str] = frozenset()  # options that only say which names are served: `refuse` says it of each
    keeps_out: Callable[[O], Sequence[str]] = _nothing  # whole names of files and folders that it never serves
    tools: Sequence[Callable[..., Any]] = ()  # functions that are tools wherever a source of this kind is configured
    writer: Callable[[O], Source] | None = None  # of the first folder, for new files of the operator
    of_folders: Callable[[Sequence[Path], bool, bool], Mapping[str, Any]] | None = None

    def can(self, options: O) -> frozenset[str]:
        """What a source of these options can do."""
        return self.abilities if self.able is None else self.able(options) & self.abilities


def faults(kind: SourceKind[Any]) -> str:
    """What is wrong with a record itself, for whoever wrote it; "" for nothing."""
    unknown = sorted(kind.abilities - ABILITIES.keys())
    if unknown:
        return f"claims {unknown[0]}, which is no ability; there are: {', '.join(sorted(ABILITIES))}"
    return ""
