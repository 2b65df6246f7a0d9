"""While a command runs, whoever waits for it hears so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from octavo.tools.context import ToolContext

_BEAT: Final = 1.0  # seconds between two words of progress


@asynccontextmanager
async def telling(ctx: ToolContext, what: str, seconds: float) -> AsyncIterator[None]:
    if ctx.call.channel is None:
        yield
        return
    task = asyncio.get_running_loop().create_task(_tell(ctx, what, seconds))
    task.add_done_callback(_seen)
    try:
        yield
    finally:
        task.cancel()


async def _tell(ctx: ToolContext, what: str, seconds: float) -> None:
    passed = 0.0
    while True:
        await asyncio.sleep(_BEAT)
        passed += _BEAT
        await ctx.progress(passed, max(seconds, passed), f"{what} has run for {passed:g} s")


def _seen(task: asyncio.Task[None]) -> None:
    """Who can no longer be told of progress has no other loss."""
    if not task.cancelled():
        task.exception()
