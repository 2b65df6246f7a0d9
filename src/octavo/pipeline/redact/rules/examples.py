"""Tells examples from secrets: placeholder words, sequences, sentences, wrong checksums."""

from __future__ import annotations

import base64
import binascii
import re

# Python's `re` here and only here: on one found value, of bounded length, never on a document.
_STAND_IN = re.compile(
    r"changeme|change[_-]me|placeholder|example|dummy|sample|your[_-]?|my[_-]?(?:password|secret|token|key)(?![a-z])|insert|replace"
    r"|redacted|removed|hidden|masked|todo|fixme|fake|qwerty|hello_?world|deadbeef|foobar|x{4,}|\*{3,}|\.{3,}|-{4,}|_{4,}|0{6,}|12345[67]|012345|654321|abcdef|([^a])\1{5,}"
)

# Eight neighbours of an alphabet, of the digits or of a keyboard, up or down: what nobody draws by lot.
_RUN = 8
_ROWS = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "asdfghjkl")
_RUNS = tuple(
    run
    for line in _ROWS
    for row in (line, line[::-1])
    for at in range(len(line) - _RUN + 1)
    for run in {row[at : at + _RUN], row[at : at + _RUN].upper()}
)

# What people write where a random part would be. Not the words that stand together in an issuer's prefix: `access`,
# `production`, `live`.
_WORD = re.compile(
    "configuration|application|credential|incorrect|something|anything|sampling|another|correct|exactly"
    "|invalid|looking|missing|nothing|testing|webhook|without|actual|before|config|either|enough|expire"
    "|honest|length|longer|matter|please|public|random|really|secret|should|simple|string|tokens|about|again"
    "|being|check|could|every|first|hello|never|other|super|their|there|these|thing|those|token|under|until"
    "|using|valid|value|where|which|world|would|wrong|demo|goes|have|here|just|like|long|look|made|none|only"
    "|real|some|test|text|than|that|them|then|they|this|used|user|very|want|were|what|when|will|with|word",
)  # the longer first
_LEET = str.maketrans("013457", "oleast")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def says_so(text: str) -> bool:
    """Whether words in it say that it is no secret. In a long random text four letters mean nothing."""
    said = sum(len(word.group()) for word in _STAND_IN.finditer(text.lower()))
    return 12 * said >= len(text)


def is_made_up(text: str) -> bool:
    """Whether somebody wrote what an issuer would have drawn by lot. Of passwords people do just that: not for them."""
    return any(run in text for run in _RUNS) or _speaks(text) or _speaks(decoded(text + "=" * (-len(text) % 4)))


def _speaks(text: str) -> bool:
    """Whether it has words in it, plain or with digits for letters: more of them than chance gives."""
    words = _WORD.findall(text.lower().translate(_LEET))
    return len(words) > 2 and 6 * sum(map(len, words)) >= len(text)


def decoded(text: str) -> str:
    """What it is the base64 of, where that is a text; otherwise nothing."""
    if len(text) % 4 or not _BASE64.fullmatch(text):
        return ""
    try:
        return base64.b64decode(text, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
