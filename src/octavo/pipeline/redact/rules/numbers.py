"""Second looks at numbers: check digits, dates, ranges."""

from __future__ import annotations

import datetime
import ipaddress
import re

# First digits of the networks, by the count of digits.
_CARDS = {
    15: ((34, 34), (37, 37)),
    16: ((4, 4), (51, 55), (2221, 2720), (6011, 6011), (644, 649), (65, 65), (3528, 3589), (62, 62), (9, 9)),
}
_IBAN = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "CH": 21,
    "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18,
    "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23,
    "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27,
    "MD": 24, "ME": 22, "MK": 19, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TN": 24, "TR": 26, "UA": 29,
    "VA": 22, "VG": 24, "XK": 20, "BI": 27, "BY": 28, "DJ": 27, "FK": 18, "HN": 28, "IQ": 23, "LC": 32, "LY": 25,
    "MN": 20, "NI": 28, "OM": 23, "RU": 33, "SC": 31, "SD": 18, "SO": 23, "ST": 25, "SV": 28, "TL": 23, "YE": 30,
}  # fmt: skip
_CENTURY = {9: 1800, 0: 1800, 1: 1900, 2: 1900, 5: 1900, 6: 1900, 3: 2000, 4: 2000, 7: 2000, 8: 2000}
_EXAMPLES = ("@example.", ".example.com", "@test.", "@localhost", "@sha256", "@domain.", "@email.")
_NO_HOSTS = (".example", ".invalid", ".test", ".local", ".png", ".jpg", ".svg", ".js", ".css", ".py")
_NO_PEOPLE = frozenset(("noreply", "no-reply", "donotreply", "do-not-reply", "git", "mailer-daemon", "postmaster"))


def _digits(text: str) -> list[int]:
    return [int(c) for c in text if c.isdigit()]


def is_registration_number(text: str) -> bool:
    """A Korean resident (or foreigner) registration number: a date that exists, and the check digit.

    Numbers given out since October 2020 end in random digits, so for who was born then the date must do.
    """
    digits = _digits(text)
    if len(digits) != 13:
        return False
    year, month, day = (digits[i] * 10 + digits[i + 1] for i in (0, 2, 4))
    try:
        born = datetime.date(_CENTURY[digits[6]] + year, month, day)
    except ValueError:
        return False
    if born >= datetime.date(2020, 10, 5):
        return True
    total = sum(digit * weight for digit, weight in zip(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=False))
    base = 13 if 5 <= digits[6] <= 8 else 11  # 5 to 8: a foreigner's
    return (base - total % 11) % 10 == digits[12]


def is_business_number(text: str) -> bool:
    """A Korean business registration number: ten digits, the last of which checks the others."""
    digits = _digits(text)
    if len(digits) != 10 or digits[:3] == [0, 0, 0] or len(set(digits)) == 1:
        return False
    total = sum(digit * weight for digit, weight in zip(digits, (1, 3, 7, 1, 3, 7, 1, 3, 5), strict=False))
    return (10 - (total + digits[8] * 5 // 10) % 10) % 10 == digits[9]


def is_card_number(text: str) -> bool:
    """A network's range, and the check digit of Luhn."""
    digits = _digits(text)
    number = "".join(map(str, digits))
    known = any(first <= int(number[: len(str(first))]) <= last for first, last in _CARDS.get(len(digits), ()))
    return known and _has_check_digit(digits)


def is_said_to_be_card(text: str) -> bool:
    """Where a word in front of it says so the check digit is enough: networks have more ranges than a list."""
    return _has_check_digit(_digits(text))


def _has_check_digit(digits: list[int]) -> bool:
    """Luhn's, of a number that is no example."""
    if len(set(digits)) <= 2:
        return False
    doubled = [digit * 2 if place % 2 else digit for place, digit in enumerate(reversed(digits))]
    return sum(digit - 9 if digit > 9 else digit for digit in doubled) % 10 == 0


def is_iban(text: str) -> bool:
    """The length that its country has, and the remainder of 97."""
    plain = text.replace(" ", "").replace("-", "").upper()
    if _IBAN.get(plain[:2]) != len(plain):
        return False
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def is_email(text: str) -> bool:
    """Somebody's: not an example, not a machine's."""
    name, _, host = text.lower().rpartition("@")
    if name in _NO_PEOPLE or host.endswith(_NO_HOSTS):
        return False
    return not any(part in f"@{host}" for part in _EXAMPLES)


def is_korean_phone(text: str) -> bool:
    """With its separators, or a mobile number without; no sequence that stands in books as an example."""
    digits = "".join(map(str, _digits(text))).removeprefix("82").lstrip("0")
    if len(set(digits[-8:])) <= 2 or digits.endswith("12345678"):
        return False
    return 8 <= len(digits) <= 11 and (not text.isdigit() or digits.startswith("1"))


def is_phone(text: str) -> bool:
    """With the code of its country: enough digits, in groups as numbers have them."""
    digits = _digits(text)
    groups = re.findall(r"\d+", text)
    if sum(len(group) == 1 for group in groups) > 2 or (len(groups) == 1 and len(digits) < 9):
        return False
    return 7 <= len(digits) <= 15 and _is_somebodys(digits)


def is_home_phone(text: str) -> bool:
    """Without the code of a country: by its groups alone, so they must be of one kind; by fours go accounts."""
    digits, groups = _digits(text), re.findall(r"\d+", text)
    if len(groups[0]) == len(groups[1]) == 4 or digits[-8:] == [1, 2, 3, 4, 5, 6, 7, 8]:
        return False
    return 9 <= len(digits) <= 11 and len(set(re.sub(r"\d", "", text))) == 1 and _is_somebodys(digits)


def is_said_to_be_phone(text: str) -> bool:
    digits = _digits(text)
    return 6 <= len(digits) <= 15 and _is_somebodys(digits)


def _is_somebodys(digits: list[int]) -> bool:
    """No plain sequence, and none of the numbers that are kept for films and books: 555-0100 to 555-0199."""
    return len(set(digits)) > 3 and digits[-7:-2] != [5, 5, 5, 0, 1]


def is_public_address(text: str) -> bool:
    """An address of the internet. Private networks and documentation say nothing about a person."""
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return False
