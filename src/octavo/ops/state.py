"""State as a whole: moved from one store to another, backed up beside a server that runs, and brought back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from octavo.app.once import changing, inside
from octavo.app.server import Octavo
from octavo.config.load import Loaded, state_directory
from octavo.config.sections.stores import Postgres, Store
from octavo.core.errors import InvalidParams, SourceUnavailable
from octavo.core.ports.stores import STORE_FILE
from octavo.stores import earlier
from octavo.stores.audit.verify import verify
from octavo.stores.backup.format import Manifest
from octavo.stores.backup.pack import pack
from octavo.stores.backup.unpack import BackupFile, opened, staged
from octavo.stores.in_use import alone
from octavo.stores.state import StateDirectory
from octavo.stores.totals import Counting, Totals, totals

if TYPE_CHECKING:
    from octavo.stores.postgres import PostgresStore
    from octavo.stores.sqlite import SQLiteStore

    Whole: TypeAlias = PostgresStore | SQLiteStore

PATIENCE: Final = 300.0  # seconds for one step of much


class Restored(Struct, frozen=True):
    manifest: Manifest
    chains: int
    broken: int  # of these, as they were when the backup was made


def move(loaded: Loaded, to: Loaded, who: str) -> Totals:
    """What the store of one configuration keeps, to the empty store of another. The source is left as it is.

    Raises Conflict where a server runs or the target is not empty, and InvalidParams where the two do not fit."""
    folder = state_directory(loaded)
    source, target = loaded.config.store, to.config.store
    if state_directory(to) != folder:
        raise InvalidParams(
            "Both configurations need one state folder, since what is kept is of use with its secret alone. It is "
            f"{folder}, and of the other one {state_directory(to)}: let state.path say the same"
        )
    if _place(source) == _place(target):
        raise InvalidParams("Both configurations name the same store, so there is nothing to move")
    if not isinstance(source, Postgres) and not (folder / STORE_FILE).exists() and not earlier.left(folder):
        raise InvalidParams(f"There is no {STORE_FILE} in {folder}, so there is nothing to move")

    fresh = not isinstance(target, Postgres) and not (folder / STORE_FILE).exists()

    async def ask(house: Octavo) -> Totals:
        kind = "postgres" if isinstance(target, Postgres) else "sqlite"
        with changing(house, who, "state move", to=kind) as learnt, alone(folder):
            moved = await _moved(source, target, folder, fresh=fresh)
            learnt["digest"] = moved.digest
        return moved

    return inside(loaded, ask)


def back_up(loaded: Loaded, file: Path, who: str, *, replace: bool) -> Manifest:
    """Store, audit log and secret into one file, whether or not servers run.

    Raises Conflict where the file is there and is not to be replaced, and OSError."""
    folder = state_directory(loaded)
    if not (folder / "secret").exists():
        raise InvalidParams(f"There is no state in {folder}, so there is nothing to back up")

    async def ask(house: Octavo) -> Manifest:
        house.home.begin()
        with changing(house, who, "state backup", file=file.name) as learnt:
            async with _opened(loaded.config.store, folder) as store:
                await earlier.take_in(store, folder)
                made = await pack(file, store, folder, replace=replace)
            learnt["digest"] = made.store.digest
        return made

    return inside(loaded, ask)


def restore(loaded: Loaded, file: Path, who: str) -> Restored:
    """Into a state folder and a store in which nothing is.

    Raises InvalidParams for a file that is no whole backup, Conflict where there is state, and OSError."""
    folder, section = state_directory(loaded), loaded.config.store
    with opened(file) as archive:
        with staged(folder) as staging:
            archive.copy_to(staging)
            asyncio.run(_restored(section, staging, archive))
        report = verify(folder / "audit", StateDirectory.known(folder).key("audit"))
        manifest = archive.manifest

    async def ask(house: Octavo) -> None:
        house.note(who, "state restore", "ok", file=file.name, digest=manifest.store.digest, made=manifest.time)

    inside(loaded, ask)
    return Restored(manifest, len(report.chains), sum(not chain.ok for chain in report.chains))


async def _moved(source: Store, target: Store, folder: Path, *, fresh: bool) -> Totals:
    """`fresh`: the file of the target is not there yet, and is not to stay where this fails."""
    async with _opened(source, folder, alone_=True) as from_:
        await earlier.take_in(from_, folder)
        counting = Counting()
        try:
            async with _opened(target, folder, alone_=True) as into:
                async with from_.dump() as portions:
                    await into.load(counting.through(portions))
                _compare(counting.told(), await totals(into))
        except BaseException:
            if fresh:
                _remove_store(folder)
            raise
    return counting.told()


async def _restored(section: Store, staging: Path, archive: BackupFile) -> None:
    async with _opened(section, staging, alone_=True) as store:
        await store.load(archive.portions())
        _compare(archive.manifest.store, await totals(store))


def _remove_store(folder: Path) -> None:
    for one in folder.glob(f"{STORE_FILE}*"):
        one.unlink(missing_ok=True)


def _compare(written: Totals, read: Totals) -> None:
    if written != read:
        raise SourceUnavailable("What was read back is not what was written: do not use that store")


@asynccontextmanager
async def _opened(section: Store, folder: Path, *, alone_: bool = False) -> AsyncGenerator[Whole]:
    """Nothing of it is mended: what is damaged stays as it is."""
    if isinstance(section, Postgres):
        from octavo.stores.postgres import PostgresStore

        url, patience = section.url.get_secret_value(), max(section.time, PATIENCE)
        async with PostgresStore(url, schema=section.tables, patience=patience, alone=alone_) as store:
            yield store
    else:
        from octavo.stores.sqlite import SQLiteStore

        async with SQLiteStore(folder, patience=PATIENCE, mends=False) as file:
            yield file


def _place(section: Store) -> tuple[str, str]:
    return (section.url.get_secret_value(), section.tables) if isinstance(section, Postgres) else ("", STORE_FILE)
