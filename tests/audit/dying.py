"""The real program, which kills itself at one point of its n-th change:

    python -m tests.audit.dying POINT N serve …

`intent`: before a change is announced. `amid intent`, `amid outcome`: with half of the record written. `act`: it is
announced, and not begun. `outcome`: made, and its outcome not stored. `answer`: its outcome stored, and not told.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from octavo.cli import main
from octavo.stores.audit import ledger
from octavo.stores.audit.ledger import FileLedger

POINTS = ("intent", "amid intent", "act", "amid outcome", "outcome", "answer")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(work: Callable[..., Any], before: str, amid: str, after: str, point: str, number: int) -> Callable[..., Any]:
    seen = 0
    write_all = ledger.write_all

    def halved(descriptor: int, body: bytes) -> None:
        os.write(descriptor, body[: len(body) // 2])
        die()

    def worked(self: FileLedger, record: bytes, **more: Any) -> Any:
        nonlocal seen
        seen += more.get("now", True)
        here = seen == number and more.get("now", True)
        if here and point == before:
            die()
        ledger.write_all = halved if here and point == amid else write_all
        done = work(self, record, **more)
        if here and point == after:
            die()
        return done

    return worked


if __name__ == "__main__":
    point, number = sys.argv[1], int(sys.argv[2])
    FileLedger.intend = dying(FileLedger.intend, "intent", "amid intent", "act", point, number)  # type: ignore[method-assign]
    FileLedger.settle = dying(FileLedger.settle, "outcome", "amid outcome", "answer", point, number)  # type: ignore[method-assign]
    sys.argv = ["octavo", *sys.argv[3:]]
    main()
