"""The fault-injecting variant catches sources that trust the system behind them."""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio.lowlevel
import pytest

from octavo.core.errors import NotFound, OctavoError, SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.values import Content, Entry, Page
from octavo.testing import Fault, FaultSuite, SourceSuite, broken_calls
from octavo.testing.base import TREE

SECRET = "correct horse battery staple"


class Library:
    """A system behind a source: answers later, and can be broken."""

    def __init__(self) -> None:
        self.texts = dict(TREE)

    async def paths(self) -> list[str]:
        await anyio.lowlevel.checkpoint()
        return sorted(self.texts, key=lambda path: path.split("/"))

    async def text(self, path: str) -> str | None:
        await anyio.lowlevel.checkpoint()
        return self.texts.get(path)


class Shelf:
    """A sound source over a library. It distrusts each answer, and maps each failure at its door."""

    scheme = "shelf"

    def __init__(self) -> None:
        self.library = Library()
        self.token = SECRET

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        async def found() -> Page[Entry]:
            refs = [Ref.of("shelf", path.split("/")) for path in await self.library.paths()]
            refs = [ref for ref in refs if ref.within(scope)]
            after = [ref for ref in refs if cursor is None or ref.path > cursor]
            return Page(tuple([await self._entry(ref) for ref in after[:limit]]))

        return await self._door(found)

    async def stat(self, ref: Ref) -> Entry:
        return await self._door(lambda: self._entry(ref))

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        async def found() -> Content:
            return Content(entry=await self._entry(ref), body=await self._text(ref))

        return await self._door(found)

    async def _text(self, ref: Ref) -> str:
        text = await self.library.text(ref.path)
        if text is None:
            raise NotFound(f"Resource not found: {ref}", uri=str(ref))
        if not isinstance(text, str):
            raise SourceUnavailable("The library answered garbage")
        return text

    async def _entry(self, ref: Ref) -> Entry:
        text = await self._text(ref)
        return Entry(ref=ref, name=ref.name, size=len(text.encode()), version=str(hash(text)))

    async def _door(self, work: Callable[[], Any]) -> Any:
        try:
            return await work()
        except OctavoError:
            raise
        except Exception:  # the door of a source
            raise SourceUnavailable("The library did not answer") from None


class Faults(FaultSuite):
    __test__ = False
    secrets = (SECRET,)
    patience = 0.2
    deadline = 0.02

    @contextmanager
    def broken(self, source: Any, fault: Fault) -> Generator[None, None, None]:
        error = ConnectionError(f"https://user:{SECRET}@library refused")
        with broken_calls(source.library, ["paths", "text"], fault, error=error):
            yield


class TestASoundSourceBehindADoor(Faults):
    __test__ = True

    @pytest.fixture
    def source(self) -> Shelf:
        return Shelf()


class LetsForeignErrorsOut(Shelf):
    async def _door(self, work: Callable[[], Any]) -> Any:
        return await work()


class TakesAFailureForAbsence(Shelf):
    async def _door(self, work: Callable[[], Any]) -> Any:
        try:
            return await super()._door(work)
        except SourceUnavailable:
            raise NotFound("Resource not found", uri="?") from None


class TakesAFailureForAnEmptyList(Shelf):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        try:
            return await super().list(scope, cursor=cursor, limit=limit)
        except SourceUnavailable:
            return Page(())


class PassesGarbageOn(Shelf):
    async def _text(self, ref: Ref) -> Any:
        return await self.library.text(ref.path)

    async def _entry(self, ref: Ref) -> Entry:
        return Entry(ref=ref, name=ref.name)


class NeverRecovers(Shelf):
    failed = False

    async def _door(self, work: Callable[[], Any]) -> Any:
        try:
            if self.failed:
                raise SourceUnavailable("The library did not answer")
            return await super()._door(work)
        except BaseException:
            self.failed = True
            raise


class KeepsItsLockInAHang(Shelf):
    def __init__(self) -> None:
        super().__init__()
        self.limiter = anyio.Semaphore(1)

    async def _door(self, work: Callable[[], Any]) -> Any:
        await self.limiter.acquire()
        reply = await super()._door(work)
        self.limiter.release()
        return reply


class KeepsItsLockAtAnEnd(Shelf):
    """Gives it back after what it knows of, and not when what it calls ends the program."""

    def __init__(self) -> None:
        super().__init__()
        self.limiter = anyio.Semaphore(1)

    async def _door(self, work: Callable[[], Any]) -> Any:
        await self.limiter.acquire()
        try:
            reply = await super()._door(work)
        except (Exception, asyncio.CancelledError):
            self.limiter.release()
            raise
        self.limiter.release()
        return reply


class TakesAnEndForAnEmptyList(Shelf):
    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        try:
            return await super().list(scope, cursor=cursor, limit=limit)
        except BaseException as error:
            if isinstance(error, (OctavoError, asyncio.CancelledError)):
                raise
            return Page(())


class MakesAnEndAnotherError(Shelf):
    async def _door(self, work: Callable[[], Any]) -> Any:
        try:
            return await super()._door(work)
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            raise RuntimeError("it ended") from error


class QuotesTheFailure(Shelf):
    async def _door(self, work: Callable[[], Any]) -> Any:
        try:
            return await work()
        except Exception as error:
            raise SourceUnavailable(f"The library did not answer: {error}") from error


class LogsTheFailure(Shelf):
    async def _door(self, work: Callable[[], Any]) -> Any:
        try:
            return await work()
        except Exception:
            logging.getLogger("octavo").exception("The library did not answer")
            raise SourceUnavailable("The library did not answer") from None


@dataclass(frozen=True)
class Mutant:
    source: type[Shelf]
    caught_by: str


MUTANTS = [
    Mutant(LetsForeignErrorsOut, "test_only_our_errors_leave_a_source_whose_system_is_broken"),
    Mutant(TakesAFailureForAbsence, "test_a_broken_system_is_never_taken_for_an_answer"),
    Mutant(TakesAFailureForAnEmptyList, "test_a_broken_system_is_never_taken_for_an_answer"),
    Mutant(PassesGarbageOn, "test_a_broken_system_is_never_taken_for_an_answer"),
    Mutant(NeverRecovers, "test_the_source_works_again_when_its_system_does"),
    Mutant(KeepsItsLockInAHang, "test_the_source_works_again_when_its_system_does"),
    Mutant(KeepsItsLockAtAnEnd, "test_the_source_works_again_when_its_system_does"),
    Mutant(TakesAnEndForAnEmptyList, "test_a_broken_system_is_never_taken_for_an_answer"),
    Mutant(MakesAnEndAnotherError, "test_only_our_errors_leave_a_source_whose_system_is_broken"),
    Mutant(QuotesTheFailure, "test_no_secret_shows_when_its_system_is_broken"),
    Mutant(LogsTheFailure, "test_no_secret_shows_when_its_system_is_broken"),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.source.__name__)
def test_the_fault_suite_catches(mutant: Mutant, failures: Any) -> None:
    assert failures(Faults(), mutant.source, mutant.caught_by), f"{mutant.source.__name__} was let pass"


def test_every_test_of_the_fault_suite_has_caught_a_mutant(tests_of: Any) -> None:
    assert {mutant.caught_by for mutant in MUTANTS} == set(tests_of(FaultSuite))


def test_a_read_only_source_skips_what_it_cannot_do(failures: Any) -> None:
    """Skips come from abilities that the object lacks, not from a list."""
    for test in (
        "test_7_a_write_is_told_by_watch",
        "test_4_a_stamp_never_raises",
        "test_8_several_watches_are_told_alike",
    ):

        class Suite(SourceSuite):
            __test__ = False

        assert failures(Suite(), Shelf, test) == []
