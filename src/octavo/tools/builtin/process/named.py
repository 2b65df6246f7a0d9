"""The files and folders that a command is pointed at, and nothing beside them: for tools that name them one by one."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from octavo.core.errors import InvalidParams, NotFound, TooLarge
from octavo.core.external import Opening, Program, WorkFolder
from octavo.core.ref import Ref
from octavo.sandbox import landlock
from octavo.tools.builtin.addresses import address, read_with
from octavo.tools.builtin.process.places import ONE_BYTE, CommandFolder, ServedFolders, Workplace, found_in, too_many
from octavo.tools.context import ToolContext


class Named(Struct, frozen=True):
    place: WorkFolder | None
    words: tuple[str, ...]  # by which the program opens them, in their order
    folders: tuple[Workplace, ...] = ()  # those among them that are folders


class _Target(Struct, frozen=True):
    root: CommandFolder
    names: tuple[str, ...]  # on disk, from the root on
    openings: tuple[Opening, ...]
    folder: Workplace | None = None


async def named(places: ServedFolders, ctx: ToolContext, program: Program, targets: Sequence[str]) -> Named:
    """Raises what a read of one byte by the caller would, InvalidParams for targets below several roots, and Forbidden
    where the program could not be kept from what the caller may not have."""
    await places.refuse_beside(ctx, program)
    found = [await _target(places, ctx, target) for target in targets]
    root = found[0].root
    if any(one.root is not root for one in found):
        raise InvalidParams("All files of one command must stand below one root")
    openings = tuple(dict.fromkeys(one for target in found for one in target.openings))
    if too_many(openings):
        raise TooLarge("These are more files than a program can be confined to; name fewer, or a folder below")
    return Named(
        WorkFolder(_real(root), openings=openings, open=not landlock.version()),
        tuple("/".join((".", *one.names)) for one in found),
        tuple(one.folder for one in found if one.folder is not None),
    )


async def _target(places: ServedFolders, ctx: ToolContext, target: str) -> _Target:
    uri = address(target)
    ref = ctx.canonical(Ref.parse(uri))
    roots = [root for root in places.roots if root.scheme == ref.scheme]
    if await ctx.folders(uri):
        root = next((root for root in roots if found_in(root, ref)), None)
        if root is None:
            raise InvalidParams(f"{uri} is no folder that a command can be given; a link to one is none", uri=uri)
        extent = await root.source.survey(root.number, ref.segments, ctx.rights())
        place = WorkFolder(_real(root), ref.segments, openings=extent.openings)
        below = tuple(replace(one, names=(*ref.segments, *one.names)) for one in extent.openings)
        return _Target(root, ref.segments, below, Workplace(place, root))
    await read_with(ctx, uri, ONE_BYTE)  # first: who may not read it does not learn whether it is there
    root, own, opening = await _file(roots, ref, uri)
    await read_with(ctx, str(own), ONE_BYTE, uri)  # that one: what a link leads to may have changed meanwhile
    return _Target(root, opening.names, (opening,))


def _real(root: CommandFolder) -> str:
    return os.path.realpath(root.path)


async def _file(roots: Sequence[CommandFolder], ref: Ref, uri: str) -> tuple[CommandFolder, Ref, Opening]:
    for root in roots:
        if ref.param("root") in (None, str(root.number + 1)):
            try:
                return (root, *await root.source.opening(root.number, ref.segments))
            except NotFound:
                continue
    raise NotFound(f"Resource not found: {uri}", uri=uri)
