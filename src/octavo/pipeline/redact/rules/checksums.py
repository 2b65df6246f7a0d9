"""Forms that check themselves: the last characters follow from the others, so that chance does not make one."""

from __future__ import annotations

import base64
import binascii
import hashlib

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
