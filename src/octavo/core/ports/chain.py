"""The types of the pipeline: a fold takes a call and the rest of the chain, and gives a reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Protocol, TypeAlias, TypeVar

from octavo.core.values import Call, Entry, Page

T = TypeVar("T")

# What a call is answered with, by its operation (`core.operations`: Content for read, Page for list, and so on), or the
# coroutine that will give it. Whoever looks into one says what it must be: `expected`, `page_of`, `several`.
Reply: TypeAlias = object
Ask: TypeAlias = Callable[[Call], Awaitable[Reply]]
# The rest of the chain: the reply itself where it is there at once, else a coroutine that gives it.
Next: TypeAlias = Callable[[Call], Reply]


class Step(Protocol):
    """One fold of the pipeline: `(call, call_next) -> reply`, an `async def` or a plain function.

    A plain function may give a reply at once, and must pass on the coroutine of one that is not there yet; it
    tells the two apart by `type(reply) is CoroutineType`.
    That is what makes a cache hit cheap: it needs no coroutine, no task and no turn of the event loop. On the
    way to one no step may set a context variable: the next request of the connection would see it.
    """

    def __call__(self, call: Call, call_next: Next) -> Reply: ...


async def settled(reply: Reply) -> Reply:
    """The reply of the rest of the chain, there at once or not."""
    return await reply if type(reply) is CoroutineType else reply


def expected(reply: Reply, kind: type[T]) -> T:
    """A reply, as what its operation gives. Raises TypeError for anything else."""
    if isinstance(reply, kind):
        return reply
    raise TypeError(f"{kind.__name__} was expected, not {type(reply).__name__}")


def page_of(reply: Reply) -> Page[Entry]:
    page: Page[Entry] = expected(reply, Page)
    return page


def several(reply: Reply, kind: type[T]) -> Sequence[T]:
    """A sequence of such values, whose elements are not looked at."""
    if isinstance(reply, list | tuple):
        return reply
    raise TypeError(f"a sequence of {kind.__name__} was expected, not {type(reply).__name__}")
