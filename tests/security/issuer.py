"""A real issuer of access tokens on this machine: metadata, a key set, and a pen to sign anything with."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

RESOURCE = "https://octavo.example/mcp"
METADATA = "/.well-known/oauth-authorization-server"
JWKS = "/keys"


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(value: Any) -> str:
    return b64(value if isinstance(value, bytes) else json.dumps(value).encode())


@cache
def _rsa_key(bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def _ec_key(number: int, curve: type[ec.EllipticCurve]) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve())


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    """The same one every time."""
    return _rsa_key(bits)


def ec_key(number: int = 0, curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    return _ec_key(number, curve)


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def signature(key: Any, algorithm: str, signed: bytes) -> bytes:
    """As the algorithm says, without any check whether the key suits it."""
    digest = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}.get(algorithm[2:], hashes.SHA256)()
    if isinstance(key, rsa.RSAPrivateKey):
        way: Any = padding.PKCS1v15()
        if algorithm.startswith("PS"):
            way = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
        return key.sign(signed, way, digest)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        size = (key.key_size + 7) // 8
        r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(digest)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")
    made: bytes = key.sign(signed)
    return made


def signed(header: Any, claims: Any, key: Any, algorithm: str) -> str:
    text = f"{encoded(header)}.{encoded(claims)}"
    return f"{text}.{b64(signature(key, algorithm, text.encode()))}"


def jwk(key: Any, kid: str, algorithm: str, **more: Any) -> dict[str, Any]:
    made = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    made.pop("key_ops", None)
    return {**made, "kid": kid, "use": "sig", **more}


def pem(key: Any) -> bytes:
    public: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return public


class IssuerServer:
    def __init__(self, url: str) -> None:
        self.url = url
        self.jwks: dict[str, Any] = {"keys": [jwk(ec_key(), "ec", "ES256"), jwk(rsa_key(), "rsa", "RS256")]}
        self.metadata: dict[str, Any] = {"issuer": url, "jwks_uri": url + JWKS}
        self.asked: Counter[str] = Counter()
        self.answer: Callable[[str], tuple[int, dict[str, str], bytes] | None] = lambda _: None  # instead of its own

    def claims(self, **other: Any) -> dict[str, Any]:
        now = int(time.time())
        made = {
            "iss": self.url, "sub": "alice", "aud": RESOURCE, "exp": now + 300, "iat": now, "nbf": now,
            "jti": "1", "client_id": "app", "scope": "octavo other", "groups": ["people"],
        }  # fmt: skip
        return {name: value for name, value in (made | other).items() if value is not ...}

    def header(self, **other: Any) -> dict[str, Any]:
        made = {"alg": "ES256", "typ": "at+jwt", "kid": "ec"}
        return {name: value for name, value in (made | other).items() if value is not ...}

    def token(self, header: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
        """A good one, but for what is said; `...` leaves a member out."""
        return signed(self.header(**(header or {})), self.claims(**claims), key or ec_key(), "ES256")

    def reply(self, path: str) -> tuple[int, dict[str, str], bytes]:
        self.asked[path] += 1
        own = {METADATA: self.metadata, JWKS: self.jwks}.get(path)
        return self.answer(path) or (404 if own is None else 200, {}, json.dumps(own).encode())


@contextmanager
def issuer() -> Iterator[IssuerServer]:
    made: list[IssuerServer] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = made[0].reply(self.path)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.append(IssuerServer(f"http://127.0.0.1:{server.server_port}"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made[0]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
