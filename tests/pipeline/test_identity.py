"""Fold 2: who asks (O14; house.md section 6; security.md section 5)."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from octavo.core.arguments import OwnArguments
from octavo.core.errors import InvalidParams, Unauthenticated
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Principal, Trail
from octavo.pipeline.identity.fold import Identity, KnownAgent, key_hash

KEY = "correct-horse-battery-staple"
BRAND = KnownAgent("agent-brand", frozenset({"marketing"}), key_hash(KEY))
OPS = KnownAgent("agent-ops")


def call_of(principal: Principal, **arguments: Any) -> Call:
    return Call("read", Ref.parse("sop://a"), principal, Trail(), "sop://a", OwnArguments(arguments))


async def who(identity: Identity, principal: Principal) -> Principal:
    """Whom the folds behind this one see."""

    async def rest(call: Call) -> Reply:
        return call.principal

    seen: Principal = await identity(call_of(principal), rest)
    return seen


@pytest.mark.seed("O14")
def test_a_key_says_which_agent_asks_and_that_it_proved_it() -> None:
    """On the key a request rate hangs. What is told of it cannot be used as one."""
    found = Identity([OPS, BRAND]).by_key(KEY)
    assert (found.id, found.roles) == ("agent-brand", frozenset({"marketing"}))
    assert found.key and found.key not in KEY


@pytest.mark.parametrize("key", ["", "x", KEY + " ", KEY.upper(), key_hash(KEY), "키", "\udcff"])
def test_an_unknown_key_is_nobody(key: str) -> None:
    """The hash is not the key: whoever reads the configuration cannot use what stands there."""
    with pytest.raises(Unauthenticated, match="not known") as refused:
        Identity([BRAND, OPS]).by_key(key)
    assert KEY not in str(refused.value) and not refused.value.data


def test_keys_are_kept_as_hashes_only() -> None:
    """Stored as SHA-256: no key is in memory where a dump or a repr could show it."""
    assert key_hash(KEY) == hashlib.sha256(KEY.encode()).hexdigest()
    assert KEY not in repr(BRAND) + repr(vars(Identity([BRAND])))


def test_keys_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hmac.compare_digest, on hashes and never on keys."""
    compared: list[tuple[str, str]] = []
    really = hmac.compare_digest

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return really(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    with pytest.raises(Unauthenticated):
        Identity([BRAND]).by_key("another key")
    assert compared == [(key_hash("another key"), key_hash(KEY))]


def test_without_keys_nobody_can_prove_anything() -> None:
    """The transport asks this before it opens a door to other machines."""
    assert not Identity([OPS]).has_keys
    assert Identity([OPS, BRAND]).has_keys


@pytest.mark.seed("O14")
def test_on_stdio_the_operator_selects_an_agent() -> None:
    """Selection by whoever starts the process, not authentication: no key, so no request rate."""
    identity = Identity([BRAND, OPS])
    assert identity.launched("agent-brand") == Principal("agent-brand", frozenset({"marketing"}))
    assert identity.launched(None) == identity.launched("local") == Principal("local")


def test_an_agent_that_is_not_configured_cannot_be_selected() -> None:
    """The message names those that are."""
    with pytest.raises(InvalidParams, match="known agents: agent-brand, agent-ops"):
        Identity([OPS, BRAND]).launched("agent-brnd")
    with pytest.raises(InvalidParams, match="none is configured"):
        Identity([]).launched("agent-brand")


@pytest.mark.anyio
@pytest.mark.seed("O14", "B2")
async def test_an_agent_that_a_reload_removed_is_refused_on_its_next_call() -> None:
    """Whatever connection it holds: every call is checked against the configuration of now."""
    brand, by_key = Identity([BRAND]).launched("agent-brand"), Identity([BRAND]).by_key(KEY)
    assert await who(Identity([BRAND, OPS]), brand) == brand
    for principal in (brand, by_key):
        with pytest.raises(Unauthenticated, match="no longer known"):
            await who(Identity([OPS]), principal)


@pytest.mark.anyio
@pytest.mark.seed("O14")
async def test_new_roles_hold_from_the_next_call_on() -> None:
    """A reload that gives or takes a role must neither lock an open connection out nor leave it its old rights."""
    before = Identity([BRAND]).launched("agent-brand")
    after = Identity([KnownAgent("agent-brand", frozenset({"sales"}), BRAND.key_sha256)])
    assert await who(after, before) == Principal("agent-brand", frozenset({"sales"}))
    keyed = Identity([BRAND]).by_key(KEY)
    assert await who(after, keyed) == keyed._replace(roles=frozenset({"sales"}))


@pytest.mark.anyio
async def test_who_proved_itself_by_a_key_is_refused_once_the_agent_has_none() -> None:
    """Taking the key away takes the access away."""
    with pytest.raises(Unauthenticated):
        await who(Identity([KnownAgent("agent-brand", frozenset({"marketing"}))]), Identity([BRAND]).by_key(KEY))


@pytest.mark.anyio
async def test_who_proved_itself_by_an_earlier_key_is_refused_once_it_is_replaced() -> None:
    """A key that leaked is of no use after it was changed, not even on a connection that is open."""
    renewed = KnownAgent("agent-brand", frozenset({"marketing"}), key_hash(KEY + "-2"))
    with pytest.raises(Unauthenticated):
        await who(Identity([renewed]), Identity([BRAND]).by_key(KEY))
    assert (await who(Identity([renewed]), Identity([renewed]).by_key(KEY + "-2"))).id == "agent-brand"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "forged", [Principal("root"), Principal("agent-x", frozenset({"marketing"})), Principal("local", key="k")]
)
async def test_a_principal_that_nobody_issued_is_refused(forged: Principal) -> None:
    """Never from arguments, never from what a client says of itself."""
    with pytest.raises(Unauthenticated):
        await who(Identity([BRAND]), forged)


@pytest.mark.anyio
async def test_local_has_no_roles_whatever_it_claims() -> None:
    """The user of the process is nobody's agent."""
    with pytest.raises(Unauthenticated):
        await who(Identity([BRAND]), Principal("local", frozenset({"marketing"})))


@pytest.mark.anyio
async def test_arguments_do_not_change_who_asks() -> None:
    """house.md section 2: identity never comes from arguments."""

    async def rest(call: Call) -> Reply:
        return call.principal

    call = call_of(Principal("local"), agent="agent-brand", who="agent-brand", clientInfo={"name": "agent-brand"})
    assert await Identity([BRAND])(call, rest) == Principal("local")
