"""Ways to break the system behind a source: it fails, it hangs, it answers garbage, it ends the program.

    @contextmanager
    def broken(self, source, fault):
        with broken_calls(source._client, ["get", "query"], fault, error=ConnectionError("refused")):
            yield

Patch the narrowest door to the foreign system, not a method of the source itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import anyio

Fault = Literal["fails", "hangs", "garbage", "exits", "interrupts", "closes", "cancels"]
FAULTS: tuple[Fault, ...] = ("fails", "hangs", "garbage", "exits", "interrupts", "closes", "cancels")
# By these Python ends a program, a generator or a task. A library raises one by mistake; a source need not catch it.
ENDINGS: Mapping[str, type[BaseException]] = {
    "exits": SystemExit,
    "interrupts": KeyboardInterrupt,
    "closes": GeneratorExit,
    "cancels": asyncio.CancelledError,
}


class Garbage:
    """Stands where an answer should: has no attribute, no item, no length, no meaning."""

    def __repr__(self) -> str:
        return "<garbage>"


GARBAGE = Garbage()


async def misbehave(fault: Fault, *, error: Exception | None = None, garbage: object = GARBAGE) -> Any:
    """What a broken system does when it is awaited. A hang ends by cancellation only."""
    if fault in ENDINGS:
        raise ENDINGS[fault]
    if fault == "hangs":
        await anyio.sleep_forever()
    if fault == "fails":
        raise error if error is not None else OSError(5, "Input/output error")
    return garbage


def garbled(text: str) -> bytes:
    """Bytes that hold `text` and are not UTF-8, JSON, YAML or the end of anything."""
    return b"\xff\xfe\x00{[" + text.encode("utf-8") + b"\xc3\x28\x80"


@contextmanager
def broken_calls(
    owner: object, names: Iterable[str], fault: Fault, *, error: Exception | None = None, garbage: object = GARBAGE
) -> Generator[None, None, None]:
    """Replaces the callables `names` of `owner` for as long as the block lasts.

    A plain function cannot hang without holding up the event loop, so `hangs` makes it raise
    TimeoutError, as a blocking client with a timeout would.
    """
    kept = vars(owner).copy() if hasattr(owner, "__dict__") else {}
    replaced = list(names)
    for name in replaced:
        setattr(owner, name, _replacement(getattr(owner, name), fault, error, garbage))
    try:
        yield
    finally:
        for name in replaced:
            if name in kept:
                setattr(owner, name, kept[name])
            else:
                delattr(owner, name)


def _replacement(
    original: Callable[..., object], fault: Fault, error: Exception | None, garbage: object
) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(original):

        async def awaited(*_: object, **__: object) -> Any:
            return await misbehave(fault, error=error, garbage=garbage)

        return awaited

    def called(*_: object, **__: object) -> Any:
        if fault in ENDINGS:
            raise ENDINGS[fault]
        if fault == "hangs":
            raise TimeoutError("timed out")
        if fault == "fails":
            raise error if error is not None else OSError(5, "Input/output error")
        return garbage

    return called
