"""The interface of a running server, as transports and commands see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from octavo.core.glob import Glob
from octavo.core.ports.audit import Ledger
from octavo.core.ports.chain import Ask, Next
from octavo.core.ports.feed import Feed
from octavo.core.ports.source import Called
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.tools import PromptInfo, Prompts, Tools
from octavo.core.values import Change, Entry, Principal, Template, Verb

if TYPE_CHECKING:
    from octavo.core.calls import Builder
    from octavo.core.metrics import Measure
    from octavo.core.tasks import Tasks

WELL_KNOWN = "/.well-known/oauth-protected-resource"


class CallLimits(NamedTuple):
    max_bytes: int = MIB  # of one read
    timeout: float = 10.0  # seconds of one request
    page: int = 100
    in_flight: int = 64  # requests of one principal
    subscriptions: int = 100  # of one principal, where it has no limits of its own
    line: int = 4 * MIB  # bytes of one message


class Admitted(NamedTuple):
    """Who asks, and until when what proved it holds."""

    principal: Principal
    until: float | None = None  # seconds since 1970; None: until it is taken away


class Protected(NamedTuple):
    """What a client must know to get a token for this server (RFC 9728)."""

    resource: str  # this server's own address, exactly as tokens name it
    issuers: tuple[str, ...]
    scopes: tuple[str, ...]  # that every request needs

    @property
    def metadata_path(self) -> str:
        return f"{WELL_KNOWN}{urlsplit(self.resource).path.rstrip('/')}"

    @property
    def metadata_url(self) -> str:
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{self.metadata_path}"


class Identifies(Protocol):
    @property
    def has_keys(self) -> bool: ...
    @property
    def protected(self) -> Protected | None: ...
    def launched(self, as_who: str | None) -> Principal: ...
    def by_key(self, key: str) -> Principal: ...
    def by_peer(self, uid: int) -> Principal: ...
    async def by_credential(self, text: str) -> Admitted: ...
    def current(self, principal: Principal) -> Principal: ...


class Decides(Protocol):
    @property
    def epoch(self) -> str: ...
    def allows(self, principal: Principal, verb: Verb, ref: Ref) -> bool: ...
    def asks(self, principal: Principal, ref: Ref) -> bool:
        """Whether a rule says that a human is asked before that tool is called."""
        ...

    def hides(self, principal: Principal, verb: Verb, ref: Ref) -> bool:
        """Whether a rule makes it look absent, or may do so by facts."""
        ...

    def shows(self, principal: Principal, entry: Entry) -> bool:
        """Whether a listing may contain the entry."""
        ...

    def told(self, principal: Principal, verb: Verb, change: Change) -> Change | None: ...
    def noted(self, principal: Principal, told: Sequence[Change]) -> Awaitable[None] | None:
        """To be asked about changes that somebody is told without a call. What it gives is waited for before they
        leave."""
        ...

    def usual(self, glob: Glob) -> Glob:
        """An absolute pattern in the spelling that addresses have here."""
        ...


class Composition(Protocol):
    """One configuration, composed. A reload composes another and swaps it in; nobody keeps one."""

    @property
    def ask(self) -> Ask: ...
    @property
    def begin(self) -> Next: ...
    @property
    def policy(self) -> Decides: ...
    @property
    def identity(self) -> Identifies: ...
    @property
    def tools(self) -> Tools: ...
    @property
    def prompts(self) -> Prompts: ...
    @property
    def limits(self) -> CallLimits: ...
    @property
    def calls(self) -> Builder: ...
    @property
    def metrics(self) -> str:
        """Who may see them: off (nobody), admin, or open (everybody)."""
        ...

    @property
    def skill_schemes(self) -> Sequence[str]: ...

    def templates(self) -> Sequence[Template]: ...
    def canonical(self, ref: Ref) -> Ref: ...
    def spelled(self, ref: Ref) -> Ref: ...
    def called(self, ref: Ref) -> Called: ...
    def redacted(self, change: Change) -> Change: ...
    def administers(self, who: Principal, what: Ref) -> bool:
        """Whether a rule, and not the lack of any, grants admin."""
        ...

    def subscriptions(self, who: Principal) -> int:
        """How many this principal may have."""
        ...

    def ahead(self, who: Principal) -> int:
        """How many calls of this principal may be begun: those that are worked on, and those that come next."""
        ...

    def sessions(self, who: Principal) -> tuple[str, int]:
        """Among whose sessions those of this principal count, and how many there may be of them."""
        ...

    def count(self, who: Principal) -> None:
        """One request of theirs that becomes no call. Raises RateLimited."""
        ...

    def prompt_info(self, name: str, who: Principal) -> PromptInfo | None:
        """A prompt as it is told to somebody."""
        ...

    def sees_as(self, who: Principal) -> Hashable:
        """The same for principals from whom the same is hidden."""
        ...

    def hears_as(self, who: Principal) -> Hashable:
        """The same for principals who are told the same of every change, as long as these works hold."""
        ...

    def veiled(self, change: Change, who: Principal) -> Change:
        """Without what is hidden from this principal alone."""
        ...


class Server(Protocol):
    """The running whole: the works of the current configuration, and what outlives a reload."""

    @property
    def works(self) -> Composition: ...
    @property
    def feed(self) -> Feed: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def tasks(self) -> Tasks:
        """Made when it is first asked for: most servers have no tool that lasts."""
        ...

    def note(self, who: str, what: str, outcome: str, **fields: Any) -> None:
        """An audit record for a request that never becomes a call: ping, malformed, 401. `begun` is what `narrow`
        announced."""
        ...

    def ready(self) -> bool:
        """Whether requests can be answered now."""
        ...

    def ailing(self) -> Mapping[str, str]:
        """What is wrong with which source, in words for an operator."""
        ...

    def remarks(self) -> Mapping[str, Any]:
        """What an operator should know though they can be: how fast the audit log grows, where it is too large,
        and how many of its chains nothing vouches for any more."""
        ...

    def measures(self) -> Iterable[Measure]:
        """What there is to count, about sources, requests and the process."""
        ...

    def key(self, purpose: str) -> bytes:
        """32 bytes for one purpose, derived from the secret of the state directory."""
        ...

    def on_swap(self, listener: Callable[[], None]) -> None:
        """Calls `listener` after each reload."""
        ...

    def on_list_changed(self, listener: Callable[[str], None]) -> None:
        """Calls `listener` with `tools`, `prompts` or `resources` when they have changed between two reloads."""
        ...

    async def narrow(
        self, who: Principal, asked: Mapping[str, Any], *, owns_process: bool, announced: Callable[[object], None]
    ) -> dict[str, Any]:
        """Serves less, as `server/config` asks, and gives what is left. Raises, and changes nothing, for what lies
        outside the operator's configuration, or when `who` may not. `owns_process`: nobody else is served.
        `announced` is given what the note of the outcome has to carry as `begun`."""
        ...

    async def narrow_to_roots(self, who: Principal, uris: Sequence[str]) -> None:
        """The same for the roots of a client, which narrow nothing where they lie elsewhere."""
        ...
