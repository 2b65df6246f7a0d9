"""Where a command works: a folder that is served and that its caller may see."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from octavo.core.errors import Forbidden, InvalidParams, NotFound
from octavo.core.foundation import Foundation
from octavo.core.outside import Place
from octavo.core.ref import Ref
from octavo.tools.builtin.addresses import address, with_parameter
from octavo.tools.context import ToolContext


class Root(Struct, frozen=True):
    """A folder that is served, and by which addresses."""

    scheme: str
    path: str
    write: bool


class Places:
    def __init__(self, roots: Sequence[Root], foundation: Foundation) -> None:
        """In the order in which they are looked into."""
        self._roots, self._foundation = roots, foundation

    async def place(self, ctx: ToolContext, target: str | None, *, write: bool) -> Place:
        """Raises NotFound or Forbidden, as a listing by the caller would, InvalidParams for what is no folder."""
        if not self._roots:
            raise InvalidParams("No folder is served in which a command could work")
        uri = address(target) if target is not None else f"{self._roots[0].scheme}://"
        seen = await ctx.folders(uri)
        if not seen:
            raise NotFound(f"Resource not found: {uri}", uri=uri)
        ref = ctx.canonical(Ref.parse(uri))
        found = (_found(root, ref.segments) for root in self._roots if root.scheme == ref.scheme)
        write = write and ctx.may("write", uri)
        place = next((Place(place, ref.segments, write and may) for place, may in found if place), None)
        if place is None:
            raise InvalidParams(f"{uri} is no folder in which a command can work; a link to one is none", uri=uri)
        if place.write and self._foundation.below(os.stat(place.root)).within(place.names) is not None:
            raise Forbidden(
                f"{uri} holds, or could, what this server stands on, such as its configuration, and a program that "
                "writes could replace it; let it work in a folder below",
                uri=uri,
            )
        return place

    async def refuse_unseen(self, ctx: ToolContext, place: Place, paths: Sequence[str], target: str | None) -> None:
        """Whatever a command is pointed at, its caller may read, and write where the command may: raises what a read of
        one byte would. A new file passes, if its folder is one that the caller sees and the command may write."""
        base = Ref.parse(address(target) if target is not None else f"{self._roots[0].scheme}://")
        for path in paths:
            names = tuple(name for name in path.split("/") if name not in ("", "."))
            ref = Ref.of(base.scheme, (*ctx.canonical(base).segments, *names))
            if place.write and not ctx.may("write", str(ref)):
                raise Forbidden(f"The command writes, and you may not write {ref}", resource=str(ref))
            if not names or await ctx.folders(str(ref)):
                continue
            try:
                await ctx.read(with_parameter(str(ref), "range=0-0"))
            except NotFound:
                # What is hidden is told as absent too, and a link may lead to what is.
                above = str(Ref.of(ref.scheme, ref.segments[:-1]))
                if not (place.write and _is_free(place, names) and await ctx.folders(above)):
                    raise NotFound(f"Resource not found: {ref}", uri=str(ref)) from None


def _is_free(place: Place, names: tuple[str, ...]) -> bool:
    folder = os.path.join(place.root, *place.names, *names[:-1])
    return os.path.realpath(folder) == folder and not os.path.lexists(os.path.join(folder, names[-1]))


def _found(root: Root, names: tuple[str, ...]) -> tuple[str, bool]:
    """The root, if it has that folder and no link is on the way: behind one is another folder, with other rules."""
    real = os.path.realpath(root.path)
    inside = os.path.join(real, *names)
    return (real if os.path.isdir(inside) and os.path.realpath(inside) == inside else ""), root.write
