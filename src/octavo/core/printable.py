"""Makes text safe to print: control characters, direction marks and invisible ones are written out."""

from __future__ import annotations


def visible(text: str) -> str:
    """One line: controls, line ends and formats without a sign of their own are escaped as JSON does it."""
    return text if text.isprintable() else "".join(one if one.isprintable() else escaped(one) for one in text)


def escaped(one: str) -> str:
    number = ord(one)
    if number > 0xFFFF:
        high, low = 0xD800 + ((number - 0x10000) >> 10), 0xDC00 + (number & 0x3FF)
        return f"\\u{high:04x}\\u{low:04x}"
    return f"\\u{number:04x}"
