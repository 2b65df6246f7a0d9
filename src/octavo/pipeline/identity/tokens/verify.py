"""Parses and verifies a token (form, signature, issuer, audience, time) and reads its claims."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from octavo.core.clock import Clock
from octavo.core.errors import Forbidden, Unauthenticated
from octavo.pipeline.identity.tokens.issuer import Issuer, words
from octavo.pipeline.identity.tokens.jwks import Fetch, JwksOf
from octavo.pipeline.identity.tokens.keys import keys_in
from octavo.pipeline.identity.tokens.keyset import FetchedKeys, GivenKeys, KeySet

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


_LATEST = float(1 << 53)


class Believed(NamedTuple):
    """What a token says once it is believed."""

    issuer: Issuer
    subject: str
    roles: frozenset[str]
    until: float


class Tokens:
    """The issuers of one configuration. What is known of their keys is handed on to the next."""

    def __init__(
        self,
        issuers: Iterable[Issuer],
        *,
        resource: str,
        scopes: Iterable[str],
        skew: float,
        clock: Clock,
        fetch: Callable[[Issuer], Fetch],
    ) -> None:
        """`fetch` is the way out to one issuer. Raises ValueError for keys in a file that cannot be used."""
        self._fetch = fetch
        self._issuers = {one.issuer: one for one in issuers}
        self._resource, self._scopes = resource, tuple(scopes)
        self._skew, self._clock = skew, clock
        self._key_sets = {_source(one): self._key_set(one) for one in self._issuers.values()}

    def _key_set(self, issuer: Issuer) -> KeySet:
        if issuer.keys:
            return GivenKeys(keys_in(issuer.keys, issuer.algorithms))
        return FetchedKeys(JwksOf(issuer.issuer, issuer.jwks, self._fetch(issuer)), issuer.algorithms, self._clock)

    def inherit(self, earlier: Tokens) -> None:
        """So that a reload while an issuer is down locks nobody out."""
        for source in self._key_sets.keys() & earlier._key_sets.keys():
            self._key_sets[source] = earlier._key_sets[source]

    def marks(self) -> Iterable[tuple[Issuer, str]]:
        """Each issuer with a text that changes when what was settled about it does."""
        for issuer in self._issuers.values():
            settled = repr((issuer, self._resource, self._scopes))
            yield issuer, hashlib.sha256(settled.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def believe(self, text: str) -> Believed:
        """Raises Unauthenticated, Forbidden where only scopes are missing, SourceUnavailable without the keys."""
        token = parse(text)
        named = token.claims.get("iss")
        issuer = self._issuers.get(named) if isinstance(named, str) else None
        if issuer is None:
            raise Unauthenticated("The token is not of an issuer that is trusted here")
        if token.algorithm not in issuer.algorithms:
            raise Unauthenticated("The token is signed in a way that is not accepted here")
        if token.type not in issuer.types:
            raise Unauthenticated("The token is of a type that is not accepted here")
        until = self._in_time(token.claims)
        self._for_us(token.claims, issuer)
        await self._signed(token, issuer)
        believed = Believed(issuer, issuer.subject(token.claims), issuer.roles_in(token.claims), until)
        granted = {*words(token.claims.get("scope")), *words(token.claims.get("scp"))}
        if not granted.issuperset(self._scopes):
            raise Forbidden("The token does not have the scopes that are needed here")
        return believed

    async def _signed(self, token: Token, issuer: Issuer) -> None:
        verify = await self._key_sets[_source(issuer)].find(token.kid, token.algorithm)
        if verify is None:
            raise Unauthenticated("The token is signed with a key that its issuer does not have")
        if not verify(token.signed, token.signature):
            raise Unauthenticated("The signature of the token is not right")

    def _in_time(self, claims: Mapping[str, Any]) -> float:
        now = self._clock.wall()
        expires, issued, begins = _moment(claims, "exp"), _moment(claims, "iat"), 0.0
        if "nbf" in claims:
            begins = _moment(claims, "nbf")
        if expires + self._skew <= now or expires <= issued:
            raise Unauthenticated("The token has expired")
        if max(issued, begins) - self._skew > now:
            raise Unauthenticated("The token is not valid yet")
        return expires + self._skew

    def _for_us(self, claims: Mapping[str, Any], issuer: Issuer) -> None:
        named = claims.get("aud")
        audiences = [named] if isinstance(named, str) else named
        if not isinstance(audiences, list) or not all(isinstance(one, str) for one in audiences):
            raise Unauthenticated("The token does not say whom it is for")
        if self._resource not in audiences or not {self._resource, *issuer.other_audiences}.issuperset(audiences):
            raise Unauthenticated("The token is not for this server alone")


def _source(issuer: Issuer) -> tuple[object, ...]:
    """What decides which keys there are."""
    return issuer.issuer, issuer.jwks, issuer.keys, issuer.algorithms


def _moment(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LATEST or math.isnan(value):
        raise Unauthenticated(f"The token must have {name}, in seconds since 1970")
    return float(value)
