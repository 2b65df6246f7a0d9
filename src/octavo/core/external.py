"""Running programs and asking other machines: the values that tools and their runners exchange."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from octavo.core.ref import Ref
from octavo.core.sizes import GIB, MIB
from octavo.core.values import Verb


class Program(Struct, frozen=True, kw_only=True):
    """One that may be started. All paths are absolute and were found when the configuration was read."""

    path: str
    runs: tuple[str, ...] = ()  # what is executed with it, such as the interpreter of a script
    reads: tuple[str, ...] = ()  # files and folders of its own, beside the libraries of the system
    env: Mapping[str, str] = {}  # msgspec copies it; all of its environment but for LANG
    network: bool = False


class Opening(Struct, frozen=True):
    """What a program may open at or below its working folder: names on disk, none of them a link; rights of Landlock;
    and which file or folder it was when somebody looked: another one in its place is not opened."""

    names: tuple[str, ...]
    rights: int
    device: int
    inode: int


class WorkFolder(Struct, frozen=True):
    """A working folder: a root that is served, and the names below it, none of which may be a link."""

    root: str
    names: tuple[str, ...] = ()
    write: bool = False
    openings: tuple[Opening, ...] = ()
    open: bool = False  # without Landlock too: nothing that it could reach is kept from the caller


class Rights(Protocol):
    """What a caller may do, asked about very many addresses, each with all its spellings. Any thread may ask."""

    rules: dict[str, str]  # those that kept something back so far, as far as the caller may know of them

    @property
    def unlimited(self) -> bool:
        """Whether there are no rules at all."""
        ...

    def all_below(self, verb: Verb, spellings: Collection[Ref]) -> bool:
        """Whether everything at and below an address is allowed, without anybody being asked first: also what is not
        there yet. May be False although it is so."""
        ...

    def allows(self, verb: Verb, spellings: Collection[Ref]) -> bool:
        """Raises Forbidden where that depends on what the resource says of itself."""
        ...


class ServedFolder(NamedTuple):
    ref: Ref  # as lists spell it
    spellings: Sequence[Ref]


class Extent(Struct, frozen=True):
    """What a caller may open of a folder that is served, by rules and by names."""

    folder: ServedFolder
    openings: tuple[Opening, ...]
    whole: bool  # nothing at or below it is kept from the caller
    steady: bool  # of what is below it nothing has another name elsewhere, and nothing is what the server stands on
    unlisted: tuple[Ref, ...] = ()  # folders in which there is, or may come to be, a name that it may not know
    free: tuple[ServedFolder, ...] = ()  # the uppermost folders below it of which nothing is kept from the caller


@runtime_checkable
class Surveys(Protocol):
    """A source of folders of this machine."""

    async def survey(self, root: int, names: Sequence[str], rights: Rights) -> Extent:
        """Of the folder with these names below one of its roots. Raises NotFound, TooLarge for one that holds more
        than can be looked at, and what `rights` raises."""
        ...

    async def opening(self, root: int, names: Sequence[str]) -> tuple[Ref, Opening]:
        """Of the file with these names below one of its roots, whatever the rules say: its own address, behind a link
        that of what it leads to, and how a program opens it from the root on. Raises NotFound."""
        ...


class RunLimits(Struct, frozen=True, kw_only=True):
    seconds: float = 30.0  # until it is killed, with all that it started
    cpu: int = 30  # seconds of processor time of each process
    memory: int = GIB  # bytes of address space of each process
    output: int = MIB  # bytes that it may print
    file: int = 64 * MIB  # bytes of the largest file that it may write
    files: int = 256  # that each process may have open
    processes: int = 64


# Why a program did not end by itself.
Ended = Literal["", "time", "output", "processes", "stopped"]


class Finished(Struct, frozen=True, kw_only=True):
    exit: int | None  # None where a signal ended it
    signal: int = 0
    output: bytes = b""
    errors: bytes = b""
    because: Ended = ""
    seconds: float = 0.0
    walls: tuple[str, ...] = ()  # what confined it: landlock, network, processes, user


class Runner(Protocol):
    async def run(
        self,
        program: Program,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        limits: RunLimits = RunLimits(),  # noqa: B008  # frozen
        place: WorkFolder | None = None,
    ) -> Finished:
        """Runs a program that the configuration lists, exactly as it is listed, never a shell. Raises Forbidden for any
        other, InvalidParams for arguments that no program can be given, SourceUnavailable where it cannot be started.
        When it returns or is cancelled, nothing that was started is left."""
        ...


class HttpRequest(Struct, frozen=True, kw_only=True):
    url: str
    method: str = "GET"
    headers: Mapping[str, str] = {}
    body: bytes = b""


class HttpReply(Struct, frozen=True, kw_only=True):
    status: int
    url: str  # that answered, after redirects
    headers: Mapping[str, str] = {}  # names in small letters
    body: bytes = b""  # decoded


class Fetcher(Protocol):
    def refuse(self, request: HttpRequest) -> None:
        """Raises what `fetch` would before it asks anybody."""
        ...

    async def fetch(self, request: HttpRequest) -> HttpReply:
        """Asks a host that the configuration lists, at a public address. Raises Forbidden for any other, also where a
        redirect leads there; InvalidParams for a URL or header that cannot be; Timeout, TooLarge, SourceUnavailable."""
        ...


class SocketMessage(Struct, frozen=True):
    """Of a WebSocket: a text, or bytes."""

    content: str | bytes


class Socket(Protocol):
    async def send(self, content: str | bytes) -> None:
        """Raises SourceUnavailable where the other side has gone, TooLarge."""
        ...

    async def receive(self, seconds: float) -> SocketMessage | None:
        """The next one; None if there is none in that time. Raises SourceUnavailable once the other side has gone and
        all that it said was given."""
        ...

    async def aclose(self) -> None: ...


class Connector(Protocol):
    def refuse(self, url: str) -> None:
        """Raises what `connect` would before it asks anybody."""
        ...

    async def connect(self, url: str) -> Socket:
        """Raises as a `Fetcher` does."""
        ...
