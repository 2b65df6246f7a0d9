"""Whether a target is a folder, and what to say of one that is something else or is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from octavo.core.errors import InvalidParams, NotFound, OctavoError
from octavo.core.ref import Ref
from octavo.tools.builtin.addresses import below
from octavo.tools.context import ToolContext

Names = tuple[str, ...]


class ListedFolder(NamedTuple):
    names: Names  # below the scope that was listed; () is the scope
    uri: str


async def folders(ctx: ToolContext, uri: str, depth: int) -> Sequence[ListedFolder]:
    """Those that the caller may list, in order, each once, by its address in the first root that has it: the scope,
    and `depth` levels below it; 0 is all."""
    found: dict[Names, ListedFolder] = {}
    for ref in await ctx.folders(uri, depth=depth or None):
        names = below(ctx, ref, Ref.parse(uri))
        found.setdefault(names, ListedFolder(names, str(ref.bare)))
    return [*found.values()]


async def is_folder(ctx: ToolContext, uri: str) -> bool:
    """One that the caller may list, or in which it may see something."""
    try:
        if await ctx.folders(uri):
            return True
        seen = (await ctx.list(uri, limit=1)).items
        return bool(seen) and bool(below(ctx, seen[0].ref, Ref.parse(uri)))  # a file is listed as itself
    except OctavoError:  # then what the caller asked for says why
        return False


async def instead(ctx: ToolContext, uri: str, absent: OctavoError) -> OctavoError:
    """What to raise where a file was asked for that is not there."""
    if await is_folder(ctx, uri):
        return InvalidParams(f"{uri} is a folder: list it, or name a file in it", uri=uri)
    return absent


async def refuse_missing(ctx: ToolContext, uri: str) -> None:
    """Raises NotFound, in the words of the pipeline, unless there is a file or a folder: absent and hidden look the
    same. All that is served is there, also for whoever sees nothing of it."""
    if Ref.parse(uri).segments and not await ctx.folders(uri) and not (await ctx.list(uri, limit=1)).items:
        raise NotFound(f"Resource not found: {uri}", uri=uri)
