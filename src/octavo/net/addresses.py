"""Which addresses lie outside: those of the public internet, and nothing that only looks like one.

A table of our own: what Python calls global includes relays into other networks and differs between its versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_INWARD_4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",  # what a cloud tells its machines, at a public address
    )
)  # fmt: skip
_OUTWARD_6: Final = IPv6Network("2000::/3")
_INWARD_6: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # Teredo and other protocols
        "2001:db8::/32",
        "2002::/16",  # 6to4: leads to any IPv4 address
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)  # before the last 32 bits, which are an IPv4 address


def outward(address: Address) -> bool:
    """Whether it is a public address, to which a request may go without further ado."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _INWARD_4)
    if address.scope_id is not None:
        return False
    inner = address.ipv4_mapped or (IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None)
    if inner is not None:  # what a network without IPv4 reaches by a gateway
        return outward(inner)
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return False
    return address in _OUTWARD_6 and not any(address in network for network in _INWARD_6)


def vetted(texts: Sequence[str], allowed: Sequence[Network]) -> list[Address]:
    """All of them, if each may be reached; none if one may not: a name that leads inward as well is a trap."""
    found: list[Address] = []
    for text in texts:
        try:
            address = ip_address(text)
        except ValueError:
            return []
        if not outward(address) and not any(_in(address, network) for network in allowed):
            return []
        found.append(address)
    return found


def _in(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def network(text: str) -> Network:
    """Raises ValueError."""
    return ip_network(text, strict=True)
