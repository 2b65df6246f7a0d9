"""Converts documents and images in worker processes, which may be killed."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, Self

from octavo.core.errors import InternalError, InvalidParams, OctavoError, SourceUnavailable, Timeout, TooLarge
from octavo.core.fair import FairQueue
from octavo.sources._shared.documents.child import ConverterProcess, Gone, Reply
from octavo.sources._shared.documents.convert import format_of
from octavo.sources._shared.documents.model import ConversionLimits, ConvertedDocument

_WORKERS: Final = 3  # of which one caller has two
_IDLE_SECONDS: Final = 60.0
_SLACK: Final = 64  # of an output, for the last line's end
_TOLD: Final[dict[str, type[OctavoError]]] = {kind.reason: kind for kind in (InvalidParams, TooLarge)}
_MAX_MESSAGE: Final = 2_000


class Converter:
    """Up to `workers` processes, started when they are first needed, ended when they idle. Callers take turns, and
    whoever has one leaves the last to others.

    Every fault of a document is a typed error: InvalidParams (not readable, protected, or chosen wrongly;
    its reader crashed), TooLarge, Timeout. After a time-out, a crash or a cancellation the process is killed,
    and there is a new one before its place is given to somebody else. Closing kills whatever runs.
    """

    def __init__(
        self, limits: ConversionLimits | None = None, *, workers: int = _WORKERS, idle_seconds: float = _IDLE_SECONDS
    ) -> None:
        self.limits = limits or ConversionLimits()
        self._slots = FairQueue(workers, "conversions", spare=min(1, workers - 1))
        self._inside = 0
        self._left = asyncio.Event()
        self._idle_seconds = idle_seconds
        self._idle: list[tuple[ConverterProcess, asyncio.TimerHandle]] = []
        self._children: dict[ConverterProcess, asyncio.Task[None]] = {}
        self._replacing = set[asyncio.Task[None]]()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Nothing runs any more when this returns."""
        self._closed = True
        for _, timer in self._idle:
            timer.cancel()
        self._idle.clear()
        for child in self._children:
            child.kill()
        while self._inside:  # they leave, with a killed process or none
            self._left.clear()
            await self._left.wait()
        await asyncio.gather(*self._children.values())

    def turn(self) -> ConverterTurn:
        """Around the work on one document: what is read for it in there is in memory for no longer than that."""
        return ConverterTurn(self)

    async def convert(
        self, raw: bytes, mime: str, *, pages: str | None = None, sheet: str | None = None, range: str | None = None
    ) -> ConvertedDocument:
        format_of(mime)
        async with self.turn() as turn:
            return await turn.convert(raw, mime, pages=pages, sheet=sheet, range=range)

    async def shrink(self, raw: bytes, mime: str, *, max_pixels: int, max_bytes: int) -> tuple[bytes, str]:
        async with self.turn() as turn:
            return await turn.shrink(raw, mime, max_pixels=max_pixels, max_bytes=max_bytes)

    async def begin(self) -> str:
        return await self._slots.enter()

    def end(self, who: str, *, used_up: bool) -> None:
        """`used_up`: the process of this turn can serve nobody after it."""
        if used_up and not self._closed:
            self._inside += 1
            replacing = asyncio.create_task(self._replace(who))
            self._replacing.add(replacing)
            replacing.add_done_callback(self._replacing.discard)
        else:
            self._slots.leave(who)

    async def ask(
        self, turn: ConverterTurn, asked: dict[str, object], raw: bytes, max_bytes: int
    ) -> tuple[Reply, bytes]:
        if len(raw) > self.limits.input_bytes:
            raise TooLarge(f"The document has {len(raw)} bytes; at most {self.limits.input_bytes} are read")
        self._inside += 1
        try:
            reply, body = await self._answered(turn, asked, raw, max_bytes)
        finally:
            self._leave()
        if reply.error is not None:
            raise _TOLD.get(reply.error, InternalError)(reply.message[:_MAX_MESSAGE])
        return reply, body

    async def _replace(self, who: str) -> None:
        """There is another process before somebody else has the place: it is not for the next one to wait for it."""
        try:
            child = await self._started()
            if not self._closed:
                self._keep(child)
        except OctavoError:  # whoever comes next will be told
            pass
        finally:
            self._slots.leave(who)
            self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        self._left.set()

    async def _answered(
        self, turn: ConverterTurn, asked: dict[str, object], raw: bytes, max_bytes: int
    ) -> tuple[Reply, bytes]:
        used = self._waiting()
        if used is not None:
            try:
                return await self._work(turn, used, asked, raw, max_bytes)
            except Gone as gone:  # it may have died before, which is no fault of this document
                if gone.out_of_time:
                    raise self._late() from None
        try:
            return await self._work(turn, await self._started(), asked, raw, max_bytes)
        except Gone as gone:
            raise self._late() if gone.out_of_time else self._ended() from None

    async def _work(
        self, turn: ConverterTurn, child: ConverterProcess, asked: dict[str, object], raw: bytes, max_bytes: int
    ) -> tuple[Reply, bytes]:
        kept = False
        try:
            async with asyncio.timeout(self.limits.seconds):
                reply, body = await child.ask(asked, raw, max_bytes=max_bytes)
            kept = not (reply.spent or self._closed)
        except TimeoutError:
            raise self._late() from None
        finally:
            turn.used_up = not kept
            if kept:
                self._keep(child)
            else:
                child.kill()
        return reply, body

    async def _started(self) -> ConverterProcess:
        if self._closed:
            raise self._ended()
        child = await ConverterProcess.start(self.limits)
        reaper = self._children[child] = asyncio.create_task(child.gone())
        reaper.add_done_callback(lambda _: self._children.pop(child))
        try:
            if self._closed:
                raise self._ended()
            await child.ready()
        except BaseException:
            child.kill()
            raise
        return child

    def _waiting(self) -> ConverterProcess | None:
        while self._idle:
            child, timer = self._idle.pop()
            timer.cancel()
            if child.alive:
                return child
        return None

    def _keep(self, child: ConverterProcess) -> None:
        timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._retire, child)
        self._idle.append((child, timer))

    def _retire(self, child: ConverterProcess) -> None:
        self._idle = [each for each in self._idle if each[0] is not child]
        child.kill()

    def _late(self) -> Timeout:
        return Timeout(
            f"The document could not be read within {self.limits.seconds:g} s; ask for a part of it", telling=False
        )

    def _ended(self) -> OctavoError:
        return SourceUnavailable("The converter is closed") if self._closed else _crashed()


class ConverterTurn:
    """One document at work."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter
        self.used_up = False

    async def __aenter__(self) -> Self:
        self._who = await self._converter.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._converter.end(self._who, used_up=self.used_up)

    async def convert(
        self, raw: bytes, mime: str, *, pages: str | None = None, sheet: str | None = None, range: str | None = None
    ) -> ConvertedDocument:
        """See `convert.convert`; in a process of its own, and with all limits."""
        format_of(mime)
        asked: dict[str, object] = {"do": "convert", "mime": mime, "choice": (pages, sheet, range)}
        reply, body = await self._converter.ask(self, asked, raw, self._converter.limits.output_bytes + _SLACK)
        try:
            return ConvertedDocument(body.decode("utf-8"), tuple(reply.parts), reply.truncated)
        except UnicodeDecodeError:
            raise _crashed() from None

    async def shrink(self, raw: bytes, mime: str, *, max_pixels: int, max_bytes: int) -> tuple[bytes, str]:
        """See `images.shrink`."""
        if max_pixels < 1 or max_bytes < 1:
            raise InvalidParams("An image has at least one pixel and one byte")
        asked: dict[str, object] = {"do": "shrink", "mime": mime, "max_pixels": max_pixels, "max_bytes": max_bytes}
        reply, body = await self._converter.ask(self, asked, raw, max_bytes)
        return body, reply.mime


def _crashed() -> InvalidParams:
    return InvalidParams(
        "The document cannot be read: its reader gave up, as it does on damaged documents and on those that "
        "need too much memory; ask for a part of it, or save it anew"
    )
