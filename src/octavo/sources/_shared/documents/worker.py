"""The process in which documents of strangers are read. Started by `child`, never imported by the server.

It limits itself before it sees the first byte: memory, processor time, no files written, and, while it
reads a document, no file or connection opened at all. What it cannot survive is the parent's to notice.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import sys
from collections.abc import Iterator
from typing import Any, Final

from octavo.core.errors import OctavoError, TooLarge
from octavo.core.sizes import exactly
from octavo.sources._shared.documents.convert import prepared
from octavo.sources._shared.documents.frames import LENGTHS, pack
from octavo.sources._shared.documents.model import Choice, ConversionLimits

_IN: Final = 0
_FILES: Final = 32  # while modules are imported
_BEHIND: Final = 5  # how far behind others it stands in line for the processor, those who answer first of all

Answer = tuple[dict[str, object], bytes]


def main() -> None:
    limits = ConversionLimits(*json.loads(sys.argv[1]))
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not stand among the frames
    os.nice(_BEHIND)
    _confine(limits)
    _send(out, {"ready": True})
    while (request := _receive()) is not None:
        header, body = request
        spent = False
        try:
            answer, result = _answer(header, body, limits, out)
        except OctavoError as error:
            answer, result = {"error": error.reason, "message": error.message}, b""
            spent = isinstance(error, TooLarge)
        except MemoryError:
            answer, result = {"error": TooLarge.reason, "message": "It needs more memory than is allowed"}, b""
            spent = True
        spent = spent or _touched() > limits.memory_bytes
        _send(out, {**answer, "spent": spent}, result)
        if spent:
            return


def _answer(header: dict[str, Any], body: bytes, limits: ConversionLimits, out: int) -> Answer:
    if header["do"] == "shrink":
        from octavo.sources._shared.documents.images import shrink  # heavy, and only some need it

        with _sealed(limits, out):
            image, mime = shrink(
                body, header["mime"], max_pixels=header["max_pixels"], max_bytes=header["max_bytes"], limits=limits
            )
        return {"mime": mime}, image
    run = prepared(header["mime"])
    with _sealed(limits, out):
        document = run(body, Choice(*header["choice"]), limits)
    answer: dict[str, object] = {"parts": document.parts, "truncated": document.truncated}
    return answer, document.markdown.encode("utf-8", "replace")


def _touched() -> int:
    """Bytes of memory that were ever taken into use: what is left of the address space may lie in shreds."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt * resource.getpagesize()


def _confine(limits: ConversionLimits) -> None:
    for what, most in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, ceiling = resource.getrlimit(what)
        most = most if ceiling == resource.RLIM_INFINITY else min(most, ceiling)
        resource.setrlimit(what, (most, most))


@contextlib.contextmanager
def _sealed(limits: ConversionLimits, last: int) -> Iterator[None]:
    """No descriptor after the last, so nothing can be opened; and so much processor time from now on."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    until = math.ceil(usage.ru_utime + usage.ru_stime + limits.seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    _, ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, ceiling))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, ceiling))


def _receive() -> tuple[dict[str, Any], bytes] | None:
    """None when the parent is gone or wants no more."""
    lengths = exactly(_IN, LENGTHS.size)
    if lengths is None:
        return None
    header_length, body_length = LENGTHS.unpack(lengths)
    header, body = exactly(_IN, header_length), exactly(_IN, body_length)
    if header is None or body is None:
        return None
    return json.loads(header), body


def _send(out: int, header: dict[str, object], body: bytes = b"") -> None:
    for piece in pack(header, body):
        left = memoryview(piece)
        while left:
            left = left[os.write(out, left) :]


if __name__ == "__main__":
    main()
