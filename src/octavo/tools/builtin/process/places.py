"""Chooses the folder in which a command works: one that is served, as far as its caller may see it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound
from octavo.core.external import Extent, Opening, Program, Rights, ServedFolder, Surveys, WorkFolder
from octavo.core.foundation import Foundation
from octavo.core.ref import Ref
from octavo.core.sizes import KIB
from octavo.sandbox import landlock
from octavo.sandbox.landlock import READ_DIR, REMOVE_DIR, REMOVE_FILE, WRITE
from octavo.tools.builtin.addresses import address, read_with
from octavo.tools.builtin.process.running import opening_word, readable
from octavo.tools.context import ToolContext

_OPENINGS: Final = 1000  # rules of Landlock for one program
_WORDS: Final = 256 * KIB  # bytes in which they are told to the launcher
ONE_BYTE: Final = "range=0-0"
_FOLDERS: Final = 5  # that are named to whoever is refused


class CommandFolder(Struct, frozen=True):
    """A folder that is served, and by which addresses."""

    scheme: str
    path: str
    write: bool
    source: Surveys
    number: int = 0  # among the roots of its source


class Workplace(Struct, frozen=True):
    place: WorkFolder
    root: CommandFolder
    unlisted: tuple[Ref, ...] = ()  # folders whose names the program cannot list


class ServedFolders:
    def __init__(self, roots: Sequence[CommandFolder], foundation: Foundation, stores: Sequence[str] = ()) -> None:
        """In the order in which they are looked into. `stores` are folders that are served by addresses of others."""
        self._roots, self._foundation, self._stores = roots, foundation, stores

    @property
    def roots(self) -> Sequence[CommandFolder]:
        return self._roots

    async def place(self, ctx: ToolContext, program: Program, target: str | None, *, write: bool) -> Workplace:
        """Raises NotFound or Forbidden, as a listing by the caller would, InvalidParams for what is no folder, and
        Forbidden where the program could not be kept from what the caller may not have."""
        if not self._roots:
            raise InvalidParams("No folder is served in which a command could work")
        uri = address(target) if target is not None else f"{self._roots[0].scheme}://"
        seen = await ctx.folders(uri)
        if not seen:
            raise NotFound(f"Resource not found: {uri}", uri=uri)
        ref = ctx.canonical(Ref.parse(uri))
        found = ((root, found_in(root, ref)) for root in self._roots if root.scheme == ref.scheme)
        root, real = next(((root, real) for root, real in found if real), (None, ""))
        if root is None:
            raise InvalidParams(f"{uri} is no folder in which a command can work; a link to one is none", uri=uri)
        await self.refuse_beside(ctx, program)
        rights = ctx.rights()
        extent = await root.source.survey(root.number, ref.segments, rights)
        place = WorkFolder(
            real, ref.segments, write and root.write and ctx.may("write", uri), open=not landlock.version()
        )
        if place.write:
            self._refuse_essentials(uri, place)
            return Workplace(_writing(place, extent, rights, ctx), root)
        if too_many(extent.openings):
            much = f"more than {_OPENINGS:,} entries would have to be opened one by one"
            raise _refused(f"A program cannot be kept to what you may read of {uri}: {much}", ctx, rights, extent.free)
        return Workplace(replace(place, openings=extent.openings), root, extent.unlisted)

    def _refuse_essentials(self, uri: str, place: WorkFolder) -> None:
        if self._foundation.below(os.stat(place.root)).within(place.names) is not None:
            raise Forbidden(
                f"{uri} holds, or could, what this server stands on, such as its configuration, and a program that "
                "writes could replace it; let it work in a folder below",
                uri=uri,
            )

    async def refuse_beside(self, ctx: ToolContext, program: Program) -> None:
        """What a program can open wherever it works must hold nothing that is kept from its caller: raises Forbidden.
        Without Landlock that is everything."""
        walled, given = landlock.version() > 0, [Path(path) for path in readable(program)]
        why = "its reads cover a folder of which you may not read all" if walled else "this machine has no Landlock"
        message = f"The program cannot be kept from what you may not read: {why}"

        def covered(path: str) -> bool:
            return not walled or any(Path(os.path.realpath(path)).is_relative_to(one) for one in given)

        for root in self._roots:
            if covered(root.path):
                rights = ctx.rights()
                if not (await root.source.survey(root.number, (), rights)).whole:
                    raise _refused(message, ctx, rights)
        if any(map(covered, self._stores)) and not ctx.rights().unlimited:
            raise _refused(message, ctx, ctx.rights())

    async def refuse_changed(self, ctx: ToolContext, work: Workplace) -> None:
        """What was put there while a program ran may be nothing for its caller, and the program may have read it:
        raises Conflict, or what a look raises. What a program wrote itself is no such thing."""
        if work.place.write:
            return
        extent = await work.root.source.survey(work.root.number, work.place.names, ctx.rights())
        if any(_is_there(work.place, one) for one in _listed(work.place.openings) - _listed(extent.openings)):
            raise Conflict("What is in the folder has changed while the program ran, and some of it may be hidden")

    async def refuse_unseen(
        self, ctx: ToolContext, place: WorkFolder, paths: Sequence[str], target: str | None
    ) -> None:
        """Whatever a command is pointed at, its caller may read, and write where the command may: raises what a read of
        one byte would. A new file passes, if its folder is one that the caller sees and the command may write."""
        base = Ref.parse(address(target) if target is not None else f"{self._roots[0].scheme}://")
        for path in paths:
            names = tuple(name for name in path.split("/") if name not in ("", "."))
            ref = Ref.of(base.scheme, (*base.segments, *names), base.place.params, absolute=base.absolute)
            if place.write and not ctx.may("write", str(ref)):
                raise Forbidden(f"The command writes, and you may not write {ref}", resource=str(ref))
            if not names or await ctx.folders(str(ref)):
                continue
            try:
                await read_with(ctx, str(ref), ONE_BYTE)
            except NotFound:
                # What is hidden is told as absent too, and a link may lead to what is.
                above = str(ref._replace(segments=ref.segments[:-1]))
                if not (place.write and _is_free(place, names) and await ctx.folders(above)):
                    raise NotFound(f"Resource not found: {ref}", uri=str(ref)) from None


def too_many(openings: Sequence[Opening]) -> bool:
    """To be told to the launcher."""
    return len(openings) > _OPENINGS or sum(len(os.fsencode(opening_word(one))) for one in openings) > _WORDS


def _writing(place: WorkFolder, extent: Extent, rights: Rights, ctx: ToolContext) -> WorkFolder:
    """Who may write in a folder may make anything below it, so nothing there may be kept from the caller."""
    ref, spellings = extent.folder
    why = ""
    if not rights.all_below("write", spellings):
        why = "you may not write everything below it, or a human would be asked first"
    elif not (extent.whole and extent.steady):
        why = "below it is what you may not read, what is not served, or what may not be changed"
    if why:
        told = dict(rights.rules)
        free = [folder for folder in extent.free if rights.all_below("write", folder.spellings)]
        rights.rules = told
        raise _refused(f"A program may not write in {ref}: {why}", ctx, rights, free)
    removes = 0 if rights.all_below("delete", spellings) else REMOVE_DIR | REMOVE_FILE
    return replace(place, openings=tuple(replace(one, rights=WRITE & ~removes) for one in extent.openings))


def _refused(message: str, ctx: ToolContext, rights: Rights, free: Sequence[ServedFolder] = ()) -> Forbidden:
    by = [f"by {', '.join(rights.rules.values())}"] if rights.rules else []
    folders = [str(folder.ref) for folder in free[:_FOLDERS]]
    instead = [f"a folder that would do: {', '.join(folders)}"] if folders else []
    return Forbidden(
        "; ".join([message, *by, *instead]), agent=ctx.principal.id, rules=[*rights.rules], folders=folders
    )


def _listed(openings: Sequence[Opening]) -> set[Opening]:
    return {one for one in openings if one.rights & READ_DIR}


def _is_there(place: WorkFolder, opening: Opening) -> bool:
    return os.path.isdir(os.path.join(place.root, *place.names, *opening.names))


def _is_free(place: WorkFolder, names: tuple[str, ...]) -> bool:
    folder = os.path.join(place.root, *place.names, *names[:-1])
    return os.path.realpath(folder) == folder and not os.path.lexists(os.path.join(folder, names[-1]))


def found_in(root: CommandFolder, ref: Ref) -> str:
    """The root, if it has that folder and no link is on the way: behind one is another folder, with other rules."""
    real = os.path.realpath(root.path)
    inside = os.path.join(real, *ref.segments)
    if ref.param("root") not in (None, str(root.number + 1)):
        return ""
    return real if os.path.isdir(inside) and os.path.realpath(inside) == inside else ""
