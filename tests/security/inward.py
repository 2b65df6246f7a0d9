"""Addresses that lead inward, in many spellings, and the URLs that hide them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

INWARD_4 = (
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "10.255.255.254", "100.64.0.1", "100.100.100.200",
    "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.254", "192.0.0.192",
    "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255", "168.63.129.16", "192.88.99.1",
)  # fmt: skip
INWARD_6 = (
    "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1", "2001:db8::1", "100::1", "2001::1",
    "2001:10::1", "3fff::1", "5f00::1", "64:ff9b:1::1", "2001:0:53aa:64c:0:0:80ff:fffe", "fe80::5efe:7f00:1",
    "2a00::200:5efe:7f00:1",
)  # fmt: skip
OTHER_SCHEMES = (
    "file:///etc/passwd", "gopher://127.0.0.1:6379/_x", "dict://127.0.0.1:11211/", "ftp://127.0.0.1/", "unix:///run/d.sock",
    "data:text/plain,x", "javascript:alert(1)", "jar:http://127.0.0.1!/", "ldap://127.0.0.1/", "netdoc:///etc/passwd",
    "//127.0.0.1/", "http:/127.0.0.1/", "http:127.0.0.1/", "http:///127.0.0.1/", "127.0.0.1", "localhost", "", "http://",
)  # fmt: skip
NAMES = ("localhost", "LOCALHOST", "localhost.", "inside.test", "both.test", "six.test", "mapped.test", "ip6-localhost")


def hosts(text: str) -> Iterator[str]:
    """One IPv4 address as browsers, resolvers and libraries read it."""
    address = IPv4Address(text)
    a, b, c, d = address.packed
    number = int(address)
    yield from (text, f"{text}.", str(number), hex(number), f"0{number:o}", f"0x{a:02x}.0x{b:02x}.0x{c:02x}.0x{d:02x}")
    yield from (f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"{a}.{b}.{(c << 8) | d}", f"{a}.{(b << 16) | (c << 8) | d}")
    yield from (f"{a:03d}.{b:03d}.{c:03d}.{d:03d}", f"0x{a:x}.{b}.{c}.{d}", f"000{a:o}.{b}.{c}.{d}")
    yield "".join(chr(ord(x) + 0xFEE0) if x.isdigit() else "。" for x in text)
    yield "".join("⓪①②③④⑤⑥⑦⑧⑨"[int(x)] if x.isdigit() else x for x in text)
    yield "".join(f"%{ord(x):02x}" for x in text)
    six = (
        f"::ffff:{text}", f"::ffff:{a:02x}{b:02x}:{c:02x}{d:02x}", f"::{text}", f"64:ff9b::{text}", f"::ffff:0:{text}",
        f"2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1", f"64:ff9b:1::{text}", f"fe80::5efe:{text}",
        str(IPv6Address((0x20010000 << 96) | (number ^ 0xFFFFFFFF))),
    )  # fmt: skip
    yield from (f"[{one}]" for one in six)


def urls(*, seed: int = 7) -> list[str]:
    """Different ones, all of which lead inward or nowhere."""
    made = [f"http://{host}/" for text in INWARD_4 for host in hosts(text)]
    made += [f"https://[{text}]/" for text in INWARD_6]
    made += [f"http://[{text}%25lo]/" for text in INWARD_6[:4]]
    made += [
        f"{scheme}://{name}{port}/x" for scheme in ("http", "https") for name in NAMES for port in ("", ":80", ":6379")
    ]
    for text in ("127.0.0.1", "169.254.169.254", "[::1]", "localhost"):
        made += [
            f"http://good.test@{text}/", f"http://{text}#@good.test/", f"http://good.test:80@{text}/",
            f"http://{text}\\@good.test/", f"http://good.test\\@{text}/", f"http://{text}?@good.test/",
            f"http://{text};good.test/", f"http://{text} good.test/", f"http://{text}\t/", f"http://{text}\r\nHost: x/",
            f"http://{text}%00.good.test/", f"http://{text}%2f.good.test/", f"hTTp://{text}/", f"http://{text}:0/",
            f"http://{text}:99999/", f"http://{text}:22/", f"http://[{text}]/", f"http://{text}.:80/", f" http://{text}/",
            f"http://good.test#.{text}@{text}/", f"http://{text}:80:80/", f"http://{text}/../", f"//{text}/",
            f"http://\u200b{text}/", f"http://{text}\u3002/", f"http://{text}/%0d%0aX: y",
        ]  # fmt: skip
    made += OTHER_SCHEMES
    every = list(dict.fromkeys(made))
    random.Random(seed).shuffle(every)
    return every
