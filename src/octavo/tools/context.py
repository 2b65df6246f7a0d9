"""The ToolContext: all that a tool may touch."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from octavo.core.arguments import (
    NOTHING,
    PLAIN,
    Arguments,
    ChangesArguments,
    CopyArguments,
    DeleteArguments,
    EditArguments,
    FoldersArguments,
    ListArguments,
    Mode,
    MoveArguments,
    OwnArguments,
    SearchArguments,
    UndoArguments,
    WriteArguments,
)
from octavo.core.cursor import Kind, joined, parts_of
from octavo.core.edit import Revision
from octavo.core.errors import Forbidden, OctavoError
from octavo.core.ports.chain import Ask, expected, page_of, several
from octavo.core.progress import Effort
from octavo.core.query import Query, TextQuery
from octavo.core.ref import Ref
from octavo.core.rehearsal import Rehearsed
from octavo.core.seal import Seal
from octavo.core.search_results import Findings
from octavo.core.tools import PromptResult
from octavo.core.values import EVERYTHING, Call, Content, Edited, Entry, News, Op, Page, Principal, Undone, Verb
from octavo.tools.permissions import May

if TYPE_CHECKING:
    from octavo.core.external import Rights
    from octavo.core.forms import Answer, Questions

_BEAT: Final = 1.0  # seconds between two words of progress
# What somebody may see of a text that has a name, in the resource in which it stands.
Seen: TypeAlias = Callable[[Principal, Ref, str, str], str]
OF_THIS_PROCESS = Seal(secrets.token_bytes(32))


def _as_it_is(ref: Ref) -> Ref:
    return ref


def _nobody_may(who: Principal, verb: Verb, ref: Ref) -> bool:
    return False


class NoWire(Forbidden, AttributeError):
    """`ctx.wire` is not there: `hasattr(ctx, "wire")` tells the same without an exception."""


class Deadline:
    """Of a tool. It stands still during a change: told as failed, that would happen nevertheless."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._limit: asyncio.Timeout | None = None
        self._changes = 0
        self._left = seconds

    @property
    def passed(self) -> bool:
        return self._limit is not None and self._limit.expired()

    @property
    def left(self) -> float:
        """Seconds."""
        until = None if self._limit is None else self._limit.when()
        return self._left if until is None else until - asyncio.get_running_loop().time()

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """TimeoutError when it has passed."""
        async with asyncio.timeout(self._seconds) as self._limit:
            yield

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        loop, limit = asyncio.get_running_loop(), self._limit
        if limit is None or limit.expired():
            yield
            return
        if (until := limit.when()) is not None:
            self._left = until - loop.time()
            limit.reschedule(None)
        self._changes += 1
        try:
            yield
        finally:
            self._changes -= 1
            if not self._changes:
                limit.reschedule(loop.time() + self._left)


class ToolContext:
    """What a tool or a prompt of a plugin asks with. Every question is a child call of its caller's
    call and walks the whole pipeline, so it can reach no more than the caller."""

    __slots__ = (
        "_ask",
        "_deadline",
        "_may",
        "_protocol",
        "_questions",
        "_read_only",
        "_rehearsal",
        "_rights",
        "_seal",
        "_seen",
        "call",
        "canonical",
    )

    def __init__(
        self,
        call: Call,
        ask: Ask,
        *,
        protocol: bool = False,
        canonical: Callable[[Ref], Ref] = _as_it_is,
        seal: Seal = OF_THIS_PROCESS,
        deadline: Deadline | None = None,
        questions: Callable[[], Questions] | None = None,
        may: May = _nobody_may,
        rights: Callable[[Principal], Rights] | None = None,
        seen: Seen | None = None,
        read_only: bool = False,
        rehearsal: bool = False,
    ) -> None:
        """`canonical` gives the one spelling of an address that has several; it looks at nothing but the text.
        `questions` is where those wait that the client cannot show. `read_only`: it refuses to change anything.
        `rehearsal`: the tool is only tried, up to where its effects would begin."""
        self._seal = seal
        self.call = call
        self.canonical = canonical
        self._ask = ask
        self._protocol = protocol
        self._deadline = deadline or Deadline(0)
        self._questions = questions
        self._may = may
        self._rights = rights
        self._seen = seen
        self._read_only = read_only
        self._rehearsal = rehearsal

    @property
    def principal(self) -> Principal:
        return self.call.principal

    @property
    def time_left(self) -> float:
        """Seconds until the tool is stopped: whoever may give a part of an answer gives it before."""
        return self._deadline.left

    def begins(self) -> None:
        """A tool that can be rehearsed calls it when everything has been checked, before it does anything."""
        if self._rehearsal:
            raise Rehearsed

    def may(self, verb: Verb, uri: str) -> bool:
        """Whether the rules let the caller do that there, whatever is there; where they depend on more, they do not."""
        return self._may(self.principal, verb, self.canonical(Ref.parse(uri)))

    def rights(self) -> Rights:
        """What the caller may do now, for whoever opens files for it by other ways than by calls."""
        if self._rights is None:
            raise Forbidden("What the caller may open is not known here")
        return self._rights(self.principal)

    def seen(self, ref: Ref, name: str, text: str) -> str:
        """What the caller may see of a text of this name in a resource that was no text as a whole."""
        return text if self._seen is None else self._seen(self.principal, ref, name, text)

    async def read(self, uri: str) -> Content:
        """Raises what a read by the caller itself would: NotFound, Forbidden, TooLarge and so on."""
        return expected(await self._ask(self._child("read", uri)), Content)

    async def list(
        self,
        uri: str,
        *,
        cursor: str | None = None,
        limit: int = 100,
        depth: int | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> Page[Entry]:
        """One page of what the caller may see under `uri`. With `depth`, where a source can, of each folder so many
        names below `uri` only one entry, which stands for it; a cursor belongs to one depth. `filter` is that of
        `resources/list`."""
        arguments = ListArguments(depth=depth, filter=filter or NOTHING) if depth or filter else PLAIN
        call = self._child("list", uri)._replace(cursor=cursor, limit=limit, arguments=arguments)
        return page_of(await self._ask(call))

    async def folders(self, uri: str, *, depth: int | None = 0, most: int = 10_000) -> Sequence[Ref]:
        """`uri`, if it is a folder that the caller may list, and such folders as many levels below it; None: all."""
        call = self._child("folders", uri)._replace(arguments=FoldersArguments(depth=depth, most=most))
        return several(await self._ask(call), Ref)

    async def schemes(self) -> Sequence[str]:
        """The namespaces in which the caller may see something, in the order of the configuration."""
        found = several(await self._ask(self.call.child("folders", EVERYTHING, arguments=FoldersArguments())), Ref)
        return [ref.scheme for ref in found]

    async def stat(self, uri: str) -> Entry:
        return expected(await self._ask(self._child("stat", uri)), Entry)

    async def search(self, uri: str, query: Query, *, cursor: str | None = None, limit: int = 100) -> Page[Entry]:
        """Candidates that the caller may search and read. What stands in them is found by reading them: a secret
        that nobody is shown must not be found either."""
        call = self._child("search", uri)._replace(cursor=cursor, limit=limit, arguments=SearchArguments(query))
        return page_of(await self._ask(call))

    async def find(
        self, query: TextQuery, uri: str | None = None, *, cursor: str | None = None, limit: int = 10
    ) -> Findings:
        """The best documents of all sources, or of what stands below `uri`, that the caller may search and read."""
        call = self.call.child("search", EVERYTHING) if uri is None else self._child("search", uri)
        return expected(
            await self._ask(call._replace(cursor=cursor, limit=limit, arguments=SearchArguments(query))), Findings
        )

    async def changes(self, uri: str | None = None, *, after: int | None = None, limit: int = 100) -> News:
        """What changed below `uri`, or anywhere, after that number of the feed; without one, the latest changes."""
        call = self.call.child("changes", EVERYTHING) if uri is None else self._child("changes", uri)
        return expected(await self._ask(call._replace(limit=limit, arguments=ChangesArguments(after))), News)

    async def write(
        self,
        uri: str,
        body: str | bytes,
        *,
        if_match: str | None = None,
        mode: Mode = "upsert",
        encoding: str | None = None,
    ) -> Entry:
        entry: Entry = await self._change(
            "write", uri, WriteArguments(body=body, if_match=if_match, mode=mode, encoding=encoding)
        )
        return entry

    async def edit(
        self,
        uri: str,
        revision: Revision,
        *,
        if_match: str | None = None,
        dry_run: bool = False,
    ) -> Edited:
        """Edits, or a patch, of the text as it is on disk, in which nothing is found of what is hidden from the caller.
        The report, and the messages of what it raises, are redacted before the tool sees them."""
        edited: Edited = await self._change(
            "edit", uri, EditArguments(revision=revision, if_match=if_match, dry_run=dry_run)
        )
        return edited

    async def delete(self, uri: str, *, if_match: str | None = None) -> bool:
        """Whether `undo` can bring it back."""
        return bool(await self._change("delete", uri, DeleteArguments(if_match=if_match)))

    async def move(self, uri: str, to: str, *, if_match: str | None = None, overwrite: bool = False) -> Entry:
        entry: Entry = await self._carry(
            "move", uri, to, lambda ref: MoveArguments(to=ref, if_match=if_match, overwrite=overwrite)
        )
        return entry

    async def copy(self, uri: str, to: str, *, overwrite: bool = False) -> Entry:
        entry: Entry = await self._carry("copy", uri, to, lambda ref: CopyArguments(to=ref, overwrite=overwrite))
        return entry

    async def make_directory(self, uri: str) -> None:
        await self._change("make", uri, PLAIN)

    async def undo(self, uri: str | None = None, *, count: int = 1) -> Sequence[Undone]:
        """Takes back what the caller changed last: in all sources that can undo, or around `uri` alone."""
        undone: Sequence[Undone] = await self._change("undo", uri, UndoArguments(count=count))
        return undone

    async def render(self, name: str, arguments: Mapping[str, Any] = NOTHING) -> PromptResult:
        """The messages of a prompt. Raises InvalidParams for an unknown one or for wrong arguments."""
        ref = Ref.of("prompt", (name,))
        return expected(
            await self._ask(self.call.child("render", ref, arguments=OwnArguments(arguments))), PromptResult
        )

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        """Tells the waiting client how far the work is; silent where nobody waits for that."""
        channel = self.call.channel
        if channel is not None:
            await channel.progress(value, total, message)

    async def ask_user(self, question: str, schema: Mapping[str, Any]) -> Answer:
        """What the person at the client says. `schema` is flat: texts, numbers, yes or no, choices.

        A client of the modern era calls the tool again with the answer, so ask before anything is done; within a task
        the tool just waits. A question that the client cannot show waits for `octavo questions answer`. Raises
        InvalidParams for a schema that no form can show, InputRequired while nobody has answered.
        """
        from octavo.tools.questions import ask

        return await ask(self.call, question, schema, self._questions, self._seal, self._kept)

    async def notify_user(self, message: str) -> Answer | None:
        """Shows a message: what the person at the client did with it. None where the client can show nothing: then it
        waits for whoever looks at `octavo questions list`."""
        from octavo.tools.questions import notify

        return await notify(self.call, message, self._questions, self._seal, self._kept)

    def _kept(self, value: Any) -> Any:
        return [self._kept(one) for one in value] if isinstance(value, list) else self.seen(self.call.ref, "", value)

    def sealed(self, *parts: Any) -> str:
        """A cursor for the caller: it can be brought back to this tool, and neither read nor made."""
        return self._seal.seal(joined(*parts).encode("utf-8", "surrogatepass"), self._bound)

    def opened(self, cursor: str, *kinds: Kind) -> Sequence[Any]:
        """Raises InvalidParams for what `sealed` did not make for this caller and tool of parts of these kinds."""
        text = self._seal.open(cursor, self._bound)
        refusal = "The cursor does not belong to this tool; begin again without one"
        return parts_of(None if text is None else text.decode("utf-8", "surrogatepass"), *kinds, refusal=refusal)

    @property
    def _bound(self) -> str:
        return f"{self.call.ref}\0{self.principal.id}"

    @property
    def wire(self) -> Any:
        """Raw protocol features. Raises NoWire unless the operator wrote `protocol: true` for the plugin."""
        if not self._protocol:
            raise NoWire("This plugin may not use the raw protocol; `protocol: true` in its configuration allows it")
        channel = self.call.channel
        if channel is None:
            raise NoWire("No client waits for this call, so there is no wire")
        return channel.wire

    async def _carry(self, op: Op, uri: str, to: str, made: Callable[[Ref], Arguments]) -> Any:
        call, arguments = self._child(op, uri), PLAIN
        try:
            arguments = made(self._parsed(to))
        except OctavoError as fault:
            if call.fault is None:  # it is about the other end, which would be written
                call = call._replace(op="write", uri=to, fault=fault)
        return await self._made(call._replace(arguments=arguments))

    async def _change(self, op: Op, uri: str | None, arguments: Arguments) -> Any:
        call = self.call.child(op, EVERYTHING) if uri is None else self._child(op, uri)
        return await self._made(call._replace(arguments=arguments))

    async def _made(self, call: Call) -> Any:
        if self._read_only:  # nobody was asked, because of that word
            raise Forbidden("This tool is marked read-only and wants to change something: its author has to mend that")
        if self._rehearsal:  # looks, and ends it
            return await self._ask(call)
        effort = Effort()
        telling = asyncio.get_running_loop().create_task(self._tell(effort))
        telling.add_done_callback(_seen)
        try:
            with self._deadline.standing_still(), effort.made():
                return await self._ask(call)
        finally:
            telling.cancel()

    async def _tell(self, effort: Effort) -> None:
        while self.call.channel is not None:
            await asyncio.sleep(_BEAT)
            if effort.steps:
                await self.progress(effort.steps, None, effort.told)

    def _parsed(self, uri: str) -> Ref:
        """Whoever calls a tool writes paths: one that is outside may be meant as a relative one."""
        ref = Ref.parse(uri)
        if ref.absolute:
            try:
                self.canonical(ref)
            except Forbidden:
                what = f"{uri} is outside the folders that are served"
                raise Forbidden(f"{what}; a path relative to them has no leading slash") from None
        return ref

    def _child(self, op: Op, uri: str) -> Call:
        return self.call.child_at(op, uri, parse=self._parsed)


def _seen(telling: asyncio.Task[None]) -> None:
    """Who can no longer be told of progress has no other loss: the change goes on."""
    if not telling.cancelled():
        telling.exception()
