"""Fold 2: who asks.

Evidence comes from the transport (a key, or how the process was started) and is turned into a
principal here, never from arguments and never from what a client says of itself. On stdio `--as`
selects an agent of the configuration: that is selection by whoever starts the process, not
authentication.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from octavo.core.errors import InvalidParams, Unauthenticated
from octavo.core.model import Call, Principal
from octavo.core.ports import Next, Reply

LOCAL = "local"  # whoever started the process, where no agent was selected


@dataclass(frozen=True, slots=True)
class Agent:
    """An entry of `agents:` in the configuration. Keys are kept as hashes only."""

    id: str
    roles: frozenset[str] = frozenset()
    key_sha256: str | None = None


def key_hash(key: str) -> str:
    """What is stored of a key. Keys are random and long, so one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Identity:
    """Issues principals and, on every call, brings the one in the call up to date.

    So an agent that a reload removes, or whose key it replaces, is refused on its next request, whatever
    connection it holds, and one whose roles changed has the new ones.
    """

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._agents: Mapping[str, Agent] = {agent.id: agent for agent in agents}
        self._by_key = {agent.key_sha256: _keyed(agent) for agent in self._agents.values() if agent.key_sha256}
        launched = (Principal(agent.id, agent.roles) for agent in self._agents.values())
        self._current = {Principal(LOCAL), *launched, *self._by_key.values()}
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
                return principal
        raise Unauthenticated("The key is not known here")

    def current(self, principal: Principal) -> Principal:
        """The principal as the configuration knows it now. Raises Unauthenticated when it no longer does."""
        if principal in self._current:
            return principal
        agent = self._agents.get(principal.id)
        if agent is not None:
            now = Principal(agent.id, agent.roles, principal.key)
            if now in self._current:
                return now
        raise Unauthenticated("This agent, or its key, is no longer known here")

    def __call__(self, call: Call, call_next: Next) -> Reply:
        asking = call.principal
        if asking is not self._last:  # one connection asks many times in a row
            principal = self.current(asking)
            if principal is not asking:
                call = call._replace(principal=principal)
            self._last = principal
        return call_next(call)


def _keyed(agent: Agent) -> Principal:
    return Principal(agent.id, agent.roles, (agent.key_sha256 or "")[:16])
