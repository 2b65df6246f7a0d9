"""What confines the programs that callers run on this machine, found by running one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from octavo.config.load import Loaded
from octavo.core.clock import SystemClock
from octavo.core.errors import OctavoError
from octavo.core.external import Program, RunLimits
from octavo.ops.finding import Diagnosis
from octavo.tools.builtin.process.runner import ProgramRunner

_WALLS: Final = {
    "landlock": "Landlock (Linux 5.13 and later, with landlock among lsm=)",
    "network": "a network namespace (user namespaces must be allowed: sysctl user.max_user_namespaces)",
    "processes": "a process namespace, without which a program can leave daemons for a moment",
}
_LIMITS: Final = RunLimits(seconds=20)


def programs(loaded: Loaded) -> Iterator[Diagnosis]:
    """Nothing where no program may be run."""
    options = loaded.config.commands
    if "process" not in loaded.config.toolsets or not options.programs:
        return
    true = Program(path="/bin/true")
    runner = ProgramRunner([true], at_once=1, strict=False, clock=SystemClock())
    try:
        finished = asyncio.run(runner.run(true, (), limits=_LIMITS))
    except OctavoError as error:
        yield Diagnosis("commands", "problem", "no program can be run", error.message)
        return
    missing = [what for wall, what in _WALLS.items() if wall not in finished.walls]
    found = f"programs are confined by {', '.join(finished.walls) or 'their limits alone'}"
    if not missing:
        yield Diagnosis("commands", "ok", found)
        return
    required = options.confine == "require"
    yield Diagnosis("commands", "problem" if required else "less", found, f"missing: {'; '.join(missing)}")
