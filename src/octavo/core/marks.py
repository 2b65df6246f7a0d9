"""The mark that replaces what redaction hides: `[redacted:rule:hmac8]`.

Redaction makes it; whoever must not take it for a text that somebody wrote knows it by what stands here.
"""

from __future__ import annotations

from typing import Final

START: Final = "[redacted:"
NAME: Final = r"[a-z0-9][a-z0-9-]{0,40}"  # of a rule
DIGITS: Final = 8  # of the digest, by which equal secrets are known for equal
MARK: Final = rf"\[redacted:{NAME}:[0-9a-f]{{{DIGITS}}}\]"  # for any engine of expressions


def mark(rule: str, digest: str) -> str:
    return f"{START}{rule}:{digest}]"
