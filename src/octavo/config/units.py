"""Sizes, times, rates and addresses as people write them."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, PlainSerializer, PlainValidator

from octavo.core.sizes import GIB, KIB, MIB

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMG]i?)?B?\Z")
_SIZE_FACTORS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "Ki": KIB, "Mi": MIB, "Gi": GIB}
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m|h)\Z")
_TIME_FACTORS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_AGE = re.compile(r"([1-9]\d{0,5}) ?(h|d)\Z")
_RATE = re.compile(r"(\d+)/(s|m|h)\Z")
_BIND = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>\d{1,5})\Z")

MOST_PEOPLE = 9
UNIX = "unix:"
LONGEST_SOCKET = 107  # bytes of its path, as the kernel has it


class Rate(NamedTuple):
    """At most `requests` in any `seconds`."""

    requests: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    def __str__(self) -> str:
        unit = next(name for name, seconds in _TIME_FACTORS.items() if seconds == self.seconds)
        return f"{self.requests}/{unit}"


class Bind(NamedTuple):
    """Where an HTTP server listens: a port, or a unix socket, whose host is unix:/path."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only programs of this machine can connect."""
        if self.host == "localhost" or self.socket is not None:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def socket(self) -> str | None:
        """The path of a unix socket; None for a port."""
        return self.host.removeprefix(UNIX) if self.host.startswith(UNIX) else None

    def __str__(self) -> str:
        if self.socket is not None:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_size(value: object) -> int:
    """Bytes. `64KB` is 64,000 and `64KiB` is 65,536."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str) and (found := _SIZE.match(value)):
        size = int(float(found[1]) * _SIZE_FACTORS[found[2] or ""])
        if size > 0:
            return size
    raise ValueError('must be a size above zero, such as 4096, "64KB" or "1MiB"')


def parse_time(value: object) -> float:
    """Seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    if isinstance(value, str) and (found := _TIME.match(value)):
        return float(found[1]) * _TIME_FACTORS[found[2]]
    raise ValueError('must be a time, such as 10, "500ms", "10s" or "5m"')


def parse_people(value: object) -> int:
    """How many people have to allow an act."""
    match value:
        case "human":
            return 1
        case "never":
            return 0
        case {"by": int(by), **rest} if not rest and not isinstance(by, bool) and 1 <= by <= MOST_PEOPLE:
            return by
        case _:
            raise ValueError(f"must be human, never, or {{by: NUMBER}} with 1 to {MOST_PEOPLE} people")


def written_time(seconds: float) -> str:
    """A time as it would be written, in the largest unit of which it is a whole number."""
    unit, size = next(
        ((unit, size) for unit, size in reversed(_TIME_FACTORS.items()) if seconds % size == 0), ("ms", 0.001)
    )
    return f"{seconds / size:g}{unit}"


def parse_timeout(value: object) -> float:
    seconds = parse_time(value)
    if seconds <= 0:
        raise ValueError("must be a time above zero")
    return seconds


def parse_age(value: object) -> float:
    """Seconds, of what is counted in hours or days."""
    if isinstance(value, str) and (found := _AGE.match(value)):
        return int(found[1]) * (3600.0 if found[2] == "h" else 86_400.0)
    raise ValueError('must be an age, such as "12h" or "90d"')


def parse_rate(value: object) -> Rate | None:
    """None means no limit."""
    if value == "off":
        return None
    if isinstance(value, str) and (found := _RATE.match(value)) and int(found[1]) > 0:
        return Rate(int(found[1]), _TIME_FACTORS[found[2]])
    raise ValueError('must be a rate such as "50/s" or "300/m", or "off"')


def parse_byte_rate(value: object) -> float | None:
    """Bytes a second; None means no limit."""
    if value == "off":
        return None
    if isinstance(value, str) and value.endswith("/s"):
        return float(parse_size(value.removesuffix("/s")))
    raise ValueError('must be bytes a second such as "20MB/s", or "off"')


def parse_bind(value: object) -> Bind:
    """Raises ValueError for text that is neither host:port nor unix:/path."""
    if isinstance(value, Bind):
        return value
    if isinstance(value, str) and value.startswith(UNIX):
        path = value.removeprefix(UNIX)
        if not path.startswith("/") or path.endswith("/") or "\x00" in path or len(path.encode()) > LONGEST_SOCKET:
            raise ValueError(f"must have an absolute path of at most {LONGEST_SOCKET} bytes after unix:")
        return Bind(value, 0)
    found = _BIND.match(value) if isinstance(value, str) else None
    if found is None or int(found["port"]) > 65535:
        raise ValueError("must be host:port, such as 127.0.0.1:8321 or [::1]:8321, or unix:/path")
    if found["six"]:
        try:
            ipaddress.IPv6Address(found["six"])
        except ValueError:
            raise ValueError("must have an IPv6 address between [ and ]") from None
    return Bind(found["six"] or found["host"], int(found["port"]))


_SizeText = Annotated[str, Field(pattern=r"^\d+(\.\d+)? ?([KMG]i?)?B?$")]
_TimeText = Annotated[str, Field(pattern=r"^\d+(\.\d+)? ?(ms|s|m|h)$")]
_AgeText = Annotated[str, Field(pattern=r"^[1-9]\d{0,5} ?(h|d)$")]
_ByteRateText = Annotated[str, Field(pattern=r"^(\d+(\.\d+)? ?([KMG]i?)?B?/s|off)$")]
_RateText = Annotated[str, Field(pattern=r"^(\d+/(s|m|h)|off)$")]

Size = Annotated[int, PlainValidator(parse_size, json_schema_input_type=int | _SizeText)]
Time = Annotated[float, PlainValidator(parse_time, json_schema_input_type=float | _TimeText)]
People = Annotated[
    int | None,
    PlainValidator(parse_people, json_schema_input_type=Literal["human", "never"] | dict[Literal["by"], int]),
]
Timeout = Annotated[float, PlainValidator(parse_timeout, json_schema_input_type=float | _TimeText)]
Age = Annotated[float, PlainValidator(parse_age, json_schema_input_type=_AgeText)]
Limit = Annotated[
    Rate | None,
    PlainValidator(parse_rate, json_schema_input_type=_RateText),
    PlainSerializer(lambda rate: "off" if rate is None else str(rate), return_type=str),
]
ByteLimit = Annotated[
    float | None,
    PlainValidator(parse_byte_rate, json_schema_input_type=_ByteRateText),
    PlainSerializer(lambda rate: "off" if rate is None else f"{rate:.0f}B/s", return_type=str),
]
Address = Annotated[Bind, PlainValidator(parse_bind, json_schema_input_type=str), PlainSerializer(str, return_type=str)]
