"""From bytes to text and back: a wrong guess is worse than bytes, and nothing is written that was not read."""

from __future__ import annotations

from octavo.sources._shared.text.declared import HEAD, declared
from octavo.sources._shared.text.decoding import (
    ORDER,
    Decoded,
    cut_at_characters,
    decode,
    decode_as,
    decoded,
    preferring,
)
from octavo.sources._shared.text.encoding import encode

__all__ = [
    "HEAD", "ORDER", "Decoded", "cut_at_characters", "declared", "decode", "decode_as", "decoded", "encode",
    "preferring",
]  # fmt: skip
