"""OAuth 2.1 resource server (O14; security.md section 5, S9): bad tokens, and an issuer that misbehaves."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Reply, Web, modern_headers
from tests.gate.twins import META
from tests.gate.world import KEYS, frozen_time, house, records
from tests.security.bad_tokens import BAD
from tests.security.issuer import (
    JWKS,
    METADATA,
    RESOURCE,
    IssuerServer,
    b64,
    ec_key,
    ed_key,
    issuer,
    jwk,
    rsa_key,
    signed,
)

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.config.load import Loaded
from octavo.pipeline.identity.tokens import keyset

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O14", "A8")]

BODY: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "mem://one", "_meta": META},
}  # fmt: skip
RAW = json.dumps(BODY).encode()


def configured(folder: Path, url: str, *, more: str = "", oauth: str = "") -> Loaded:
    text = f"""
sources:
  mem: {{kind: memory, scheme: mem, resources: {{one: {{text: content}}, two: {{text: other}}}}}}
agents:
  brand: {{key: "${{BRAND_KEY}}", roles: [marketing]}}
policy:
  - {{who: ["role:people", brand, "company:bob"], may: [read, list, watch], what: "**"}}
serve:
  http:
    oauth:
      resource: {RESOURCE}
      {oauth or "scopes: [octavo]"}
      issuers:
        company: {{issuer: "{url}", roles: [groups], agents: {{robot: brand}}{more}}}
"""
    return load_text(text, file=folder / "octavo.yaml", environ=KEYS)


@pytest.fixture(scope="module")
def server() -> Iterator[IssuerServer]:
    with issuer() as made:
        yield made


@asynccontextmanager
async def front(loaded: Loaded) -> AsyncIterator[tuple[Octavo, Web]]:
    async with house(loaded) as octavo, Web(octavo, lane=True) as web:
        yield octavo, web


async def ask(web: Web, credential: str | None) -> Reply:
    return await web.ask(RAW, modern_headers(BODY, credential))


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def challenge(reply: Reply) -> str:
    return dict(reply.headers)["www-authenticate"]


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
async def test_a_good_token_reads(tmp_path: Path, server: IssuerServer, twice: bool) -> None:
    """The second time from memory: nothing but the token may decide."""
    async with front(configured(tmp_path, server.url)) as (octavo, web):
        token = server.token()
        for _ in range(1 + twice):
            reply = await ask(web, token)
            assert reply.status == 200 and "content" in reply.body
        assert {one["who"] for one in records(octavo)} == {"company:alice"}
        assert (await ask(web, KEYS["BRAND_KEY"])).status == 200  # keys go on to work beside tokens


@pytest.mark.parametrize(
    ("algorithm", "key", "kid"), [("RS256", rsa_key, "r"), ("PS256", rsa_key, "r"), ("EdDSA", ed_key, "d")]
)
async def test_every_listed_algorithm_is_understood(tmp_path: Path, algorithm: str, key: Any, kid: str) -> None:
    with issuer() as made:
        made.jwks = {"keys": [jwk(key(), kid, algorithm)]}
        token = signed(made.header(alg=algorithm, kid=kid), made.claims(), key(), algorithm)
        async with front(configured(tmp_path, made.url, more=f", algorithms: [{algorithm}]")) as (_, web):
            assert (await ask(web, token)).status == 200


async def test_no_bad_token_is_accepted(tmp_path: Path, server: IssuerServer) -> None:
    """Each is a 401 with a challenge that says where to get a good one, and repeats nothing of the token."""
    assert len(BAD) >= 100
    async with front(configured(tmp_path, server.url)) as (octavo, web):
        assert (await ask(web, server.token())).status == 200
        accepted, seen = [], len(records(octavo))
        for name, make in BAD.items():
            token = make(server)
            reply = await ask(web, token)
            said = challenge(reply) if reply.status == 401 else ""
            proper = said.startswith("Bearer ") and 'error="invalid_token"' in said and 'scope="octavo"' in said
            where = 'resource_metadata="https://octavo.example/.well-known/oauth-protected-resource/mcp"' in said
            leaks = any(len(part) > 8 and part in str(reply) for part in token.split("."))
            if not (proper and where and reply.status == 401) or leaks or "content" in reply.body:
                accepted.append((name, reply))
        assert accepted == []
        told = records(octavo, seen)
        assert len(told) == len(BAD) and {one["outcome"] for one in told} == {"unauthenticated"}
        assert (await ask(web, server.token())).status == 200
    assert set(server.asked) <= {METADATA, JWKS}  # nothing that a token names was fetched


async def test_bad_tokens_are_bad_for_their_own_reason(tmp_path: Path, server: IssuerServer) -> None:
    """The matrix would prove nothing if its pen did not write good tokens."""
    now = server.claims()["iat"]
    good = {
        "spelled out": server.token(),
        "a list of us alone": server.token(aud=[RESOURCE]),
        "typ as a media type": server.token({"typ": "application/AT+JWT"}),
        "without nbf": server.token(nbf=...),
        "a clock that is a little ahead": server.token(iat=now + 20, nbf=now + 20),
        "just expired, within the skew": server.token(iat=now - 99, exp=now - 5),
        "scopes as a list": server.token(scope=..., scp=["octavo"]),
        "RS256": signed(server.header(alg="RS256", kid="rsa"), server.claims(), rsa_key(), "RS256"),
    }  # fmt: skip
    async with front(configured(tmp_path, server.url)) as (_, web):
        assert {name: (await ask(web, token)).status for name, token in good.items()} == dict.fromkeys(good, 200)


@pytest.mark.parametrize("known", [False, True], ids=["first", "after a good one"])
async def test_a_token_ends_although_it_was_good_before(tmp_path: Path, server: IssuerServer, known: bool) -> None:
    with frozen_time() as clock:
        now = clock.wall()
        token = server.token(iat=now - 1, nbf=now - 1, exp=now + 60)
        async with front(configured(tmp_path, server.url)) as (_, web):
            for _ in range(3 * known):
                assert (await ask(web, token)).status == 200
            clock.advance(91)
            reply = await ask(web, token)
            assert reply.status == 401 and "expired" in challenge(reply)


async def test_missing_scopes_are_all_named(tmp_path: Path, server: IssuerServer) -> None:
    async with front(configured(tmp_path, server.url, oauth="scopes: [octavo, deep]")) as (_, web):
        reply = await ask(web, server.token(scope="octavo"))
        assert reply.status == 403
        assert 'error="insufficient_scope"' in challenge(reply) and 'scope="octavo deep"' in challenge(reply)
        assert (await ask(web, server.token(scope="deep octavo"))).status == 200


async def test_claims_say_who_it_is_and_nothing_else_does(tmp_path: Path, server: IssuerServer) -> None:
    """Ids of subjects carry the issuer's name, so that no token can be a configured agent unless the operator says."""
    async with front(configured(tmp_path, server.url)) as (octavo, web):
        for claims, who, status in (
            ({}, "company:alice", 200),
            ({"groups": []}, "company:alice", 403),
            ({"groups": ..., "sub": "bob"}, "company:bob", 200),
            ({"sub": "brand", "groups": []}, "company:brand", 403),
            ({"sub": "robot", "groups": []}, "brand", 200),
            ({"sub": "role:people", "groups": []}, "company:role:people", 403),
        ):
            seen = len(records(octavo))
            reply = await ask(web, server.token(**claims))
            assert records(octavo, seen)[-1]["who"] == who
            assert ("content" in reply.body) is (status == 200)


async def test_another_claim_names_the_principal_and_roles_stand_deeper(tmp_path: Path, server: IssuerServer) -> None:
    more = ", principal: client_id, roles: [/realm_access/roles, scope]"
    config = f"""
sources:
  mem: {{kind: memory, scheme: mem, resources: {{one: {{text: content}}}}}}
policy:
  - {{who: "role:reader", may: [read], what: "**"}}
serve:
  http:
    oauth:
      resource: {RESOURCE}
      issuers:
        company: {{issuer: "{server.url}"{more}}}
"""
    async with front(load_text(config, file=tmp_path / "octavo.yaml", environ={})) as (octavo, web):
        assert "content" in (await ask(web, server.token(realm_access={"roles": ["reader"]}))).body
        assert records(octavo)[-1]["who"] == "company:app"
        assert "content" in (await ask(web, server.token(scope="reader"))).body
        assert "content" not in (await ask(web, server.token(realm_access=["reader"]))).body


async def test_the_metadata_says_where_tokens_come_from(tmp_path: Path, server: IssuerServer) -> None:
    """RFC 9728, with the path of the resource inserted; no token is needed, but Host and method are looked at."""
    host = [("Host", "octavo.example")]
    async with front(configured(tmp_path, server.url)) as (_, web):
        for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"):
            reply = await web.ask(b"", host, method="GET", path=path)
            assert reply.status == 200
            assert reply.json == {
                "resource": RESOURCE,
                "authorization_servers": [server.url],
                "scopes_supported": ["octavo"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Octavo",
            }
            assert (await web.ask(b"", host, method="POST", path=path)).status == 405
            assert (await web.ask(b"", [("Host", "evil.example")], method="GET", path=path)).status == 421
        first = await web.ask(RAW, modern_headers(BODY))
        assert first.status == 401 and "error=" not in challenge(first) and "resource_metadata=" in challenge(first)


async def test_a_flood_of_unknown_keys_does_not_reach_the_issuer(tmp_path: Path) -> None:
    """S9: at most one question in ten seconds, whoever sends how many; good tokens all pass."""
    with issuer() as made, frozen_time() as clock:

        def token(kid: str = "ec") -> str:
            now = clock.wall()
            return made.token({"kid": kid}, iat=now, nbf=now, exp=now + 900)

        async with front(configured(tmp_path, made.url)) as (_, web):
            assert (await ask(web, token())).status == 200
            asked = made.asked[JWKS]
            for round_ in range(4):
                bad = [ask(web, token(f"unknown-{round_}-{i}")) for i in range(50)]
                replies = await asyncio.gather(*bad, ask(web, token()))
                assert [one.status for one in replies] == [401] * 50 + [200]
                assert made.asked[JWKS] - asked == round_
                clock.advance(keyset.COOLDOWN)
            assert made.asked[METADATA] == 1


async def test_a_rotated_key_is_found_and_the_old_one_ends(tmp_path: Path) -> None:
    with issuer() as made, frozen_time() as clock:

        def token(kid: str, number: int) -> str:
            now = clock.wall()
            return made.token({"kid": kid}, ec_key(number), iat=now, nbf=now, exp=now + 3000)

        async with front(configured(tmp_path, made.url)) as (_, web):
            assert (await ask(web, token("ec", 0))).status == 200
            made.jwks = {"keys": [jwk(ec_key(2), "next", "ES256")]}
            assert (await ask(web, token("next", 2))).status == 401  # asked a moment ago
            clock.advance(keyset.COOLDOWN)
            assert (await ask(web, token("next", 2))).status == 200
            assert (await ask(web, token("ec", 0))).status == 401


async def test_while_the_issuer_is_down_its_last_keys_are_used(tmp_path: Path) -> None:
    """For a day, also over a reload; then nobody gets in, which is said as an outage and not as a bad token."""
    with issuer() as made, frozen_time() as clock:

        def token() -> str:
            now = clock.wall()
            return made.token(iat=now, nbf=now, exp=now + 300)

        loaded = configured(tmp_path, made.url)
        async with front(loaded) as (octavo, web):
            assert (await ask(web, token())).status == 200
            made.answer = lambda _: (503, {}, b"")
            for _ in range(3):
                clock.advance(3600)
                assert (await ask(web, token())).status == 200
                await octavo.reload(loaded)
            made.answer = lambda _: (200, {}, b'{"keys": []}')  # no key at all is no news either
            clock.advance(3600)
            assert (await ask(web, token())).status == 200
            clock.advance(keyset.LAST_GOOD)
            reply = await ask(web, token())
            assert reply.status == 503 and int(dict(reply.headers)["retry-after"]) >= 1
            made.answer = lambda _: None
            clock.advance(keyset.COOLDOWN)
            assert (await ask(web, token())).status == 200


def elsewhere(made: IssuerServer, **metadata: Any) -> Callable[[str], tuple[int, dict[str, str], bytes] | None]:
    changed = json.dumps({**made.metadata, **metadata}).encode()
    return lambda path: (200, {}, changed) if path == METADATA else None


@pytest.mark.parametrize(
    "answer",
    [
        lambda made: lambda path: (302, {"Location": made.url + "/evil"}, b"") if path == JWKS else None,
        lambda made: lambda path: (200, {}, b"x" * (1 << 20)) if path == JWKS else None,
        lambda made: lambda path: (200, {}, b"[" * 100_000) if path == JWKS else None,
        lambda made: lambda path: (200, {"Content-Encoding": "gzip"}, b"x") if path == JWKS else None,
        lambda made: elsewhere(made, issuer=made.url + "/"),
        lambda made: elsewhere(made, jwks_uri="http://192.0.2.1/keys"),
        lambda made: elsewhere(made, jwks_uri="file:///etc/passwd"),
        lambda made: elsewhere(made, jwks_uri=["x"]),
    ],
    ids=["redirect", "huge", "deep", "compressed", "another issuer", "plain http", "a file", "a list"],
)
async def test_an_issuer_that_answers_nonsense_lets_nobody_in(tmp_path: Path, answer: Any) -> None:
    with issuer() as made:
        made.answer = answer(made)
        async with front(configured(tmp_path, made.url)) as (_, web):
            assert (await ask(web, made.token())).status == 503
        assert "/evil" not in made.asked


@pytest.mark.parametrize(
    "key",
    [
        lambda: jwk(rsa_key(1024), "weak", "RS256"),
        lambda: jwk(rsa_key(), "weak", "RS256", use="enc"),
        lambda: jwk(rsa_key(), "weak", "RS256", alg="RS512"),
        lambda: jwk(rsa_key(), "weak", "RS256", key_ops=["encrypt"]),
        lambda: jwk(rsa_key(), "weak", "RS256", d="AQAB"),
        lambda: {**jwk(rsa_key(), "weak", "RS256"), "n": "!"},
        lambda: {"kty": "oct", "kid": "weak", "k": b64(b"secret" * 8), "alg": "RS256"},
    ],
    ids=["RSA 1024", "to encrypt", "other algorithm", "no verify", "private", "unreadable", "symmetric"],
)
async def test_a_key_that_does_not_suit_is_never_used(tmp_path: Path, key: Any) -> None:
    with issuer() as made:
        made.jwks["keys"].append(key())
        bits = 1024 if key().get("n") == jwk(rsa_key(1024), "weak", "RS256")["n"] else 2048
        token = signed(made.header(alg="RS256", kid="weak"), made.claims(), rsa_key(bits), "RS256")
        async with front(configured(tmp_path, made.url)) as (_, web):
            assert (await ask(web, token)).status == 401
            assert (await ask(web, made.token())).status == 200


async def test_keys_from_a_file_need_no_issuer_to_be_up(tmp_path: Path, server: IssuerServer) -> None:
    (tmp_path / "jwks.json").write_text(json.dumps(server.jwks), encoding="utf-8")
    async with front(configured(tmp_path, "https://id.example", more=", jwks: file:jwks.json")) as (_, web):
        assert (await ask(web, server.token(iss="https://id.example"))).status == 200
        assert (await ask(web, server.token())).status == 401


async def test_a_configured_address_of_the_keys_is_asked_and_no_other(tmp_path: Path) -> None:
    with issuer() as made:
        async with front(configured(tmp_path, made.url, more=f', jwks: "{made.url}{JWKS}"')) as (_, web):
            assert (await ask(web, made.token())).status == 200
        assert made.asked == {JWKS: 1}


async def test_other_audiences_are_named_by_the_operator(tmp_path: Path, server: IssuerServer) -> None:
    async with front(configured(tmp_path, server.url, more=', other_audiences: "https://a.example"')) as (_, web):
        assert (await ask(web, server.token(aud=[RESOURCE, "https://a.example"]))).status == 200
        assert (await ask(web, server.token(aud=["https://a.example"]))).status == 401
        assert (await ask(web, server.token(aud=[RESOURCE, "https://b.example"]))).status == 401


async def test_a_change_of_what_is_settled_about_an_issuer_ends_what_it_opened(
    tmp_path: Path, server: IssuerServer
) -> None:
    """A principal of a token is looked up on every call too."""
    from octavo.core.errors import Unauthenticated

    async with front(configured(tmp_path, server.url)) as (octavo, _):
        alice = (await octavo.works.identity.by_credential(server.token())).principal
        robot = (await octavo.works.identity.by_credential(server.token(sub="robot"))).principal
        assert (robot.id, robot.roles) == ("brand", frozenset({"marketing", "people"}))
        await octavo.reload(configured(tmp_path, server.url))
        assert [octavo.works.identity.current(one) for one in (alice, robot)] == [alice, robot]
        await octavo.reload(configured(tmp_path, server.url, oauth="scopes: [more]"))
        for one in (alice, robot):
            with pytest.raises(Unauthenticated):
                octavo.works.identity.current(one)


async def test_a_token_is_nowhere_afterwards(
    tmp_path: Path, server: IssuerServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in a log at its most talkative, not in the audit, not in any file, not in an answer, not in what is kept."""
    caplog.set_level(logging.DEBUG)
    good, bad, key = server.token(), server.token(aud="x"), KEYS["BRAND_KEY"]
    async with Octavo(configured(tmp_path, server.url)) as octavo, Web(octavo, lane=True) as web:
        replies = [await ask(web, one) for one in (good, good, bad, key, key, "wrong-" + key)]
        octavo.ledger.flush()
        kept = repr(vars(web.app._entry)) + repr(octavo.works.identity._current) + repr(vars(octavo.works.cache))
    written = contents(tmp_path)
    assert written
    for secret in (good, bad, key):
        for piece in {secret, *(part for part in secret.split(".") if len(part) > 60)}:
            assert piece not in caplog.text and piece not in str(replies) and piece not in kept
            assert not any(piece.encode() in body for body in written)
