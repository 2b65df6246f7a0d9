"""A table of bad tokens. Each is good but for what its name says, and signed with the right key unless it says so."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from tests.security.issuer import (
    JWKS,
    RESOURCE,
    IssuerServer,
    b64,
    ec_key,
    encoded,
    jwk,
    pem,
    rsa_key,
    signed,
    unb64,
)  # fmt: skip

from octavo.pipeline.identity.tokens.verify import MAX_TOKEN

N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # the order of P-256

Bad = Callable[[IssuerServer], str]


def resigned(token: str, change: Callable[[bytes], bytes]) -> str:
    head, body, sign = token.split(".")
    return f"{head}.{body}.{b64(change(unb64(sign)))}"


def unsigned(server: IssuerServer, algorithm: str, sign: str) -> str:
    return f"{encoded(server.header(alg=algorithm))}.{encoded(server.claims())}.{sign}"


def hmacked(server: IssuerServer, secret: bytes) -> str:
    text = f"{encoded(server.header(alg='HS256'))}.{encoded(server.claims())}"
    return f"{text}.{b64(hmac.digest(secret, text.encode(), hashlib.sha256))}"


def raw_claims(server: IssuerServer, text: str) -> str:
    return signed(server.header(), text.encode(), ec_key(), "ES256")


def raw_header(server: IssuerServer, text: str) -> str:
    return signed(text.encode(), server.claims(), ec_key(), "ES256")


def patched(server: IssuerServer, old: str, new: str) -> str:
    return raw_claims(server, json.dumps(server.claims()).replace(old, new))


def embedding(server: IssuerServer, **more: Any) -> str:
    """Signed with a key that the token itself brings, or leads to."""
    return signed(server.header(**{"kid": "mine", **more}), server.claims(), ec_key(9), "ES256")


def by_rsa(server: IssuerServer, algorithm: str) -> str:
    return signed(server.header(alg=algorithm, kid="rsa"), server.claims(), rsa_key(), algorithm)


def der(raw: bytes) -> bytes:
    return encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))


def swapped(server: IssuerServer, claims: str) -> str:
    head, _, sign = server.token().split(".")
    return f"{head}.{claims}.{sign}"


def last_character(token: str) -> str:
    """The same bytes in another spelling: bits that decoding drops are set."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + alphabet[alphabet.index(token[-1]) ^ 1]


BAD: dict[str, Bad] = {
    # the algorithm
    "alg none": lambda s: unsigned(s, "none", ""),
    "alg none with a signature": lambda s: unsigned(s, "none", "AAAA"),
    "alg None": lambda s: unsigned(s, "None", "AAAA"),
    "alg empty": lambda s: s.token({"alg": ""}),
    "alg missing": lambda s: s.token({"alg": ...}),
    "alg null": lambda s: s.token({"alg": None}),
    "alg list": lambda s: s.token({"alg": ["ES256"]}),
    "alg in small letters": lambda s: s.token({"alg": "es256"}),
    "HS256 with the public key": lambda s: hmacked(s, pem(ec_key())),
    "HS256 with the public RSA key": lambda s: hmacked(s, pem(rsa_key())),
    "HS256 with the JWK": lambda s: hmacked(s, json.dumps(s.jwks["keys"][0]).encode()),
    "HS256 with an empty key": lambda s: hmacked(s, b""),
    "an algorithm that is not listed": lambda s: by_rsa(s, "PS256"),
    "RS512 of a key for RS256": lambda s: by_rsa(s, "RS512"),
    "the kid of another kind of key": lambda s: s.token({"kid": "rsa"}),
    "RS256 signed by EC": lambda s: s.token({"alg": "RS256", "kid": "rsa"}),
    "a curve that is not its algorithm's": lambda s: signed(s.header(), s.claims(), ec_key(0, ec.SECP384R1), "ES384"),
    "a curve with another field": lambda s: signed(s.header(), s.claims(), ec_key(0, ec.SECP256K1), "ES256"),
    # the signature
    "another key": lambda s: s.token(key=ec_key(1)),
    "no signature": lambda s: s.token().rpartition(".")[0] + ".",
    "only two parts": lambda s: s.token().rpartition(".")[0],
    "four parts": lambda s: s.token() + ".AAAA",
    "five parts, as a JWE": lambda s: f"{encoded({'alg': 'RSA-OAEP', 'enc': 'A256GCM', 'kid': 'rsa'})}.AA.AA.AA.AA",
    "a nested JWT": lambda s: signed(s.header(cty="JWT"), s.token().encode(), ec_key(), "ES256"),
    "one bit of the signature": lambda s: resigned(s.token(), lambda x: bytes([x[0] ^ 1]) + x[1:]),
    "the signature's last spelling": lambda s: last_character(s.token()),
    "a signature of zeros": lambda s: resigned(s.token(), lambda x: bytes(64)),
    "r is zero": lambda s: resigned(s.token(), lambda x: bytes(32) + x[32:]),
    "s is zero": lambda s: resigned(s.token(), lambda x: x[:32] + bytes(32)),
    "r and s are the order": lambda s: resigned(s.token(), lambda x: N.to_bytes(32, "big") * 2),
    "r and s swapped": lambda s: resigned(s.token(), lambda x: x[32:] + x[:32]),
    "a longer signature": lambda s: resigned(s.token(), lambda x: x + b"\0"),
    "a shorter signature": lambda s: resigned(s.token(), lambda x: x[:-1]),
    "a signature in DER": lambda s: resigned(s.token(), der),
    "claims that were changed": lambda s: swapped(s, encoded(s.claims(sub="root"))),
    "a header that was changed": lambda s: ".".join([encoded(s.header(kid="ec", x="y")), *s.token().split(".")[1:]]),
    "padding": lambda s: s.token() + "==",
    "standard base64": lambda s: s.token().replace("-", "+").replace("_", "/") + "+",
    "white space in the middle": lambda s: s.token().replace(".", ". "),
    # which key
    "kid missing": lambda s: s.token({"kid": ...}),
    "kid null": lambda s: s.token({"kid": None}),
    "kid a number": lambda s: s.token({"kid": 0}),
    "kid empty": lambda s: s.token({"kid": ""}),
    "kid unknown": lambda s: s.token({"kid": "nope"}),
    "kid a path": lambda s: s.token({"kid": "../../../../dev/null"}),
    "kid SQL": lambda s: s.token({"kid": "x' UNION SELECT 'ec"}),
    "kid a URL": lambda s: s.token({"kid": s.url + JWKS}),
    "kid a command": lambda s: s.token({"kid": "|whoami"}),
    "kid with NUL": lambda s: s.token({"kid": "ec\0"}),
    "jwk in the header": lambda s: embedding(s, jwk=jwk(ec_key(9), "mine", "ES256")),
    "jwk in the header, of the right kid": lambda s: embedding(s, kid="ec", jwk=jwk(ec_key(9), "ec", "ES256")),
    "jku": lambda s: embedding(s, jku=s.url + "/evil"),
    "jku of the issuer": lambda s: s.token({"jku": s.url + JWKS}),
    "x5u": lambda s: embedding(s, x5u=s.url + "/evil"),
    "x5c": lambda s: embedding(s, x5c=["AAAA"]),
    "crit": lambda s: s.token({"crit": ["exp"], "exp": 1}),
    "crit empty": lambda s: s.token({"crit": []}),
    "b64 false": lambda s: s.token({"b64": False}),
    "zip": lambda s: s.token({"zip": "DEF"}),
    # the type
    "typ missing": lambda s: s.token({"typ": ...}),
    "typ JWT": lambda s: s.token({"typ": "JWT"}),
    "typ of an identity token": lambda s: s.token({"typ": "id+jwt"}),
    "typ of a logout token": lambda s: s.token({"typ": "logout+jwt"}),
    "typ a list": lambda s: s.token({"typ": ["at+jwt"]}),
    # the issuer
    "iss missing": lambda s: s.token(iss=...),
    "iss of another": lambda s: s.token(iss="https://evil.example"),
    "iss with a slash": lambda s: s.token(iss=s.url + "/"),
    "iss in capitals": lambda s: s.token(iss=s.url.upper()),
    "iss a list": lambda s: s.token(iss=[s.url]),
    "iss null": lambda s: s.token(iss=None),
    # the audience
    "aud missing": lambda s: s.token(aud=...),
    "aud of another": lambda s: s.token(aud="https://other.example/mcp"),
    "aud with a slash": lambda s: s.token(aud=RESOURCE + "/"),
    "aud without its path": lambda s: s.token(aud="https://octavo.example"),
    "aud in capitals": lambda s: s.token(aud=RESOURCE.upper()),
    "aud that begins alike": lambda s: s.token(aud=RESOURCE + ".evil.example"),
    "aud empty": lambda s: s.token(aud=""),
    "aud an empty list": lambda s: s.token(aud=[]),
    "aud of us and another": lambda s: s.token(aud=[RESOURCE, "https://other.example"]),
    "aud a list in a list": lambda s: s.token(aud=[[RESOURCE]]),
    "aud an object": lambda s: s.token(aud={RESOURCE: True}),
    "aud a list with a number": lambda s: s.token(aud=[RESOURCE, 1]),
    "aud with white space": lambda s: s.token(aud=f"{RESOURCE} x"),
    "aud a star": lambda s: s.token(aud="*"),
    # the time
    "expired": lambda s: s.token(exp=s.claims()["exp"] - 400, iat=s.claims()["iat"] - 400),
    "expired long ago": lambda s: s.token(exp=1),
    "exp missing": lambda s: s.token(exp=...),
    "exp null": lambda s: s.token(exp=None),
    "exp text": lambda s: s.token(exp="9999999999"),
    "exp true": lambda s: s.token(exp=True),
    "exp negative": lambda s: s.token(exp=-1),
    "exp without end": lambda s: patched(s, f'"exp": {s.claims()["exp"]}', '"exp": Infinity'),
    "exp no number": lambda s: patched(s, f'"exp": {s.claims()["exp"]}', '"exp": NaN'),
    "exp too large": lambda s: patched(s, f'"exp": {s.claims()["exp"]}', '"exp": 1e300'),
    "exp with many digits": lambda s: patched(s, f'"exp": {s.claims()["exp"]}', '"exp": ' + "9" * 4500),
    "exp before iat": lambda s: s.token(iat=s.claims()["iat"] + 20, exp=s.claims()["iat"] + 10),
    "iat missing": lambda s: s.token(iat=...),
    "iat in the future": lambda s: s.token(iat=s.claims()["iat"] + 3600, exp=s.claims()["iat"] + 7200),
    "not yet valid": lambda s: s.token(nbf=s.claims()["iat"] + 200),
    "nbf text": lambda s: s.token(nbf="now"),
    "nbf null": lambda s: s.token(nbf=None),
    # whom it speaks of
    "sub missing": lambda s: s.token(sub=...),
    "sub empty": lambda s: s.token(sub=""),
    "sub a number": lambda s: s.token(sub=7),
    "sub a list": lambda s: s.token(sub=["alice"]),
    "sub with blanks": lambda s: s.token(sub="al ice"),
    "sub with a line end": lambda s: s.token(sub="alice\nroot"),
    "sub very long": lambda s: s.token(sub="a" * 300),
    "roles that are objects": lambda s: s.token(groups=[{"name": "people"}]),
    "roles that are a number": lambda s: s.token(groups=1),
    "roles with line ends": lambda s: s.token(groups=["people\n"]),
    "too many roles": lambda s: s.token(groups=[f"r{i}" for i in range(300)]),
    "scope an object": lambda s: s.token(scope={"octavo": True}),
    # the text
    "duplicated claims": lambda s: patched(s, '"sub": "alice"', '"sub": "alice", "sub": "root"'),
    "a duplicated audience": lambda s: patched(s, '"aud"', '"aud": "https://other.example", "aud"'),
    "a duplicated header": lambda s: raw_header(s, '{"alg":"none","alg":"ES256","typ":"at+jwt","kid":"ec"}'),
    "an escaped duplicate": lambda s: patched(s, '"sub": "alice"', '"sub": "alice", "\\u0073ub": "root"'),
    "claims that are a list": lambda s: signed(s.header(), [s.claims()], ec_key(), "ES256"),
    "claims that are text": lambda s: signed(s.header(), "alice", ec_key(), "ES256"),
    "claims that are no JSON": lambda s: raw_claims(s, "{"),
    "claims in UTF-16": lambda s: signed(s.header(), json.dumps(s.claims()).encode("utf-16"), ec_key(), "ES256"),
    "claims with a BOM": lambda s: raw_claims(s, "\ufeff" + json.dumps(s.claims())),
    "claims that are no UTF-8": lambda s: signed(s.header(), b'{"sub":"\xff"}', ec_key(), "ES256"),
    "deep claims": lambda s: s.token(deep=json.loads("[" * 50 + "]" * 50)),
    "very deep claims": lambda s: raw_claims(s, '{"a":' + "[" * 2900 + "]" * 2900 + "}"),
    "a huge token": lambda s: s.token(pad="x" * MAX_TOKEN),
    "a token of a megabyte": lambda s: s.token(pad="x" * (1 << 20)),
    "only dots": lambda s: "..",
    "empty parts": lambda s: "..".join(["", ""]) + ".",
    "a token with a mark at its end": lambda s: s.token() + "\x00",
    "another spelling of a dot": lambda s: s.token().replace(".", "%2e"),
}  # fmt: skip
