"""From a text to where a request goes. Strict: what two parsers could read in two ways is refused."""

from __future__ import annotations

import re
import string
from ipaddress import IPv4Address
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from octavo.core.errors import InvalidParams

LONGEST: Final = 4096
_URL: Final = re.compile(
    r"(?P<scheme>https?|wss?)://(?P<host>\[[0-9a-f:.]+\]|[^\s/?#:@\\\[\]]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_NUMBER: Final = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_UNRESERVED: Final = frozenset("-._~0123456789" + string.ascii_letters)
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_SLASH: Final = re.compile(r"[/\\]")
_KEPT: Final = "/%:@!$&'()*+,;=~-._?"  # of a path and a query


class Url(NamedTuple):
    scheme: str
    host: str  # in small letters; an IPv6 address without brackets
    port: int
    target: str  # path and query

    @property
    def secure(self) -> bool:
        return self.scheme in ("https", "wss")

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"


def spelled_url(text: str) -> Url:
    """Raises InvalidParams for any spelling but the usual one too: rules are about what the caller wrote."""
    url = parse_url(text)
    rest = text.removeprefix(url.origin)
    hidden = any(chr(int(code, 16)) in _UNRESERVED for code in _ESCAPE.findall(rest))
    if (rest == text or rest[:1] not in ("", "/", "?")) or "#" in rest or hidden:
        target = _ESCAPE.sub(lambda found: _plain(found[0]), url.target)
        raise InvalidParams(f"Write the URL as {url.origin}{target}")
    return url


def parse_url(text: str) -> Url:
    """Raises InvalidParams."""
    found = _URL.match(text) if len(text) <= LONGEST else None
    if found is None or any(ord(c) < 33 or ord(c) == 127 for c in text) or "\\" in text:
        raise InvalidParams(
            "The URL must be written as https://host/path: no user name, no blanks, no backslash, "
            f"at most {LONGEST} characters"
        )
    scheme = found["scheme"].lower()
    port = int(found["port"]) if found["port"] else _PORTS[scheme]
    if not 0 < port < 65536:
        raise InvalidParams("The port of the URL must be 1 to 65535")
    try:
        query = "" if found["query"] is None else f"?{quote(found['query'], safe=_KEPT)}"
        target = quote(found["path"] or "/", safe=_KEPT) + query
    except UnicodeEncodeError:
        raise InvalidParams("The URL must be text that UTF-8 can write") from None
    if any(step in (".", "..") for step in _SLASH.split(unquote(target.partition("?")[0]))):
        raise InvalidParams("The path of the URL must not hold the steps . and ..: write where they lead")
    return Url(scheme, _host(found["host"]), port, target)


def _plain(escape: str) -> str:
    character = chr(int(escape[1:], 16))
    return character if character in _UNRESERVED else escape


def _host(text: str) -> str:
    if text.startswith("["):
        return text[1:-1].lower()
    try:
        host = text.lower() if text.isascii() else text.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise InvalidParams("The host of the URL is no name that the internet knows") from None
    host = host.removesuffix(".")
    *_, last = labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.match(label) for label in labels):
        raise InvalidParams("The host of the URL is no name that the internet knows")
    if _NUMBER.match(last) and not _is_address(host):  # 010.0.0.1 is two addresses, to two readers
        raise InvalidParams("An address in a URL must be four numbers from 0 to 255, without leading zeros")
    return host


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True
