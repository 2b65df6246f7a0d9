"""The messages between server and worker process: two lengths, a JSON header and bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Final

from octavo.core.sizes import MIB

LENGTHS: Final = struct.Struct(">II")
MAX_HEADER: Final = 4 * MIB


def pack(header: Mapping[str, object], body: bytes = b"") -> tuple[bytes, bytes]:
    """The beginning of the frame, and the body: joining them would copy it."""
    encoded = json.dumps(header).encode("ascii")
    return LENGTHS.pack(len(encoded), len(body)) + encoded, body
