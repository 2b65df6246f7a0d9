"""The public keys of an issuer, out of a JSON Web Key Set. What could sign, or is too weak, is left out."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

logger = logging.getLogger(__name__)

LEAST_RSA_BITS = 2048
MOST_RSA_BITS = 8192  # a larger one only costs time
MOST_KEYS = 100
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})

# Whether a signature is one of these bytes.
Verify = Callable[[bytes, bytes], bool]
Keys = Mapping[tuple[str, str], Verify]  # by kid and algorithm


def keys_in(text: str | bytes, algorithms: Collection[str]) -> Keys:
    """Raises ValueError for text that is no key set, or has no key that can be used."""
    document = json.loads(text)
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list) or len(listed) > MOST_KEYS:
        raise ValueError("is no JSON Web Key Set")
    found: dict[tuple[str, str], Verify] = {}
    for key in listed:
        for algorithm in algorithms:
            if isinstance(key, dict) and _suits(key, algorithm):
                verify = _verifying(key, algorithm)
                if verify is not None:
                    found.setdefault((key["kid"], algorithm), verify)
    if not found:
        raise ValueError("has no key that can be used")
    return found


def _suits(key: Mapping[str, Any], algorithm: str) -> bool:
    operations = key.get("key_ops", ["verify"])
    return (
        isinstance(key.get("kid"), str)
        and key.get("kty") == _TYPES[algorithm[:2]]
        and key.get("crv") == _CURVES.get(algorithm)
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and isinstance(operations, list)
        and "verify" in operations
        and not _PRIVATE.intersection(key)
    )


def _verifying(key: Mapping[str, Any], algorithm: str) -> Verify | None:
    method: Any = jwt.get_algorithm_by_name(algorithm)
    try:
        public = method.from_jwk(dict(key))
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        logger.warning("a key of an issuer was left out: it cannot be read")
        return None
    if isinstance(public, RSAPublicKey) and not LEAST_RSA_BITS <= public.key_size <= MOST_RSA_BITS:
        logger.warning("a key of an issuer was left out: RSA with %d bits", public.key_size)
        return None

    def verify(signed: bytes, signature: bytes) -> bool:
        return bool(method.verify(signed, public, signature))

    return verify
