"""What an operator settles about one issuer, and how its claims are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from octavo.core.errors import Unauthenticated

MAX_NAME = 256  # characters of an id or a role
MAX_ROLES = 256


class Issuer(Struct, frozen=True):
    name: str  # ours: what the ids of its subjects begin with
    issuer: str  # exactly as `iss` says it
    algorithms: tuple[str, ...]
    types: tuple[str, ...]  # of tokens, in small letters, such as at+jwt
    jwks: str = ""  # where the keys are; empty: where the issuer's metadata says
    keys: str = ""  # the keys themselves, as a JSON Web Key Set
    other_audiences: tuple[str, ...] = ()  # that a token may name beside us
    principal: str = "sub"  # the claim that says who it is
    roles: tuple[str, ...] = ()  # the claims that hold roles
    agents: Mapping[str, str] = field(default_factory=dict[str, str])  # agent ids by what the principal claim says
    inside: tuple[str, ...] = ()  # networks that are not public, into which its own hosts may lead

    def subject(self, claims: Mapping[str, Any]) -> str:
        """Raises Unauthenticated where the claim is missing, or no name."""
        value = _claim(claims, self.principal)
        if not isinstance(value, str) or not is_name(value):
            raise Unauthenticated("The token does not say who it is for in the claim that is used here")
        return value

    def roles_in(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """Raises Unauthenticated for what is neither text nor a list of names."""
        found: list[str] = []
        for claim in self.roles:
            found += words(_claim(claims, claim))
        if len(found) > MAX_ROLES or not all(map(is_name, found)):
            raise Unauthenticated("The token has roles that cannot be used here")
        return frozenset(found)


def words(value: Any) -> list[str]:
    """Names in a list, or in a text with blanks between them. Raises Unauthenticated for anything else."""
    if value is None:
        return []
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    raise Unauthenticated("The token has a claim of the wrong type")


def is_name(text: str) -> bool:
    return 0 < len(text) <= MAX_NAME and text.isprintable() and " " not in text


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """By its name; or, where it begins with a slash, by JSON pointer, such as /realm_access/roles."""
    if not name.startswith("/"):
        return claims.get(name)
    value: Any = claims
    for part in name[1:].split("/"):
        value = value.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return value
