"""Parses a signed JWT strictly: whatever is not exactly one is refused before a key is looked for."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, NamedTuple, NoReturn

from octavo.core.errors import Unauthenticated

MAX_TOKEN = 8192
MAX_DEPTH = 16
_SIGNED = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\Z")
# Keys that a token brings along are never used, and neither is what changes how it is read.
_REFUSED = frozenset({"jwk", "jku", "x5u", "x5c", "crit", "b64", "zip", "enc", "cty", "p2c", "epk"})


class Token(NamedTuple):
    algorithm: str
    kid: str
    type: str  # in small letters, without the prefix that may be left out
    claims: dict[str, Any]  # not to be believed before the signature was verified
    signed: bytes
    signature: bytes


def parse(text: str) -> Token:
    """Raises Unauthenticated, in words that repeat nothing of the token."""
    if len(text) > MAX_TOKEN:
        raise Unauthenticated("The token is too long")
    parts = _SIGNED.match(text)
    if parts is None:
        raise Unauthenticated("The token is not a signed JWT")
    header, claims = _object(parts[1]), _object(parts[2])
    if _REFUSED.intersection(header):
        raise Unauthenticated("The token has a header that is not accepted here")
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if not isinstance(algorithm, str) or not isinstance(kid, str) or not isinstance(kind, str):
        raise Unauthenticated("The header of the token must have alg, kid and typ")
    signed = f"{parts[1]}.{parts[2]}".encode("ascii")
    return Token(algorithm, kid, kind.lower().removeprefix("application/"), claims, signed, _bytes(parts[3]))


def _bytes(part: str) -> bytes:
    try:
        raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise Unauthenticated("The token is not a signed JWT") from None
    # Bits that decoding drops would give one token several spellings.
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") != part:
        raise Unauthenticated("The token is not a signed JWT")
    return raw


def _object(part: str) -> dict[str, Any]:
    try:
        text = _bytes(part).decode("utf-8")
        if _depth(text) > MAX_DEPTH:
            raise ValueError("too deep")
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_no_number)
    except ValueError:
        raise Unauthenticated("The token does not hold JSON that can be used here") from None
    if not isinstance(value, dict):
        raise Unauthenticated("The token does not hold JSON that can be used here")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def _no_number(_: str) -> NoReturn:
    raise ValueError("no number")


def _depth(text: str) -> int:
    """At most how deep it is nested; brackets in texts count too, which only makes it stricter."""
    deepest = depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest
