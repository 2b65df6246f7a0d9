"""Tools and prompts as values: what a client sees of them, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from octavo.core.errors import InvalidParams
from octavo.core.ports.chain import Next
from octavo.core.values import NOTHING, Call, Content, Entry, News


class Text(Struct, frozen=True):
    text: str
    meta: Mapping[str, Any] | None = None


class Image(Struct, frozen=True):
    data: bytes
    mime_type: str


class Audio(Struct, frozen=True):
    data: bytes
    mime_type: str


class Embedded(Struct, frozen=True):
    content: Content
    uri: str  # as the caller spelled it


class Link(Struct, frozen=True):
    entry: Entry
    uri: str


Block: TypeAlias = Text | Image | Audio | Embedded | Link


class Hints(Struct, frozen=True, kw_only=True):
    """All four are always written: a missing hint is read as the worst case by some clients."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


def unknown_tool(name: str) -> InvalidParams:
    """Also for a tool that is hidden from the caller."""
    return InvalidParams(f"Unknown tool: {name}", toolName=name, hint="tools/list shows the tools that you may use")


def unknown_prompt(name: str) -> InvalidParams:
    """Also for a prompt that is hidden from the caller. Words and data are the seed's."""
    return InvalidParams(f"Unknown prompt: {name}", promptName=name)


def unknown_task(handle: str) -> InvalidParams:
    """Also for a handle that is somebody else's, or that of a tool that is hidden from the caller."""
    hint = "use the taskId of an answer that you were given; it may have expired"
    return InvalidParams(f"Unknown task: {handle[:80]}", taskId=handle[:80], hint=hint)


def is_unknown_tool(error: BaseException, name: str) -> bool:
    """Whether it says that there is no such tool: that is an error of the request, not an answer of the tool."""
    return isinstance(error, InvalidParams) and error.message == f"Unknown tool: {name}"


class ToolInfo(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    input_schema: Mapping[str, Any]
    hints: Hints
    title: str | None = None
    output_schema: Mapping[str, Any] | None = None
    permissions: tuple[str, ...] = ()
    timeout: float = 60.0  # seconds a call may take
    cache: float = 0.0  # seconds an answer may be given again while what it was made of is unchanged
    answer: int = 0  # bytes of a long answer, for clients that keep those out of a conversation
    lane_safe: bool = False  # read-only, and never asks, waits for approval or reports progress
    asks: str = ""  # why a human is asked before each call, unless a rule of the operator's says otherwise
    task: Literal["never", "may", "must"] = "never"  # whether a call that lasts becomes a task
    resumes: bool = False  # a task that a kill ended may be done again from the start
    quiet: Callable[[Mapping[str, Any]], bool] | None = None  # of these arguments, not yet checked, nobody is asked


class ToolResult(Struct, frozen=True, kw_only=True):
    content: tuple[Block, ...]
    structured: Mapping[str, Any] | None = None
    is_error: bool = False


class PromptArgument(Struct, frozen=True, kw_only=True):
    name: str
    description: str | None = None
    required: bool = False


class PromptInfo(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    title: str | None = None
    arguments: tuple[PromptArgument, ...] = ()
    input_schema: Mapping[str, Any] | None = None
    titles: Mapping[str, str] = NOTHING  # by language, where it has several
    metadata: Mapping[str, Any] = NOTHING  # what else a file of another program says: its name, model and tools
    lane_safe: bool = False  # never asks the client anything while it renders


class PromptMessage(Struct, frozen=True):
    role: Literal["system", "user", "assistant"]
    content: Block


class PromptResult(Struct, frozen=True, kw_only=True):
    messages: tuple[PromptMessage, ...]
    description: str | None = None
    locale: str = ""  # in which it is, where that is known


class Tools(Protocol):
    """The registry of tools, as the transport and the pipeline see it: the source of `tool://`."""

    def tool(self, name: str) -> ToolInfo | None: ...

    @property
    def entries(self) -> Sequence[Entry]:
        """Those that are listed, by name."""
        ...

    @property
    def long(self) -> bool:
        """Whether a call of one of them may become a task."""
        ...

    def header_schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool that takes arguments from HTTP headers; None for all others."""
        ...

    def meant(self, call: Call) -> Call:
        """The same call with the arguments that are meant where a client sent 2.0 for 2, "true" for true or null for
        what is not given, and the schema leaves no doubt. They are not checked. The same call where nothing is to be
        done, and of a tool that is not there."""
        ...

    async def rehearse(self, call: Call, look: Next) -> None:
        """Raises what `invoke` would for an unknown tool and for bad arguments, and as far as the tool can tell before
        it does anything, for what could not be done. By `look` its caller sees what is there."""
        ...

    async def invoke(self, call: Call) -> ToolResult | Any:
        """Runs the tool that `call.ref` names with `call.arguments`.

        Raises NotFound for an unknown tool and InvalidParams (data `toolName`, `validationErrors`) for
        bad arguments. Anything but a ToolResult comes from a plugin that may speak the raw protocol
        and goes to the wire as it is.
        """
        ...


class Prompts(Protocol):
    """The registry of prompts: the source of `prompt://`."""

    def prompt(self, name: str) -> PromptInfo | None: ...

    @property
    def entries(self) -> Sequence[Entry]:
        """All of them, by name."""
        ...

    async def render(self, call: Call) -> PromptResult | Any: ...

    async def complete_argument(self, call: Call) -> Sequence[str]:
        """Values for the argument `argument` of the prompt that `call.ref` names which begin with `prefix`, as far as
        the caller may know them; `given` are the other arguments."""
        ...


class Said(Struct, frozen=True):
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str


class Conversations(Protocol):
    """What was said before, by handles that are of use to nobody but who began them.

    All but `begin` raise InvalidParams for a handle that is unknown, has expired or is somebody else's.
    """

    async def begin(self, who: str) -> str:
        """A new handle. Raises RateLimited for who has too many."""
        ...

    async def add(self, who: str, handle: str, said: Sequence[Said]) -> None:
        """Raises TooLarge. The oldest messages are forgotten where there are too many."""
        ...

    async def past(self, who: str, handle: str) -> Sequence[Said]: ...
    async def end(self, who: str, handle: str) -> None: ...


class Changes(Protocol):
    """The change feed as callers read it."""

    async def since(self, call: Call) -> News:
        """Everything below `call.ref` after the number in the argument `after`; without one, all that is kept."""
        ...

    async def read(self, call: Call) -> Content:
        """The same as JSON, for an address such as `changes://file/docs?after=7`, as its caller may see it."""
        ...
