"""The shape of `serve.http`: where the server listens, and how it finds out who asks."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from octavo.config.reference import FilePath, resolve_document
from octavo.config.sections.web import check_network, not_public
from octavo.config.strict import Strict, written
from octavo.config.units import Address, Time, Timeout, parse_bind, parse_time, parse_timeout
from octavo.config.words import Count, Name, one_or_many
from octavo.core.issuers import may_be_fetched, on_this_machine

MAX_SKEW = 60.0
_SCOPE_EXTRA = frozenset('"\\')


def check_host(host: str) -> str:
    if not host or "/" in host or "*" in host or not host.isprintable() or " " in host:
        raise ValueError("must be a host, or host:port, such as octavo.example.com")
    return host


def _check_origin(origin: str) -> str:
    scheme, separator, host = origin.partition("://")
    if scheme not in ("http", "https") or not separator:
        raise ValueError("must be an origin such as https://console.example.com")
    check_host(host)
    return origin


def _check_server(url: str) -> str:
    if not may_be_fetched(url, loopback=True):
        raise ValueError("must be an https address (http only on this machine), such as https://id.example.com")
    return url


def _check_issuer(url: str) -> str:
    if "?" in url:
        raise ValueError("must have no query, as tokens name it in iss")
    return _check_server(url)


def _check_network(network: str) -> str:
    try:
        ipaddress.ip_network(network)
    except ValueError:
        raise ValueError("must be an address or a network such as 10.0.0.0/8") from None
    return network


def _check_scope(scope: str) -> str:
    if not scope.isascii() or not scope.isprintable() or " " in scope or _SCOPE_EXTRA.intersection(scope):
        raise ValueError("must be one scope, without blanks and quotes")
    return scope


Names: TypeAlias = Annotated[
    tuple[Name, ...], BeforeValidator(one_or_many, json_schema_input_type=str | list[str])
]  # fmt: skip
Algorithm: TypeAlias = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


class Issuer(Strict):
    issuer: Annotated[str, AfterValidator(_check_issuer)] = Field(
        description="The issuer, exactly as tokens name it in iss."
    )
    jwks: str | None = Field(
        default=None,
        repr=False,
        description="Where its public keys are: an https address, or file:PATH. Not given: where its metadata says.",
    )
    algorithms: tuple[Algorithm, ...] = Field(
        default=("RS256", "ES256"),
        min_length=1,
        description="How its tokens may be signed: RS, PS or ES with 256, 384 or 512, or EdDSA.",
        json_schema_extra={"default": "RS256, ES256"},
    )
    types: Names = Field(
        default=("at+jwt",),
        min_length=1,
        description="What its tokens may say in typ. Many issuers say JWT, for their identity tokens too.",
        json_schema_extra={"default": "at+jwt"},
    )
    principal: Name = Field(
        default="sub",
        description="The claim that says who it is; with a slash at its beginning, a JSON pointer into the claims.",
    )
    roles: Names = Field(default=(), description="Claims whose values are roles, such as groups or scope.")
    agents: dict[str, Name] = Field(
        default={}, description="Agents of this file, by what the principal claim says. Others are NAME:CLAIM."
    )
    other_audiences: Names = Field(
        default=(), description="What else a token may name in aud. By default it must be for this server alone."
    )
    inside: tuple[Annotated[str, AfterValidator(check_network)], ...] = Field(
        default=(),
        description="Networks that are not public and into which its addresses may lead, such as 10.1.2.0/24.",
    )

    @model_validator(mode="after")
    def _leads_where_it_may(self) -> Issuer:
        for url in (self.issuer, self.jwks):
            if url is None or url.startswith("{") or on_this_machine(url):
                continue
            if hint := not_public(url, self.inside):
                raise ValueError(hint)
        return self

    @field_validator("jwks")
    @classmethod
    def _can_be_found(cls, jwks: str | None, info: ValidationInfo) -> str | None:
        """An address, or the key set itself."""
        if jwks is None or not jwks.startswith("file:"):
            return None if jwks is None else _check_server(jwks)
        document = resolve_document(jwks, info)
        if not document.startswith("{"):
            raise ValueError("names a file that holds no JSON Web Key Set")
        return document


class OAuth(Strict):
    resource: Annotated[str, AfterValidator(_check_server)] = Field(
        description="The address of this server as clients know it and tokens name it in aud, such as "
        "https://octavo.example.com/mcp."
    )
    scopes: tuple[Annotated[str, AfterValidator(_check_scope)], ...] = Field(
        default=(), description="Scopes that every token must have."
    )
    issuers: dict[Name, Issuer] = Field(min_length=1, description="Whose tokens are accepted, by a name of yours.")
    skew: Time = written("30s", parse_time, "How much the clocks of issuers may differ, at most 60s.")

    @field_validator("resource")
    @classmethod
    def _is_canonical(cls, resource: str) -> str:
        parts = urlsplit(resource)
        if "?" in resource or parts.netloc != parts.netloc.lower() or resource.endswith("/"):
            raise ValueError("must be in small letters, with no query and no slash at its end")
        return resource

    @field_validator("skew")
    @classmethod
    def _is_small(cls, skew: float) -> float:
        if skew > MAX_SKEW:
            raise ValueError("must be at most 60s")
        return skew


class Tls(Strict):
    cert: FilePath = Field(description="The certificate and those that it hangs on, in one PEM file.")
    key: FilePath = Field(description="Its private key, in a PEM file without a password.")


class Peer(Strict):
    uid: Annotated[int, Field(ge=0, lt=1 << 32, strict=True)] = Field(description="A user of this machine, by number.")
    agent: Name = Field(description="The agent that this user is.")


class Deadlines(Strict):
    headers: Timeout = written("10s", parse_timeout, "Until a request has said what it wants.")
    body: Timeout = written("30s", parse_timeout, "Until all of a request has arrived.")
    send: Timeout = written("30s", parse_timeout, "How long an answer waits for a client that does not read.")


class Http(Strict):
    bind: Address = written(
        "127.0.0.1:8321", parse_bind, "Where the server listens with --http: host:port, or unix:/path for a socket."
    )
    allowed_hosts: tuple[Annotated[str, AfterValidator(check_host)], ...] = Field(
        default=(), description="Further Host headers that are accepted, beside the address itself and localhost."
    )
    allowed_origins: tuple[Annotated[str, AfterValidator(_check_origin)], ...] = Field(
        default=(), description="Origins of web pages that may connect."
    )
    trusted_proxies: tuple[Annotated[str, AfterValidator(_check_network)], ...] = Field(
        default=(),
        description="Addresses or networks whose X-Forwarded-For and X-Forwarded-Proto are believed. They are noted in "
        "the audit log and say nothing about who asks.",
    )
    deadlines: Deadlines = Field(default_factory=Deadlines, description="Slower connections are closed.")
    connections: Count = Field(
        default=4096,
        description="Connections that may be open at once. Then whoever has most loses the longest idle one.",
    )
    metrics: Literal["off", "admin", "open"] = Field(
        default="off",
        description="Numbers for Prometheus at /metrics: for agents whom a rule grants admin on server://metrics, or "
        "open to whoever can connect.",
    )
    tls: Tls | None = Field(default=None, description="Certificate and key. Not given: plain HTTP.")
    oauth: OAuth | None = Field(default=None, description="Accept access tokens of these issuers, beside keys.")
    peers: tuple[Peer, ...] = Field(
        default=(), description="On a unix socket: who a user of this machine is, if it sends no key."
    )
