"""Builds the identity fold from the configuration and the key file."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from octavo.config.model import Config
from octavo.core.clock import Clock
from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.ports.server import Protected
from octavo.pipeline.identity.fold import Agent, Identity, Key
from octavo.stores.keys import KeyFile
from octavo.stores.state import StateDirectory

if TYPE_CHECKING:
    from octavo.pipeline.identity.tokens.issuer import Issuer
    from octavo.pipeline.identity.tokens.jwks import Fetch

logger = logging.getLogger(__name__)


def identity_of(config: Config, state: StateDirectory, clock: Clock) -> Identity:
    """Raises InvalidParams for keys of an issuer that cannot be used."""
    agents = [Agent(name, frozenset(one.roles), one.digest) for name, one in config.agents.items()]
    peers = {peer.uid: peer.agent for peer in config.serve.http.peers}
    try:
        keys = stored_keys(state)
    except OctavoError as problem:
        logger.error("keys of `octavo keys new` are not known: %s", problem)
        keys = []
    oauth = config.serve.http.oauth
    if oauth is None:
        return Identity(agents, keys, peers=peers, clock=clock)
    # Here, so that only those wait for cryptography whom it serves.
    from octavo.pipeline.identity.tokens.issuer import Issuer
    from octavo.pipeline.identity.tokens.verify import Tokens

    issuers = [
        Issuer(
            name=name,
            issuer=one.issuer,
            algorithms=one.algorithms,
            types=tuple(kind.lower() for kind in one.types),
            jwks="" if one.jwks is None or one.jwks.startswith("{") else one.jwks,
            keys=one.jwks if one.jwks is not None and one.jwks.startswith("{") else "",
            other_audiences=one.other_audiences,
            principal=one.principal,
            roles=one.roles,
            agents=dict(one.agents),
            inside=one.inside,
        )
        for name, one in oauth.issuers.items()
    ]
    try:
        tokens = Tokens(
            issuers, resource=oauth.resource, scopes=oauth.scopes, skew=oauth.skew, clock=clock, fetch=_way_out
        )
    except ValueError as problem:
        raise InvalidParams(f"serve.http.oauth: the key set of an issuer {problem}") from None
    protected = Protected(oauth.resource, tuple(one.issuer for one in issuers), oauth.scopes)
    return Identity(agents, keys, peers=peers, tokens=tokens, protected=protected, clock=clock)


def _way_out(issuer: Issuer) -> Fetch:
    from octavo.net.documents import fetcher

    return fetcher([issuer.issuer, *([issuer.jwks] if issuer.jwks else [])], issuer.inside)


def stored_keys(state: StateDirectory) -> list[Key]:
    """Raises SourceUnavailable where the key file cannot be used."""
    if state.path is None:
        return []
    return [Key(key.agent, key.sha256, key.expires) for key in KeyFile(state.path).read()]


def hand_on(earlier: Identity, later: Identity) -> None:
    """What is known of issuers outlives a reload: one may be down just then."""
    if earlier.tokens is not None and later.tokens is not None:
        later.tokens.inherit(earlier.tokens)
