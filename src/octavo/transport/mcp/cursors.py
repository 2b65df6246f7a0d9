"""Cursors that a client can carry but not make.

A cursor holds the place in the listing, the scope, the policy epoch and the principal, under a keyed
signature: one that was tampered with, belongs to somebody else or outlived a change of the policy is
refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

import msgspec

from octavo.core.errors import InvalidParams
from octavo.core.model import Principal

_SIGNATURE = 12
_OPENED = 4096  # cursors remembered, so that a client that lists again and again is not verified each time
_BAD = "The cursor is not valid here; list again from the start"


class Cursors:
    def __init__(self, key: bytes) -> None:
        self._key = key
        self._opened: dict[tuple[str, str, str, Principal], str] = {}

    def seal(self, inner: str, *, scope: str, epoch: str, principal: Principal) -> str:
        body = msgspec.json.encode((inner, scope, epoch))
        return base64.urlsafe_b64encode(self._sign(body, principal) + body).rstrip(b"=").decode("ascii")

    def open(self, cursor: str, *, scope: str, epoch: str, principal: Principal) -> str:
        """The place in the listing. Raises InvalidParams for any cursor that is not this caller's, now."""
        key = (cursor, scope, epoch, principal)
        inner = self._opened.get(key)
        if inner is None:
            inner = self._open(cursor, scope, epoch, principal)
            if len(self._opened) >= _OPENED:
                self._opened.clear()
            self._opened[key] = inner
        return inner

    def _open(self, cursor: str, scope: str, epoch: str, principal: Principal) -> str:
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            signature, body = raw[:_SIGNATURE], raw[_SIGNATURE:]
            if not hmac.compare_digest(signature, self._sign(body, principal)):
                raise InvalidParams(_BAD, reason="invalid_cursor")
            inner, made_for, made_under = msgspec.json.decode(body, type=tuple[str, str, str])
        except (ValueError, msgspec.MsgspecError):
            raise InvalidParams(_BAD, reason="invalid_cursor") from None
        if made_for != scope or made_under != epoch:
            raise InvalidParams(_BAD, reason="stale_cursor")
        return inner

    def _sign(self, body: bytes, principal: Principal) -> bytes:
        who = f"{principal.id}\0{','.join(sorted(principal.roles))}\0".encode()
        return hashlib.blake2b(who + body, key=self._key, digest_size=_SIGNATURE).digest()
