"""Verifies a token (signature, issuer, audience, time) and reads its claims."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from octavo.core.clock import Clock
from octavo.core.errors import Forbidden, Unauthenticated
from octavo.pipeline.identity.tokens.issuer import Issuer, words
from octavo.pipeline.identity.tokens.jwks import Fetch, JwksOf
from octavo.pipeline.identity.tokens.keys import keys_in
from octavo.pipeline.identity.tokens.keyset import FetchedKeys, GivenKeys, KeySet
from octavo.pipeline.identity.tokens.token import Token, parse

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
