"""Cursors that a client can carry but neither read nor make.

A cursor holds the place in the listing, the scope and the policy epoch, sealed for one principal: one that was
tampered with, belongs to somebody else or outlived a change of the policy is refused.
"""

from __future__ import annotations

from octavo.core.cursor import joined, parts_of
from octavo.core.errors import InvalidParams
from octavo.core.memo import Bounded
from octavo.core.seal import Seal
from octavo.core.values import Principal

_KEPT = 4096  # cursors remembered, so that a client that lists again and again costs nothing each time
_BAD = "The cursor is not valid here; list again from the start"


class Cursors:
    def __init__(self, key: bytes) -> None:
        self._seal = Seal(key)
        self._sealed: Bounded[tuple[str, str, str, Principal], str] = Bounded(_KEPT)
        self._opened: Bounded[tuple[str, str, str, Principal], str] = Bounded(_KEPT)

    def seal(self, inner: str, *, scope: str, epoch: str, principal: Principal) -> str:
        key = (inner, scope, epoch, principal)
        sealed = self._sealed.get(key)
        if sealed is None:
            sealed = self._seal.seal(joined(inner, scope, epoch).encode(), _whose(principal))
            self._sealed.keep(key, sealed)
        return sealed

    def open(self, cursor: str, *, scope: str, epoch: str, principal: Principal) -> str:
        """The place in the listing. Raises InvalidParams for any cursor that is not this caller's, now."""
        key = (cursor, scope, epoch, principal)
        inner = self._opened.get(key)
        if inner is None:
            inner = self._open(cursor, scope, epoch, principal)
            self._opened.keep(key, inner)
        return inner

    def _open(self, cursor: str, scope: str, epoch: str, principal: Principal) -> str:
        body = self._seal.open(cursor, _whose(principal))
        inner, made_for, made_under = parts_of(None if body is None else body.decode(), str, str, str, refusal=_BAD)
        if made_for != scope or made_under != epoch:
            raise InvalidParams(_BAD, reason="stale_cursor")
        return str(inner)


def _whose(principal: Principal) -> str:
    return f"list\0{principal.id}\0{','.join(sorted(principal.roles))}"
