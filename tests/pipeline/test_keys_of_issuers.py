"""Which keys of a published set count, and for what (decision 31)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from octavo.pipeline.identity.tokens.keys import MOST_KEYS, keys_in

ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
RSA = rsa.generate_private_key(65537, 2048)
SMALL = rsa.generate_private_key(65537, 1024)  # it must be refused
CURVE = ec.generate_private_key(ec.SECP256R1())


def written(algorithm: Any, key: Any, **more: object) -> dict[str, Any]:
    return {"kid": "k", **json.loads(algorithm.to_jwk(key)), **more}


def test_a_key_without_an_algorithm_is_there_for_each_that_suits_it() -> None:
    found = keys_in(json.dumps({"keys": [written(RSAAlgorithm, RSA.public_key())]}), ALGORITHMS)
    assert {*found} == {("k", "RS256"), ("k", "PS256")}


@pytest.mark.parametrize(
    "key",
    [
        written(RSAAlgorithm, SMALL.public_key()),
        written(RSAAlgorithm, RSA),
        written(ECAlgorithm, CURVE),
        written(RSAAlgorithm, RSA.public_key(), use="enc"),
        written(RSAAlgorithm, RSA.public_key(), key_ops=["encrypt"]),
        written(RSAAlgorithm, RSA.public_key(), alg="RS512"),
        written(ECAlgorithm, ec.generate_private_key(ec.SECP256K1()).public_key()),
        {"kid": "k", "kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"},
        {name: value for name, value in written(ECAlgorithm, CURVE.public_key()).items() if name != "kid"},
    ],
    ids=["small", "private RSA", "private EC", "to encrypt", "operation", "other algorithm", "other curve",
         "symmetric", "without kid"],
)  # fmt: skip
def test_a_key_that_must_not_count_does_not(key: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no key that can be used"):
        keys_in(json.dumps({"keys": [key]}), ALGORITHMS)
    good = written(ECAlgorithm, CURVE.public_key(), kid="good")
    assert {*keys_in(json.dumps({"keys": [key, good]}), ALGORITHMS)} == {("good", "ES256")}


def test_a_set_of_too_many_keys_is_not_looked_at() -> None:
    key = written(ECAlgorithm, CURVE.public_key())
    with pytest.raises(ValueError, match="no JSON Web Key Set"):
        keys_in(json.dumps({"keys": [key] * (MOST_KEYS + 1)}), ALGORITHMS)
