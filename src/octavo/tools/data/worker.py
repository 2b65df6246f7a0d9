"""The process in which data of strangers are worked on. Started by `child`, never imported by the server.

It limits itself before it reads the first byte: memory, processor time, no files written; and once its modules are
there, no file and no connection can be opened at all. It does one piece of work and ends.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from octavo.core.errors import InvalidParams, OctavoError, SourceUnavailable, TooLarge
from octavo.core.sizes import exactly
from octavo.tools.data.child import LENGTH

Answer: TypeAlias = tuple[Mapping[str, Any], bytes]
Job: TypeAlias = Callable[[Mapping[str, Any], Sequence[bytes]], Answer]

_BEHIND = 5  # how far behind others it stands in line for the processor, those who answer first of all


def main() -> None:
    memory, seconds = json.loads(sys.argv[1])
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not stand in the answer
    os.nice(_BEHIND)
    _limit(memory, seconds)
    (length,) = LENGTH.unpack(_exactly(LENGTH.size))
    header = json.loads(_exactly(length))
    inputs = [_exactly(size) for size in header["sizes"]]
    try:
        job = _prepared(header)
        _seal(out)
        answer, body = job(header, inputs)
        raw = json.dumps(answer).encode()
        if len(raw) + len(body) > header["max_bytes"]:
            size = f"{len(raw) + len(body):,}"
            raise TooLarge(f"The result has {size} bytes, and {header['max_bytes']:,} is the most: ask for less")
    except OctavoError as error:
        raw, body = _told(type(error), error.message)
    except MemoryError:
        raw, body = _told(TooLarge, "That needs more memory than is allowed; ask for less")
    except RecursionError:
        raw, body = _told(InvalidParams, "The data are nested too deep")
    except UnicodeEncodeError:
        raw, body = _told(InvalidParams, "A text holds half a character, which cannot be written: take it out")
    for piece in (LENGTH.pack(len(raw)), raw, body):
        left = memoryview(piece)
        while left:
            left = left[os.write(out, left) :]


def _told(kind: type[OctavoError], message: str) -> tuple[bytes, bytes]:
    return json.dumps({"error": kind.reason, "message": message}).encode(), b""


def _prepared(header: Mapping[str, Any]) -> Job:
    """With everything imported that it will need."""
    from octavo.tools.data import formats

    if "parquet" in header["formats"]:
        try:
            import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401
        except ImportError:
            raise SourceUnavailable("Parquet needs an extra: install Octavo with its extra data") from None
    formats.prepare(header["formats"])
    match header["do"]:
        case "convert":
            from octavo.tools.data.jobs import convert as job
        case "validate":
            from octavo.tools.data.jobs import validate as job
        case "texts":
            from octavo.tools.data.sight import texts as job
        case "query":
            from octavo.tools.data.sql import query as job
        case _:
            from octavo.tools.data.chart import prepare
            from octavo.tools.data.profiles import profile as job

            prepare()
    return job


def _limit(memory: int, seconds: float) -> None:
    for what, most, ended in (
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_CPU, math.ceil(seconds) + 1, math.ceil(seconds) + 2),  # the first one has a signal of its own
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, ceiling = resource.getrlimit(what)
        if ceiling != resource.RLIM_INFINITY:
            most, ended = min(most, ceiling), min(ended, ceiling)
        resource.setrlimit(what, (most, ended))


def _seal(last: int) -> None:
    """No descriptor after the last, and it stays so: nothing can be opened any more."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, last + 1))


def _exactly(count: int) -> bytes:
    found = exactly(0, count)
    if found is None:
        sys.exit(1)  # the parent is gone
    return found


if __name__ == "__main__":
    main()
