"""Folds the eight steps around dispatch, once, at start-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CoroutineType

from octavo.core.ports.chain import Ask, Next, Reply, Step
from octavo.core.values import Call

# The order is the architecture: configuration tunes the steps and cannot reorder them.
ORDER = ("audit", "identity", "quota", "policy", "mask", "cache", "redact", "throttle")


def fold(steps: Sequence[Step], dispatch: Next) -> Next:
    """One callable out of steps (outermost first) and dispatch. Refuses another order than ORDER.

    It gives a reply at once where it can: see `core.ports.Next`.
    """
    names = tuple(type(step).__name__.lower() for step in steps)
    if names != ORDER:
        raise ValueError(f"The folds stand in the order {', '.join(ORDER)}, not {', '.join(names)}")
    return _folded(steps, dispatch)


def inner(steps: Sequence[Step], dispatch: Next) -> Next:
    """The end of the chain alone, for the house itself: who asks there is nobody, and decides later who may see what
    it was told. Refuses steps that are not the last of ORDER."""
    names = tuple(type(step).__name__.lower() for step in steps)
    if not names or names != ORDER[-len(names) :]:
        raise ValueError(f"The chain ends with {', '.join(ORDER[-max(1, len(names)) :])}, not {', '.join(names)}")
    return _folded(steps, dispatch)


def _folded(steps: Sequence[Step], dispatch: Next) -> Next:
    chain = dispatch
    for step in reversed(steps):
        chain = _bind(step.__call__, chain)
    return chain


def _bind(step: Callable[[Call, Next], Reply], call_next: Next) -> Next:
    # A plain function that returns the step's own reply: an `async def` would cost a frame a fold.
    def bound(call: Call) -> Reply:
        return step(call, call_next)

    return bound


def awaitable(chain: Next) -> Ask:
    """The same chain for whoever awaits."""

    async def ask(call: Call) -> Reply:
        reply = chain(call)
        return await reply if type(reply) is CoroutineType else reply

    return ask
