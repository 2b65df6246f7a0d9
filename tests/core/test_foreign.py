"""What foreign code raises by itself, and what it only passes on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import pytest

from octavo.core.foreign import described, own_fault, passed_on


def raised(work: Callable[[], object]) -> BaseException:
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def interrupts() -> None:
    raise KeyboardInterrupt


def is_interrupted() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_of_the_operator_is_told_from_one_that_code_raises() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert passed_on(raised(is_interrupted))
        assert not passed_on(raised(interrupts))
        assert isinstance(own_fault(raised(interrupts), "the tool"), RuntimeError)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_cancellation_is_passed_on_only_where_somebody_asked_for_it() -> None:
    async def out_of_nothing() -> bool:
        return passed_on(asyncio.CancelledError())

    async def asked_for() -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            return passed_on(error)
        return False

    async def main() -> tuple[bool, bool]:
        task = asyncio.ensure_future(asked_for())
        await asyncio.sleep(0)
        task.cancel()
        return await out_of_nothing(), await task

    assert asyncio.run(main()) == (False, True)


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit


@pytest.mark.parametrize(
    ("error", "words"),
    [(ValueError("x"), "ValueError: x"), (SystemExit(), "SystemExit"), (Mute(), "Mute: (it cannot say what)")],
    ids=["plain", "nothing", "mute"],
)
def test_every_exception_can_be_described(error: BaseException, words: str) -> None:
    assert described(error) == words
