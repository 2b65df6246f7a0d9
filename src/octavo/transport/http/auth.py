"""Who comes in over HTTP: Host and Origin first, then a key, a token, or the peer of a unix socket.

Only the Authorization header is read, and the kernel's word on a socket. No other header and nothing in the query
says who asks. What was admitted once is remembered by a keyed digest, never by the credential itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from mcp.server.streamable_http import check_accept_headers
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import Response

from octavo.core.clock import SystemClock
from octavo.core.errors import Forbidden, OctavoError, SourceUnavailable, Unauthenticated
from octavo.core.memo import Bounded
from octavo.core.ports.server import WELL_KNOWN, Admitted, Protected, Server
from octavo.core.ref import Ref
from octavo.core.routes import Anybody, Route, RouteAnswer, RouteRequest
from octavo.transport.http.exchange import Receive, Scope, Send, headers, respond
from octavo.transport.http.refusals import RefusalSent

MEMO_SIZE = 1024  # header combinations known to be good; the oldest makes room
MEMO_OF_ONE = 32  # of one principal: more push out its own
MEMO_SECONDS = 300.0  # after which a token is verified again: its issuer may have taken the key away
PEER = "octavo.peer"  # in the scope: the user id of whoever connected to a unix socket

_METADATA = Ref("server", ("metadata",))
_PORT, _LAST_PORT = re.compile("[1-9][0-9]{0,4}"), 65_535
_IDENTIFYING = (b"host", b"origin", b"content-type", b"accept", b"authorization")


class Authentication(NamedTuple):
    """How callers are told apart: by what they prove, or all of them as one principal on loopback."""

    everybody: str | None = None  # agent id with `--no-auth`, "" for the local user; None: keys


class Allowed:
    """Host or Origin headers: each exactly as it stands, and `NAME:*` with any port, which is a number."""

    def __init__(self, allowed: Iterable[str]) -> None:
        listed = [*allowed]
        self._exact = frozenset(one for one in listed if not one.endswith(":*"))
        self._with_any_port = frozenset(one.removesuffix(":*") for one in listed if one.endswith(":*"))

    def __contains__(self, told: str) -> bool:
        name, _, port = told.rpartition(":")
        return told in self._exact or (
            name in self._with_any_port and _PORT.fullmatch(port) is not None and int(port) <= _LAST_PORT
        )


class Authenticator:
    def __init__(self, server: Server, security: TransportSecuritySettings, access: Authentication) -> None:
        self._server, self._access = server, access
        self._security = TransportSecurityMiddleware(security)
        self._hosts, self._origins = Allowed(security.allowed_hosts), Allowed(security.allowed_origins)
        self._secret = os.urandom(32)
        self._good: Bounded[tuple[object, ...], tuple[Admitted, float | None]] = Bounded(MEMO_SIZE)
        server.on_swap(self._good.clear)

    def mark(self, scope: Scope) -> tuple[object, ...] | None:
        """What tells this caller from others, for `recall`; None where a header is there twice."""
        found = headers(scope, _IDENTIFYING)
        if found is None:
            return None
        shown = found[4]
        digest = shown and hashlib.blake2b(shown, key=self._secret, digest_size=16).digest()
        return found[0], found[1], found[2], found[3], digest, scope.get(PEER)

    def recall(self, mark: tuple[object, ...] | None) -> Admitted | None:
        known = self._good.get(mark) if mark is not None else None
        if known is None:
            return None
        admitted, until = known
        return admitted if until is None or SystemClock.wall() < until else None

    def remember(self, mark: tuple[object, ...], scope: Scope, admitted: Admitted) -> bool:
        """Whether it may be remembered: a good request, as far as its headers tell."""
        if scope["method"] != "POST" or not all(check_accept_headers(Request(scope))):
            return False
        who = admitted.principal.id
        own = [known for known, (good, _) in self._good.items() if good.principal.id == who]
        if len(own) >= MEMO_OF_ONE:
            del self._good[own[0]]
        until = None if admitted.until is None else min(admitted.until, SystemClock.wall() + MEMO_SECONDS)
        self._good.keep(mark, (admitted, until))
        return True

    async def admit(self, scope: Scope, receive: Receive, send: Send) -> Admitted | None:
        """Who asks, or None after the refusal has been sent."""
        if await self.turned_away(scope, receive, send, is_post=scope["method"] == "POST"):
            return None
        try:
            return await self.identify(scope)
        except OctavoError as why:
            await self.refuse(scope, send, why)
            return None

    async def identify(self, scope: Scope) -> Admitted:
        """Who asks. Raises what refuses it; Host and Origin were looked at before."""
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        admitted = await self._authenticate(shown, scope.get(PEER))
        self._server.works.identity.current(admitted.principal)  # a reload may have come in between
        return admitted

    async def refuse(self, scope: Scope, send: Send, why: OctavoError) -> None:
        """Records and answers what `identify` has raised."""
        shown = any(name == b"authorization" for name, _ in scope["headers"])
        self._server.note("unknown", "http", why.reason, **_origin(scope))
        status, further = self._refusal(why, shown=shown)
        await respond(send, status, _body({"error": why.reason, "message": why.message}), further)

    def routes(self) -> Iterable[Route]:
        """The metadata of this server (RFC 9728), where tokens are taken."""
        protected = self._server.works.identity.protected
        if protected is None:
            return
        document: dict[str, Any] = {
            "resource": protected.resource,
            "authorization_servers": list(protected.issuers),
            "bearer_methods_supported": ["header"],
            "resource_name": "Octavo",
        }
        if protected.scopes:
            document["scopes_supported"] = list(protected.scopes)
        told = RouteAnswer(body=_body(document), cache="public, max-age=300")

        async def describe(_: RouteRequest) -> RouteAnswer:
            return told

        for path in sorted({WELL_KNOWN, protected.metadata_path}):
            yield Route(
                path=path, methods=("GET",), stands_for=None, what=_METADATA, needs=Anybody(rate=None), handle=describe
            )

    async def turned_away(self, scope: Scope, receive: Receive, send: Send, *, is_post: bool) -> bool:
        """Whether the Host, Origin or Content-Type header was refused. Only of the last it is said what is right."""
        refused = await self._security.validate_request(Request(scope, receive), is_post=is_post)
        if refused is None:  # to the SDK whatever follows an allowed name and a colon is a port
            refused = self._inexact(scope)
        if refused is None:
            return False
        self._server.note("unknown", "http", f"status {refused.status_code}", **_origin(scope))
        await refused(scope, receive, RefusalSent(send) if refused.status_code == 400 else send)
        return True

    def knows(self, scope: Scope) -> bool:
        """Whether the Host and Origin headers are such as are served."""
        return self._inexact(scope) is None

    def _inexact(self, scope: Scope) -> Response | None:
        told = [(name, value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in told if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return Response("Invalid Host header", status_code=421)
        origins = [value for name, value in told if name == b"origin"]
        if origins and (len(origins) > 1 or origins[0] not in self._origins):
            return Response("Invalid Origin header", status_code=403)
        return None

    async def _authenticate(self, shown: list[bytes], peer: int | None) -> Admitted:
        identity = self._server.works.identity
        if self._access.everybody is not None:
            return Admitted(identity.launched(self._access.everybody or None))
        if not shown and peer is not None:
            return Admitted(identity.by_peer(peer))
        scheme, _, text = (shown[0] if len(shown) == 1 else b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise Unauthenticated("Send the agent's key or token as `Authorization: Bearer KEY`, once")
        return await identity.by_credential(text.strip())

    def _refusal(self, why: OctavoError, *, shown: bool) -> tuple[int, list[tuple[bytes, bytes]]]:
        if isinstance(why, SourceUnavailable):
            return 503, [(b"retry-after", b"%d" % max(1, round(why.retry_after or 1)))]
        protected = self._server.works.identity.protected
        if isinstance(why, Forbidden):
            return 403, [_challenge(protected, "insufficient_scope", why.message)]
        told = why.message if shown and isinstance(why, Unauthenticated) else ""
        return 401, [_challenge(protected, "invalid_token" if shown else "", told)]


def _challenge(protected: Protected | None, error: str, description: str) -> tuple[bytes, bytes]:
    """RFC 6750 and RFC 9728: what is wrong, which scopes are needed, and where to learn how to get a token."""
    said = {"realm": "octavo", "error": error, "error_description": description.replace("`", "'")}
    if protected is not None:
        said |= {"scope": " ".join(protected.scopes), "resource_metadata": protected.metadata_url}
    words = ", ".join(f'{name}="{value}"' for name, value in said.items() if value)
    return b"www-authenticate", f"Bearer {words}".encode("ascii")


def _origin(scope: Scope) -> dict[str, str]:
    """Where a refused request came from, as the socket says, or a proxy that is trusted."""
    client = scope.get("client")
    return {"from": str(client[0])} if client and client[0] else {}


def _body(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8")
