"""New files for a handbook, in the folder that the configuration says, and nowhere else."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import cast

from msgspec import Struct

from octavo.app.server import Octavo
from octavo.config.load import Loaded
from octavo.config.sections.source import Options
from octavo.core.clock import SystemClock, iso
from octavo.core.errors import Forbidden, InvalidParams, NotFound
from octavo.core.ports.source import Writes
from octavo.core.ref import Ref


class Created(Struct, frozen=True):
    ref: Ref
    path: Path


async def create(server: Octavo, loaded: Loaded, kind: str, name: str, title: str) -> Created:
    """Writes a starter file of a kind into its catalog.

    Raises InvalidParams where there is no such catalog or its files are in no folder of this machine, and for a name
    or title that cannot be used; Conflict for what is there already; Forbidden for a file that would not be served.
    """
    from octavo.sources.catalog.starters import starter

    catalogs = server.works.catalogs
    source, options = _catalog(loaded, kind, name)
    store = None if options.over is None else loaded.config.sources[options.over.store]
    if catalogs is None or store is None or store.record.writer is None:
        raise InvalidParams(f"The files of {source} are in no folder: make the file where you keep them, and check it")
    catalog = catalogs.by_name[source]
    pages = await catalogs.pages()
    today = iso(SystemClock().wall())[:10]
    made = starter(catalog.declaration, kind, name, title, today, pages)
    folder = [part for part in catalog.declaration.path.split("/") if part not in ("", ".")]
    place = (*folder, *made.place)
    writable = store.record.writer(store)  # the store itself is read-only for everybody else
    async with AsyncExitStack() as stack:
        files = await stack.enter_async_context(cast("AbstractAsyncContextManager[Writes]", writable))
        try:
            await files.write(Ref.of(store.scheme, place), made.text, if_match=None, mode="create")
        except (NotFound, Forbidden):  # in the catalog's words: the store has no addresses for others
            raise Forbidden(f"{made.ref} is not written: the store serves no file of that name or place") from None
    return Created(made.ref, store.folders[0].path.joinpath(*place))


def _catalog(loaded: Loaded, kind: str, name: str) -> tuple[str, Options]:
    """The one of that kind; of several, the one whose scheme the name begins with."""
    scheme = name.partition("://")[0] if "://" in name else None
    found = [
        (source, options)
        for source, options in loaded.config.sources.items()
        if options.kind == kind and scheme in (None, options.scheme)
    ]
    if not found:
        where = f" for {scheme}://" if scheme else ""
        raise InvalidParams(f"The configuration has no source of kind: {kind}{where}")
    if len(found) > 1:
        schemes = ", ".join(f"{options.scheme}://" for _, options in found)
        raise InvalidParams(f"Several sources are of kind: {kind}. Begin the name with one of {schemes}")
    return found[0]
