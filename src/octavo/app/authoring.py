"""New files for a handbook, in the folder that the configuration says, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from octavo.app.octavo import Octavo
from octavo.config.load import Loaded
from octavo.config.model import FileOptions, OverStore
from octavo.core.clock import SystemClock, iso
from octavo.core.errors import Forbidden, InvalidParams, NotFound
from octavo.core.ref import Ref
from octavo.sources._shared.fs.credentials import CREDENTIALS
from octavo.sources.file.addresses import FileRoot


class Created(Struct, frozen=True):
    ref: Ref
    path: Path


async def create(house: Octavo, loaded: Loaded, kind: str, name: str, title: str) -> Created:
    """Writes a starter file of a kind into its catalog.

    Raises InvalidParams where there is no such catalog or its files are in no folder of this machine, and for a name
    or title that cannot be used; Conflict for what is there already; Forbidden for a file that would not be served.
    """
    from octavo.sources.catalog.starters import starter
    from octavo.sources.file.writable import WritableFileSource

    catalogs = house.works.catalogs
    source, options = _catalog(loaded, kind, name)
    store = loaded.config.sources[options.store]
    if catalogs is None or not isinstance(store, FileOptions):
        raise InvalidParams(f"The files of {source} are in no folder: make the file where you keep them, and check it")
    catalog = catalogs.by_name[source]
    pages = await catalogs.pages()
    today = iso(SystemClock().wall())[:10]
    made = starter(catalog.declaration, kind, name, title, today, pages)
    root = store.roots[0].path
    folder = [part for part in catalog.declaration.path.split("/") if part not in ("", ".")]
    place = (*folder, *made.place)
    # The store itself is read-only for everybody else. This one makes files and replaces none: it has no journal.
    writable = WritableFileSource(
        [FileRoot(root)],
        journal=None,
        secret=house.key("etag"),
        extensions=store.extensions,
        hidden=(*CREDENTIALS, *store.hide),
        symlinks="refuse",
        scheme=store.scheme,
    )
    async with writable as files:
        try:
            await files.write(Ref.of(store.scheme, place), made.text, if_match=None, mode="create")
        except (NotFound, Forbidden):  # in the catalog's words: the store has no addresses for others
            raise Forbidden(f"{made.ref} is not written: the store serves no file of that name or place") from None
    return Created(made.ref, root.joinpath(*place))


def _catalog(loaded: Loaded, kind: str, name: str) -> tuple[str, OverStore]:
    """The one of that kind; of several, the one whose scheme the name begins with."""
    scheme = name.partition("://")[0] if "://" in name else None
    found = [
        (source, options)
        for source, options in loaded.config.sources.items()
        if isinstance(options, OverStore) and options.kind == kind and scheme in (None, options.scheme)
    ]
    if not found:
        where = f" for {scheme}://" if scheme else ""
        raise InvalidParams(f"The configuration has no source of kind: {kind}{where}")
    if len(found) > 1:
        schemes = ", ".join(f"{options.scheme}://" for _, options in found)
        raise InvalidParams(f"Several sources are of kind: {kind}. Begin the name with one of {schemes}")
    return found[0]
