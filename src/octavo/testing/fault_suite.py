"""Clause 6 and 10 with the system behind the source broken. For every source that has one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import ClassVar, TypeVar

import anyio
import pytest

from octavo.core.errors import NotFound, OctavoError, SourceUnavailable
from octavo.core.foreign import passed_on
from octavo.core.ports.source import Completes, Source, Writes
from octavo.core.ref import Ref
from octavo.core.values import Content, Entry
from octavo.testing.base import ENOUGH, Suite, outcome, showing, text_of, told
from octavo.testing.faults import ENDINGS, FAULTS, Fault

OPERATIONS = ("list", "stat", "read", "write", "delete", "complete")

T = TypeVar("T")


async def ending(fault: Fault, work: Awaitable[T]) -> T | OctavoError:
    """As `outcome`; what ends a program may leave as it is: the server catches it at the door of the source."""
    try:
        return await outcome(work)
    except BaseException as error:
        cancelled = isinstance(error, asyncio.CancelledError) and passed_on(error)
        if type(error) is not ENDINGS.get(fault) or cancelled:
            raise
        return SourceUnavailable(f"the source let {type(error).__name__} through")


@pytest.mark.parametrize("fault", FAULTS)
class FaultSuite(Suite):
    """Subclass beside SourceSuite, with the same fixture `source`, and say how to break what is behind it.

    class TestMySourceUnderFaults(FaultSuite):
        @contextmanager
        def broken(self, source, fault):
            with broken_calls(source.client, ["fetch"], fault):
                yield
    """

    #: Seconds after which the caller of a hanging source gives up.
    deadline: ClassVar[float] = 0.1

    def broken(self, source: Source, fault: Fault) -> AbstractContextManager[None]:
        """While the block lasts, what stands behind `source` fails, hangs or answers garbage."""
        raise NotImplementedError("override `broken`")

    @pytest.mark.parametrize("operation", OPERATIONS)
    async def test_only_our_errors_leave_a_source_whose_system_is_broken(
        self, source: Source, fault: Fault, operation: str
    ) -> None:
        with self.broken(source, fault), anyio.move_on_after(self.deadline):
            await ending(fault, self._operate(source, operation))

    async def test_the_source_works_again_when_its_system_does(self, source: Source, fault: Fault) -> None:
        path = self.text_path
        with self.broken(source, fault):
            for operation in ("list", "stat", "read"):
                with anyio.move_on_after(self.deadline):
                    await ending(fault, self._operate(source, operation))
        content = await self.patiently(source.read(self.ref(source, path), max_bytes=ENOUGH), "read after a fault")
        assert text_of(content) == self.TREE[path]
        entries = await self.patiently(self.everything(source), "list after a fault")
        assert {entry.ref for entry in entries} == {self.ref(source, path) for path in self.TREE}

    async def test_a_broken_system_is_never_taken_for_an_answer(self, source: Source, fault: Fault) -> None:
        """A failure is neither an empty list nor an absent entry; garbage is at most a text."""
        path = self.text_path
        with self.broken(source, fault), anyio.move_on_after(self.deadline):
            page = await ending(fault, source.list(Ref(source.scheme), cursor=None, limit=100))
            if not isinstance(page, OctavoError):
                assert all(type(entry) is Entry for entry in page.items)
                if fault != "garbage":
                    assert {entry.ref for entry in page.items} == {self.ref(source, path) for path in self.TREE}
        with self.broken(source, fault), anyio.move_on_after(self.deadline):
            content = await ending(fault, source.read(self.ref(source, path), max_bytes=ENOUGH))
            if isinstance(content, OctavoError):
                assert fault == "garbage" or not isinstance(content, NotFound), "a failure is not an absence"
            else:
                assert type(content) is Content
                assert type(content.body) in (str, bytes)
                if fault != "garbage":
                    assert text_of(content) == self.TREE[path]

    @pytest.mark.parametrize("operation", OPERATIONS)
    async def test_no_secret_shows_when_its_system_is_broken(
        self, source: Source, fault: Fault, operation: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        if not self.secrets:
            pytest.skip("the source has no secrets")
        with self.broken(source, fault), caplog.at_level(logging.DEBUG), anyio.move_on_after(self.deadline):
            reply = await ending(fault, self._operate(source, operation))
            assert not showing(self.secrets, told(reply))
        assert not showing(self.secrets, caplog.text)

    async def _operate(self, source: Source, operation: str) -> object:
        ref = self.ref(source, self.text_path)
        if operation == "list":
            return await source.list(Ref(source.scheme), cursor=None, limit=100)
        if operation == "stat":
            return await source.stat(ref)
        if operation == "read":
            return await source.read(ref, max_bytes=ENOUGH)
        if operation == "complete":
            if not isinstance(source, Completes):
                pytest.skip("cannot complete")
            return await source.complete("path", "", {})
        if not isinstance(source, Writes):
            pytest.skip("cannot write")
        if operation == "write":
            return await source.write(ref, "changed\n", if_match=None)
        await source.delete(ref, if_match=None)
        return None
