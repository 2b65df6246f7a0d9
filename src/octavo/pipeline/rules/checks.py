"""Second looks: what a pattern found, and whether it deserves to be hidden."""

from __future__ import annotations

import base64
import binascii
import datetime
import math
import re
from collections import Counter

MIN_LENGTH = 8

# Python's `re` here and only here: on one found value, of bounded length, never on a document.
_TEMPLATE = re.compile(r"\$\{|\$[A-Za-z_(]|\{\{|<[^>]*>|%\(|%[A-Z_]{2,}%|#\{|\[redacted:")
_REFERENCE = re.compile(r"(?:process\.env|os\.environ|os\.getenv|env|file|vault|ref|secret|arn)[.:\[(]", re.IGNORECASE)
_DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+\Z")
_PLACE = re.compile(r"(?:https?:/|/|\./|\.\./|~/|[A-Za-z]:\\)")
_STAND_IN = re.compile(
    r"changeme|change[_-]me|placeholder|example|dummy|sample|your[_-]?|my[_-]?(?:password|secret|token|key)|insert|replace"
    r"|redacted|removed|hidden|masked|todo|fixme|x{4,}|\*{3,}|\.{3,}|-{4,}|_{4,}|0{6,}|1234567|abcdefg",
    re.IGNORECASE,
)
_WORDS = frozenset(
    {
        "admin", "api_key", "apikey", "bytes", "default", "empty", "false", "foobar", "guest", "key", "nil", "none",
        "null", "optional", "pass", "passphrase", "passwd", "password", "postgres", "pwd", "required", "root",
        "secret", "str", "string", "test", "testing", "text", "token", "true", "undefined", "user", "username",
    }
)  # fmt: skip


def entropy(text: str) -> float:
    """Shannon's, in bits per character."""
    if not text:
        return 0.0
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def is_placeholder(text: str) -> bool:
    """Whether the text stands where a secret would: a variable, a blank to fill in, an example."""
    plain = text.strip("\"'`")
    if plain.lower() in _WORDS or len(set(plain)) <= 2:
        return True
    return bool(_TEMPLATE.search(plain) or _STAND_IN.search(plain) or _REFERENCE.match(plain))


def is_real(text: str) -> bool:
    """For tokens whose shape alone says what they are: anything but a documented example."""
    return not text.upper().endswith("EXAMPLE") and len(set(text)) > 6


def is_varied(text: str) -> bool:
    """For long random values that only their surroundings give away."""
    return not is_placeholder(text) and entropy(text) >= 3.0


def is_password(text: str) -> bool:
    """For `password: value`. Rather misses a weak password than hides a word, a number or a line of code."""
    if not MIN_LENGTH <= len(text) <= 512 or is_placeholder(text) or _DOTTED_NAME.match(text) or _PLACE.match(text):
        return False
    has_letter, has_digit = any(c.isalpha() for c in text), any(c.isdigit() for c in text)
    has_other = any(not c.isalnum() and c not in "_-./:" for c in text)
    return has_letter and (has_digit or has_other) and entropy(text) >= 2.5


def is_url_password(text: str) -> bool:
    return not is_placeholder(text)


def is_private_key(text: str) -> bool:
    """Not a document that only shows how such a block looks."""
    body = re.sub(r"-----[A-Z0-9 ]+-----|\\n|\\r", "", text)
    return sum(c.isalnum() or c in "+/=" for c in body) >= 40 and len(set(body)) > 16


def is_encoded_private_key(text: str) -> bool:
    beginning = text[:80]
    try:
        return b"PRIVATE KEY" in base64.b64decode(beginning[: len(beginning) // 4 * 4])
    except (binascii.Error, ValueError):
        return False


def is_registration_number(text: str) -> bool:
    """A Korean resident (or foreigner) registration number: a date that exists, and the check digit.

    Numbers given out since October 2020 end in random digits, so for who was born then the date must do.
    """
    digits = [int(c) for c in text if c.isdigit()]
    if len(digits) != 13:
        return False
    century = {9: 1800, 0: 1800, 1: 1900, 2: 1900, 5: 1900, 6: 1900, 3: 2000, 4: 2000, 7: 2000, 8: 2000}[digits[6]]
    year, month, day = (digits[i] * 10 + digits[i + 1] for i in (0, 2, 4))
    try:
        born = datetime.date(century + year, month, day)
    except ValueError:
        return False
    if born >= datetime.date(2020, 10, 5):
        return True
    total = sum(digit * weight for digit, weight in zip(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=False))
    base = 13 if 5 <= digits[6] <= 8 else 11  # 5 to 8: a foreigner's
    return (base - total % 11) % 10 == digits[12]
