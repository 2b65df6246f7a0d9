"""The shape of `web`: which hosts may be asked, and how."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from octavo.config.reference import Secret
from octavo.config.strict import Strict, written
from octavo.config.units import Size, Timeout, parse_size, parse_timeout
from octavo.config.words import Count, Flag

_HOST = re.compile(
    r"(\*|(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*|[0-9a-f:.]*:[0-9a-f:.]*)\Z"
)
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}\Z")
# Of these a connection is made, and a caller who is believed; nobody sets them by hand.
_NEVER = {
    "host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect", "keep-alive",
    "proxy-authorization", "proxy-connection", "accept-encoding",
}  # fmt: skip


def _check_host(host: str) -> str:
    if not _HOST.match(host):
        raise ValueError(
            "must be a host in small letters such as api.example.com, *.example.com, or * for all public ones"
        )
    return host


def check_network(network: str) -> str:
    try:
        ipaddress.ip_network(network, strict=True)
    except ValueError:
        raise ValueError("must be a network such as 10.1.2.0/24, with no bits behind its length") from None
    return network


def not_public(url: str, inside: Iterable[str]) -> str:
    """What to write where an address is a number that is not public and that `inside` does not allow; else nothing.
    What a name leads to is seen when it is asked for."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return ""
    if address.is_global or any(address in ipaddress.ip_network(one) for one in inside):
        return ""
    return f"{host} is no public address; allow it with inside: [{address}/{address.max_prefixlen}]"


def _check_header(name: str) -> str:
    if not _HEADER.match(name) or name.lower() in _NEVER:
        raise ValueError("is no header that can be set")
    return name.lower()


Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
HeaderName = Annotated[str, AfterValidator(_check_header)]


class WebHost(Strict):
    host: Annotated[str, AfterValidator(_check_host)] = Field(
        description="api.example.com; *.example.com for all below it; or * for every public host. The first that fits."
    )
    methods: tuple[Method, ...] = Field(
        default=("GET", "HEAD"),
        min_length=1,
        description="How it may be asked.",
        json_schema_extra={"default": "GET, HEAD"},
    )
    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = Field(
        default=(443,), description="Where it may be asked.", json_schema_extra={"default": "443"}
    )
    plain: Flag = Field(default=False, description="Whether http is allowed too, then on port 80 as well.")
    websocket: Flag = Field(default=False, description="Whether WebSockets may be opened.")
    headers: dict[HeaderName, Secret] = Field(
        default={}, description="Sent with every request to it and never elsewhere, each as ${NAME} or file:PATH."
    )
    takes: tuple[HeaderName, ...] = Field(
        default=(), description="Further headers that callers may give, beside harmless ones such as accept."
    )

    @model_validator(mode="after")
    def _keeps_secrets(self) -> WebHost:
        if self.headers and (self.plain or "*" in self.host):
            raise ValueError("headers are secrets of one host: they need its full name and no plain: true")
        return self


class Web(Strict):
    hosts: tuple[WebHost, ...] = Field(default=(), description="Hosts that may be asked. No other ever is.")
    inside: tuple[Annotated[str, AfterValidator(check_network)], ...] = Field(
        default=(),
        description="Networks that are not public and may be reached nevertheless, such as 10.1.2.0/24.",
    )
    time: Timeout = written("10s", parse_timeout, "How long a request may take, redirects included.")
    answer: Size = written("8MiB", parse_size, "Largest body of an answer, decoded.")
    body: Size = written("1MiB", parse_size, "Largest body of a request, and largest message of a WebSocket.")
    redirects: Annotated[int, Field(ge=0, le=10)] = Field(default=3, description="How many are followed.")
    connections: Count = Field(default=16, description="Connections at once.")
    sockets: Count = Field(default=4, description="WebSockets that one caller may have open.")
    idle: Timeout = written("5m", parse_timeout, "A WebSocket that its caller does not ask for is closed after it.")
