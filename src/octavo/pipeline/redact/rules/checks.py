"""Second looks at what a pattern found: whether it is a secret after all, or an example.

Those at numbers are in `numbers`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections import Counter

from octavo.core.marks import START

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


MIN_LENGTH = 8
# Python's `re` here and only here: on one found value, of bounded length, never on a document.
_TEMPLATE = re.compile(r"\$\{|\$[A-Za-z_(]|\{\{|<[^>]*>|%\(|%[A-Z_]{2,}%|#\{|" + re.escape(START))
_REFERENCE = re.compile(r"(?:process\.env|os\.environ|os\.getenv|env|file|vault|ref|secret|arn)[.:\[(]", re.IGNORECASE)
_BLANK = re.compile(r"\{\w+\}\Z")  # of a format string
_IDENTIFIER = re.compile(r"[a-z]+\d{0,3}(?:_[a-z]+\d{0,3}){2,}\Z")
_DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+\Z")
_MIXED = re.compile(r"[^\W\d_].*[\d]|[\d].*[^\W\d_]|[^\W\d_].*[^\w./:-]|[^\w./:-].*[^\W\d_]")
_PLACE = re.compile(r"(?:https?:/|/|\./|\.\./|~/|[A-Za-z]:\\)")
# Keys that go to every browser, by how their issuers mark them: public whatever the name beside them says.
_PUBLIC = re.compile(
    r"pk(?:_live_|_test_|\.)|pub(?:key)?-|(?:live|test)_pub_|FLWPUBK|phc_|NRBR-|sb_publishable_|pdl_ctok_|ssh-(?:rsa|ed25519)"
)
_WORDS = frozenset(
    {
        "admin", "api_key", "apikey", "bytes", "default", "empty", "false", "foobar", "guest", "key", "mongodb",
        "mysql", "nil", "none", "null", "optional", "pass", "passphrase", "passwd", "password", "postgres", "pwd",
        "required", "root", "secret", "str", "string", "test", "testing", "text", "token", "true", "undefined", "user",
        "username",
    }
)  # fmt: skip
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def has_bech32_checksum(text: str) -> bool:
    """BIP 173: what stands in front of the last 1, then data of which the last six letters check the whole."""
    name, _, data = text.lower().rpartition("1")
    places = [_BECH32.find(letter) for letter in data]
    if -1 in places:
        return False
    check = 1
    for value in (*(ord(letter) >> 5 for letter in name), 0, *(ord(letter) & 31 for letter in name), *places):
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_BECH32_GENERATOR):
            if top >> bit & 1:
                check ^= generator
    return check == 1


def has_base58_checksum(text: str) -> bool:
    """Base58Check, as wallets have it: four bytes of a double SHA-256 at the end."""
    number = 0
    for letter in text:
        place = _BASE58.find(letter)
        if place < 0:
            return False
        number = number * 58 + place
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def has_crc16(text: str) -> bool:
    """As Stellar and NATS have it: base32, of which the last two bytes are the CRC-16 (XMODEM) of those before."""
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        return False
    return binascii.crc_hqx(raw[:-2], 0) == int.from_bytes(raw[-2:], "little")


def entropy(text: str) -> float:
    """Shannon's, in bits per character."""
    if not text:
        return 0.0
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def is_placeholder(text: str) -> bool:
    """Whether the text stands where a secret would: a variable, a blank to fill in, an example."""
    plain = text.strip("\"'`")
    if plain.lower().rstrip("0123456789!") in _WORDS or len(set(plain)) <= 2:
        return True
    return bool(_TEMPLATE.search(plain) or says_so(plain) or _REFERENCE.match(plain) or _BLANK.match(plain))


def is_real(text: str) -> bool:
    """For tokens whose shape alone says what they are: anything but a documented example."""
    return could_be_real(text) and not is_made_up(text)


def could_be_real(text: str) -> bool:
    """The same where whoever runs the issuer may also choose a token's text."""
    return len(set(text)) > 6 and not says_so(text) and (len(text) < 20 or entropy(text) >= 3.0)


def is_mixed(text: str) -> bool:
    """For tokens of one word behind a short prefix: several digits among the letters, as names hardly have them."""
    digits = sum(c.isdigit() for c in text)
    return is_real(text) and digits >= 3 and len(text) - digits >= 3 and entropy(text) >= 3.0


def is_cased(text: str) -> bool:
    """As `is_mixed`, where capitals and small letters are both used."""
    return is_mixed(text) and text.lower() != text and text.upper() != text


def ends_mixed(text: str) -> bool:
    """For tokens of several parts: the last is the secret, the others are numbers of who has it."""
    last = text.rpartition("-")[2]
    return is_real(text) and any(map(str.isalpha, last)) and (len(last) >= 16 or any(map(str.isdigit, last)))


def ends_cased(text: str) -> bool:
    """As `is_cased`, of what stands behind the last colon."""
    return is_real(text) and is_cased(text.rpartition(":")[2])


def is_jwt(text: str) -> bool:
    """With a header that can be read, and no signature that says it is none."""
    header, _, signature = text.partition(".")[0], *text.rpartition(".")[1:]
    try:
        told = base64.urlsafe_b64decode(header + "=" * (-len(header) % 4))
    except binascii.Error:
        return False
    return told.rstrip().endswith(b"}") and told.isascii() and not (signature and says_so(signature))


def is_varied(text: str) -> bool:
    """For long random values that only their surroundings give away."""
    return not is_placeholder(text) and entropy(text) >= 3.0


def is_password(text: str) -> bool:
    """For `password: value`. Rather misses a weak password than hides a word, a number or a line of code."""
    if not MIN_LENGTH <= len(text) <= 512 or _PLACE.match(text) or _PUBLIC.match(text) or not _MIXED.search(text):
        return False
    return not (_DOTTED_NAME.match(text) or is_placeholder(text) or _spells_words(text)) and entropy(text) >= 2.5


def is_random(text: str) -> bool:
    """For a value in a list or a call, where its name says less: long, with digits among letters."""
    if is_placeholder(text) or _PLACE.match(text) or _PUBLIC.match(text):
        return False
    return is_mixed(text) and not _IDENTIFIER.match(text)


def _spells_words(text: str) -> bool:
    """Whether it is base64 of what is no password itself, as books about secrets have it."""
    plain = decoded(text).strip()
    if not plain.isprintable() or not plain:
        return False
    return plain.count(" ") > 1 or not _MIXED.search(plain.replace(" ", "")) or is_placeholder(plain)


def is_registry_auth(text: str) -> bool:
    """`user:password` in base64, or a token."""
    return is_varied(text) and not is_placeholder(decoded(text).rpartition(":")[2] or text)


def is_url_password(text: str) -> bool:
    return not is_placeholder(text)


def is_command_password(text: str) -> bool:
    """An option may be followed by anything: a number, a name, another option."""
    if len(text) < 6 or is_placeholder(text):
        return False
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def is_private_key(text: str) -> bool:
    """Not a document that only shows how such a block looks, nor one whose body was hammered into a keyboard."""
    body = re.sub(r"-----[A-Z0-9 ]+-----|\\+[nr]", "", text)
    letters = "".join(c for c in body if c.isalnum() or c in "+/=")
    return len(letters) >= 40 and len(set(body)) > 16 and (len(letters) < 256 or entropy(letters) >= 4.7)


def is_encoded_private_key(text: str) -> bool:
    try:
        plain = base64.b64decode(text[: len(text) // 4 * 4])
    except (binascii.Error, ValueError):
        return False
    return b"PRIVATE KEY" in plain and is_private_key(plain.decode("latin-1"))


def is_bech32_key(text: str) -> bool:
    return is_real(text) and has_bech32_checksum(text)


def is_wallet_key(text: str) -> bool:
    return is_real(text) and has_base58_checksum(text)


def is_seed(text: str) -> bool:
    return is_real(text) and has_crc16(text)
