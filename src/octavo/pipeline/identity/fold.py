"""Fold 2: brings the principal of a call up to date, or refuses it.

Evidence comes from the transport (a key, a token, the peer of a socket, or how the process was started) and is
turned into a principal here, never from arguments and never from what a client says of itself. On stdio `--as`
selects an agent of the configuration: that is selection by whoever starts the process, not authentication.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import InvalidParams, Unauthenticated
from octavo.core.ports.chain import Next, Reply
from octavo.core.ports.server import Admitted, Protected
from octavo.core.values import Call, Principal

if TYPE_CHECKING:
    from octavo.pipeline.identity.tokens.verify import Tokens

LOCAL = "local"  # whoever started the process, where no agent was selected


class KnownAgent(Struct, frozen=True):
    """An entry of `agents:` in the configuration. Keys are kept as hashes only."""

    id: str
    roles: frozenset[str] = frozenset()
    key_sha256: str | None = None


class Key(Struct, frozen=True):
    """A further key of an agent, which may end by itself."""

    agent: str
    sha256: str
    until: float | None = None  # seconds since 1970


def key_hash(key: str) -> str:
    """What is stored of a key. Keys are random and long, so one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Identity:
    """Issues principals and, on every call, brings the one in the call up to date.

    So an agent that a reload removes, or whose key it replaces, is refused on its next request, whatever
    connection it holds, and one whose roles changed has the new ones.
    """

    def __init__(
        self,
        agents: Iterable[KnownAgent],
        keys: Iterable[Key] = (),
        *,
        peers: Mapping[int, str] | None = None,
        tokens: Tokens | None = None,
        protected: Protected | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`peers`: agents by the user id of whoever connects to a socket of this machine."""
        self._agents: Mapping[str, KnownAgent] = {agent.id: agent for agent in agents}
        self._peers = {uid: self.launched(name)._replace(key=f"peer:{uid}") for uid, name in (peers or {}).items()}
        self._clock = clock or SystemClock()
        self.tokens, self.protected = tokens, protected
        self._marks = {mark: issuer.name for issuer, mark in tokens.marks()} if tokens is not None else {}
        self._mark_of = {name: mark for mark, name in self._marks.items()}
        self.use_keys(keys)

    def use_keys(self, keys: Iterable[Key]) -> None:
        """These, beside those of the configuration, from now on."""
        configured = [Key(agent.id, agent.key_sha256) for agent in self._agents.values() if agent.key_sha256]
        held = [*configured, *(key for key in keys if key.agent in self._agents)]
        self._by_key = {key.sha256: self.launched(key.agent)._replace(key=_mark(key.sha256)) for key in held}
        self._ends = {_mark(key.sha256): key.until for key in held if key.until is not None}
        launched = (Principal(agent.id, agent.roles) for agent in self._agents.values())
        self._current = {Principal(LOCAL), *launched, *self._peers.values(), *self._by_key.values()}
        self._last: Principal | None = None  # who asked last, and may

    @property
    def has_keys(self) -> bool:
        return bool(self._by_key)

    def launched(self, as_who: str | None) -> Principal:
        """For stdio, the command line and `--no-auth`: the agent that the operator selected."""
        if as_who is None or as_who == LOCAL:
            return Principal(LOCAL)
        agent = self._agents.get(as_who)
        if agent is None:
            known = ", ".join(sorted(self._agents)) or "none is configured"
            raise InvalidParams(f"Unknown agent {as_who!r}; known agents: {known}")
        return Principal(agent.id, agent.roles)

    def by_key(self, key: str) -> Principal:
        """For HTTP: the agent whose key this is. Compares hashes, in constant time."""
        digest = key_hash(key)
        for known, principal in self._by_key.items():
            if hmac.compare_digest(digest, known):
                self._check_end(principal)
                return principal
        raise Unauthenticated("The key is not known here")

    def by_peer(self, uid: int) -> Principal:
        """For a socket of this machine: the agent that this user is, as the kernel tells it."""
        principal = self._peers.get(uid)
        if principal is None:
            raise Unauthenticated("This user of the machine is no agent here; send a key")
        return principal

    async def by_credential(self, text: str) -> Admitted:
        """For HTTP: whose key or token this is. Raises what `by_key` raises, and what `Tokens.believe` does."""
        try:
            principal = self.by_key(text)
        except Unauthenticated:
            if self.tokens is None or text.count(".") != 2:
                raise
        else:
            return Admitted(principal, self._ends.get(principal.key))
        believed = await self.tokens.believe(text)
        mark = self._mark_of[believed.issuer.name]
        agent = self._agents.get(believed.issuer.agents.get(believed.subject, ""))
        if agent is None:
            who = Principal(f"{believed.issuer.name}:{believed.subject}", believed.roles, f"token:{mark}")
        else:
            who = Principal(agent.id, agent.roles | believed.roles, f"token:{mark}:{_settled(agent)}")
        return Admitted(who, believed.until)

    def current(self, principal: Principal) -> Principal:
        """The principal as the configuration knows it now. Raises Unauthenticated when it no longer does."""
        if principal in self._current:
            self._check_end(principal)
            return principal
        if principal.key.startswith("token:"):
            return self._current_by_token(principal)
        agent = self._agents.get(principal.id)
        if agent is not None:
            now = Principal(agent.id, agent.roles, principal.key)
            if now in self._current:
                self._check_end(now)
                return now
        raise Unauthenticated(_UNKNOWN)

    def __call__(self, call: Call, call_next: Next) -> Reply:
        asking = call.principal
        if asking is not self._last:  # one connection asks many times in a row
            principal = self.current(asking)
            if principal is not asking:
                call = call._replace(principal=principal)
            self._last = principal
        return call_next(call)

    def _check_end(self, principal: Principal) -> None:
        until = self._ends.get(principal.key)
        if until is not None and until <= self._clock.wall():
            raise Unauthenticated("The key has expired; ask for a new one")

    def _current_by_token(self, principal: Principal) -> Principal:
        """While what was settled about its issuer, and about the agent that it stands for, is the same."""
        _, mark, *of_agent = principal.key.split(":")
        issuer = self._marks.get(mark)
        if issuer is not None:
            agent = self._agents.get(principal.id)
            if not of_agent and principal.id.startswith(f"{issuer}:"):
                return principal
            if of_agent and agent is not None and of_agent == [_settled(agent)]:
                return principal
        raise Unauthenticated(_UNKNOWN)


_UNKNOWN = "This agent, or its key, is no longer known here"


def _mark(sha256: str) -> str:
    """Enough of a hash to tell a key from another."""
    return sha256[:16]


def _settled(agent: KnownAgent) -> str:
    return hashlib.sha256(repr((agent.id, sorted(agent.roles))).encode("utf-8", "surrogatepass")).hexdigest()[:16]
