"""Where the keys of an issuer may be fetched from."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

LONGEST = 2048


def may_be_fetched(url: str, *, loopback: bool) -> bool:
    """Whether it is https or, where `loopback` says so, a plain server of this machine."""
    if len(url) > LONGEST or not url.isascii() or any(c <= " " or c in '"\\' for c in url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if not parts.hostname or "@" in parts.netloc or parts.fragment or port == 0:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and loopback and is_loopback(parts.hostname))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def on_this_machine(url: str) -> bool:
    return is_loopback(urlsplit(url).hostname or "")


def metadata_of(issuer: str) -> tuple[str, ...]:
    """Where an issuer describes itself (RFC 8414; OpenID Connect Discovery), the likeliest first."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    )
    return tuple(dict.fromkeys(places))
