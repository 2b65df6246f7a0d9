"""Builds the identity fold from the configuration, and knows the keys of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from octavo.app.stores import looked_at
from octavo.config.load import Loaded
from octavo.config.model import Config
from octavo.core.clock import Clock
from octavo.core.errors import InvalidParams
from octavo.core.ports.server import Protected
from octavo.core.ports.stores import Opens
from octavo.pipeline.identity.fold import Identity, Key, KnownAgent
from octavo.stores.keys import StoredKeys

if TYPE_CHECKING:
    from octavo.pipeline.identity.tokens.issuer import Issuer
    from octavo.pipeline.identity.tokens.jwks import Fetch


def identity_of(config: Config, keys: Sequence[Key], clock: Clock) -> Identity:
    """Raises InvalidParams for keys of an issuer that cannot be used."""
    agents = [KnownAgent(name, frozenset(one.roles), one.digest) for name, one in config.agents.items()]
    peers = {peer.uid: peer.agent for peer in config.serve.http.peers}
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


async def stored_keys(opens: Opens) -> list[Key]:
    """Those that `octavo keys new` made. Raises SourceUnavailable where the store cannot be used."""
    return [Key(key.agent, key.sha256, key.expires) for key in await StoredKeys(opens).read()]


def proves_callers(loaded: Loaded) -> bool:
    """Whether somebody could prove over HTTP who it is: by a key or a token. The store is looked at."""
    config = loaded.config
    if config.serve.http.oauth is not None or any(agent.digest for agent in config.agents.values()):
        return True
    return bool(looked_at(loaded, stored_keys))


def hand_on(earlier: Identity, later: Identity) -> None:
    """What is known of issuers outlives a reload: one may be down just then."""
    if earlier.tokens is not None and later.tokens is not None:
        later.tokens.inherit(earlier.tokens)
