"""What may be asked of a store, checked before it is."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.core.errors import Conflict, InvalidParams
from octavo.core.ports.stores import LARGEST_COUNT, LARGEST_HINT, LARGEST_VALUE, LONGEST_KEY, LONGEST_LIFE, MOST


def check_key(key: str) -> None:
    if not key:
        raise InvalidParams("A key of the store is empty")
    check_prefix(key)


def check_prefix(prefix: str) -> None:
    """A prefix, or the key behind which a scan goes on: either may be empty."""
    try:
        size = len(prefix.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidParams("A key of the store is no Unicode text") from None
    if size > LONGEST_KEY or "\x00" in prefix:
        raise InvalidParams(f"A key of the store has a NUL or more than {LONGEST_KEY:,} bytes")


def check_value(value: bytes) -> None:
    if len(value) > LARGEST_VALUE:
        raise InvalidParams(f"A value of the store has more than {LARGEST_VALUE:,} bytes")


def check_hint(body: bytes) -> None:
    if len(body) > LARGEST_HINT:
        raise InvalidParams(f"A hint has more than {LARGEST_HINT:,} bytes")


def check_life(seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds <= LONGEST_LIFE:
        raise InvalidParams("An end has to be in the future, and within ten years")


def check_count(by: int) -> None:
    if not -LARGEST_COUNT <= by <= LARGEST_COUNT:
        raise InvalidParams("A count is too large")


def check_limit(limit: int) -> None:
    if not 1 <= limit <= MOST:
        raise InvalidParams(f"A limit has to be between 1 and {MOST:,}")


def check_bodies(bodies: Sequence[bytes]) -> None:
    if not 1 <= len(bodies) <= MOST:
        raise InvalidParams(f"Between 1 and {MOST:,} records are appended at once")
    for body in bodies:
        check_value(body)


def check_keep(keep: int) -> None:
    if keep < 0:
        raise InvalidParams("A journal cannot keep less than nothing")


def counted(value: bytes) -> int | None:
    """The number that `increment` left, or None for a value of another kind."""
    digits = value.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 16:
        return None
    number = int(value)
    return number if abs(number) <= LARGEST_COUNT and str(number).encode() == value else None


def added(value: bytes | None, by: int) -> int:
    """What a count becomes. Raises Conflict for what is no count, and beyond the largest."""
    before = 0 if value is None else counted(value)
    if before is None:
        raise no_count()
    if abs(before + by) > LARGEST_COUNT:
        raise too_far()
    return before + by


def no_count() -> Conflict:
    return Conflict("What is kept there is no count")


def too_far() -> Conflict:
    return Conflict("The count would be too large")


def beyond(prefix: str) -> str:
    """What is, in byte order, behind every key that begins with the prefix, and before every other that is behind."""
    for place in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[place])
        if point < 0x10FFFF:
            return prefix[:place] + chr(0xE000 if point == 0xD7FF else point + 1)
    return "\U0010ffff" * LONGEST_KEY


def clamped(number: int) -> int:
    """A number of a journal that every store can compare with its own."""
    return max(0, min(number, 2**63 - 1))
