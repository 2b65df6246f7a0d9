"""What earlier versions kept in files of their own, taken into the store once: approvals, keys, questions.

What was taken in is renamed, and the store knows of it: a file that is brought back brings no key back that was revoked
meanwhile. Several processes may try at once, and one may die in between.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from octavo.core.approval import Approval
from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import SourceUnavailable
from octavo.core.fair import in_thread
from octavo.core.forms import Asked
from octavo.core.ports.stores import Store
from octavo.core.sizes import MIB
from octavo.stores.keys import StoredKey, put
from octavo.stores.state import read_whole, turn
from octavo.stores.waiting import Turn, live

logger = logging.getLogger(__name__)

KINDS: Final[Mapping[str, type[Approval] | type[Asked] | type[StoredKey]]] = {
    "approvals": Approval,
    "keys": StoredKey,
    "questions": Asked,
}
LARGEST: Final = 64 * MIB
_TAKEN: Final = "earlier/"
_ID: Final = re.compile(r"[0-9A-Za-z_-]{1,64}\Z", re.ASCII)
PATIENCE: Final = 10.0  # seconds for which another process is waited for


def left(folder: Path) -> list[str]:
    """What still stands in files of their own."""
    return [what for what in KINDS if (folder / f"{what}.json").exists()]


async def take_in(store: Store, folder: Path, *, clock: Clock | None = None) -> None:
    """Raises SourceUnavailable for a file that is damaged: it is left as it is, and somebody has to look at it."""
    now = (clock or SystemClock()).wall()
    for what in left(folder):
        found = await in_thread(_read, folder, what)
        async with store.transaction() as within:
            if not await within.keys.compare_and_set(f"{_TAKEN}{what}", None, b"1"):  # one that was brought back
                found = []
            for one in found:
                if isinstance(one, StoredKey):
                    await put(within.keys, one)
                elif isinstance(one, Approval) and one.live(now):
                    await Turn[Approval](within.keys, f"{what}/", []).put(one, now)
                elif isinstance(one, Asked) and live(one, now):
                    await Turn[Asked](within.keys, f"{what}/", []).put(one, now)
        await in_thread(_set_aside, folder, what)
        said = "is in the store now" if found else "was taken in before, or is nothing: it is not used"
        logger.warning("What %s.json held %s; it is kept as %s.json.taken", what, said, what)


def _read(folder: Path, what: str) -> list[Approval | Asked | StoredKey]:
    try:
        with turn(folder / "lock", seconds=PATIENCE):
            body = read_whole(folder / f"{what}.json", LARGEST)
        if body is None:  # another process was faster
            return []
        document = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        if msgspec.json.decode(document["version"], type=int) != 1:
            raise SourceUnavailable(f"The {what} of before were written by a newer Octavo")
        found = [msgspec.convert(one, KINDS[what]) for one in msgspec.json.decode(document[what], type=list)]
        if not all(_ID.match(one.id) for one in found):
            raise KeyError
        return found
    except (msgspec.MsgspecError, KeyError):
        raise SourceUnavailable(
            f"The file {what}.json of the state folder is damaged; bring it back, or remove it"
        ) from None
    except OSError as error:  # a TimeoutError is one
        raise SourceUnavailable(f"The file {what}.json of the state folder cannot be read: {error.strerror}") from None


def _set_aside(folder: Path, what: str) -> None:
    try:
        os.replace(folder / f"{what}.json", folder / f"{what}.json.taken")
    except FileNotFoundError:  # by another process
        pass
    except OSError as error:
        raise SourceUnavailable(
            f"The file {what}.json of the state folder cannot be renamed: {error.strerror}"
        ) from None
