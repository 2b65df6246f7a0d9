"""Old audit chains: whole ones are forgotten, oldest first, when they are too old or all together take too much room.

Every process begins a chain of its own, so an editor that is started ten times a day would fill the folder
for ever. Only chains that have ended are touched: closed in good order, or left by a process that is gone.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from pathlib import Path

logger = logging.getLogger(__name__)


def forget_chains(
    directory: Path,
    *,
    max_bytes: int,
    settled: float = math.inf,
    before: float | None = None,
    tell: Callable[[str, float], None] = lambda chain, written: None,
) -> list[str]:
    """Gives the names of the chains that were forgotten. A chain's name begins with its time.

    `settled` and `before` are times: what was last written after the first is neither counted nor deleted, what was
    last written before the second is too old. `tell` hears of each chain, and when it was last written, before it
    goes, and keeps it by raising.
    """
    sizes: dict[str, int] = {}
    written: dict[str, float] = {}
    for file in directory.iterdir():
        chain, _, rest = file.name.partition(".")
        if rest.endswith("jsonl"):
            status = file.stat()
            sizes[chain] = sizes.get(chain, 0) + status.st_size
            written[chain] = max(written.get(chain, 0.0), status.st_mtime)
    sizes = {chain: size for chain, size in sizes.items() if written[chain] <= settled}
    surplus = sum(sizes.values()) - max_bytes
    forgotten = []
    for chain in sorted(sizes):
        too_old = before is not None and written[chain] < before
        if (surplus > 0 or too_old) and _has_ended(directory, chain):
            tell(chain, written[chain])
            # The head first: without it what is left after a kill looks like a chain that never closed.
            for file in sorted(directory.glob(f"{chain}.*"), key=lambda one: one.suffix != ".head"):
                file.unlink(missing_ok=True)
            surplus -= sizes[chain]
            forgotten.append(chain)
    if forgotten:
        logger.warning("audit: %d old chain(s) forgotten, the oldest from %s", len(forgotten), forgotten[0][:16])
    return forgotten


def settled_before(now: float, min_age: float) -> float:
    """What `forget_chains` takes for `settled`."""
    return now - min_age if min_age else math.inf


def _has_ended(directory: Path, chain: str) -> bool:
    if (directory / f"{chain}.head").exists():
        return True
    try:
        os.kill(int(chain.split("-")[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, IndexError):  # somebody else's process, or a file of somebody else's
        return False
    return False
