"""Watches the files of configuration and prompts, and the keys of the store; a broken change leaves what runs."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Final

from octavo.app.configuration import load
from octavo.app.server import Octavo
from octavo.config.load import Loaded, chosen_as
from octavo.config.problems import ConfigError
from octavo.core.errors import OctavoError

logger = logging.getLogger(__name__)

KEYS_HOLD: Final = 60.0  # seconds without the store: one of them may have been revoked


async def follow(server: Octavo, loaded: Loaded) -> None:
    if loaded.file is None:
        return
    hangup = asyncio.Event()
    # A terminal that is closed ends what was typed at it, as it does every program; nobody could reload by it there.
    if sys.platform != "win32" and not (sys.stdin is not None and sys.stdin.isatty()):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)
    await follow_file(server, loaded.file, wake=hangup, before=loaded)


async def follow_file(server: Octavo, file: Path, *, wake: asyncio.Event, before: Loaded | None = None) -> None:
    """Reloads when the configuration file or a tool of its folders changes or `wake` is set, and knows other keys
    when the store does. What the command line chose `before` stays. Prompt files are loaded again when they have
    changed.

    A broken file keeps what runs.
    """
    seen, keys_known = _fingerprints(server, file), True
    while True:
        try:
            await asyncio.wait_for(wake.wait(), timeout=1.0)
            wake.clear()
        except TimeoutError:
            await _reread(server)
            if server.keyed:
                keys_known = await _rekeyed(server, complains=keys_known)
            if _fingerprints(server, file) == seen:
                continue
        seen = _fingerprints(server, file)
        # In a task, so that whatever a plugin raises there is a problem to tell and not the end of this loop.
        reloading = asyncio.ensure_future(_reload(server, file, before))
        await asyncio.wait({reloading})
        problem = reloading.exception()
        if problem is None:
            logger.warning("configuration reloaded from %s", file)
        else:
            foreign = None if isinstance(problem, OctavoError | ConfigError) else problem
            logger.error("the new configuration is not used, the old one stays:\n%s", problem, exc_info=foreign)


async def _reread(server: Octavo) -> None:
    """Prompt files that have changed."""
    problems = await server.works.prompts.refresh()
    for problem in problems or ():
        logger.log(
            logging.INFO if problem.remark else logging.WARNING, "prompt left out, or as it was before: %s", problem
        )
    if problems is not None:
        logger.info("prompts loaded again")


async def _rekeyed(server: Octavo, *, complains: bool) -> bool:
    """Whether the keys of the store could be read. It is said once that they cannot."""
    try:
        await server.rekey()
    except OctavoError as problem:
        if complains:
            logger.error("the keys of the store cannot be read, and hold for %g more seconds: %s", KEYS_HOLD, problem)
        if server.forget_keys(KEYS_HOLD):
            logger.error("the keys of the store could not be read for %g seconds: they let nobody in now", KEYS_HOLD)
        return False
    return True


async def _reload(server: Octavo, file: Path, before: Loaded | None) -> None:
    loaded = load(file)
    await server.reload(loaded if before is None else chosen_as(before, loaded))


def _fingerprints(server: Octavo, file: Path) -> list[tuple[int, int, int] | None]:
    """Of the configuration, and of every file in its tool folders."""
    own = server.works.config.tools.dirs
    if not own:
        return [_fingerprint(file)]
    from octavo.tools.folder import watched

    return [_fingerprint(one) for one in (file, *watched(own))]


def _fingerprint(file: Path) -> tuple[int, int, int] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
