"""What a room serves over HTTP beside the protocol: a path, who may ask, and what answers.

A room gives values of this module to whoever composes the server, and never sees HTTP: the front of the transport
parses, finds out who asks, counts, bounds, decides, records and ends, in the same way as for the protocol itself. A
plugin has no way to give one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Principal, Verb

Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]  # HEAD comes with GET

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"


class Anybody(NamedTuple):
    """Nobody has to say who he is. `rate` is how many requests a second are taken from one address; None for signs of
    life, which cost no more than to refuse them: who looks after a server may stand behind the address of a flood."""

    rate: float | None


# An agent, by its key or token; or one whom a rule, and not the lack of any, grants admin at the address of the route.
Needs: TypeAlias = Anybody | Literal["agent", "admin"]


class RouteRequest(Struct, frozen=True, kw_only=True):
    """One request, as far as it concerns a room: of what proves who asks it has nothing."""

    method: str
    below: tuple[str, ...] = ()  # the names that stand below a prefix
    query: Mapping[str, str]  # nothing where it asks for a sign of life
    headers: Mapping[str, str]  # by their names in lower case
    body: bytes
    who: Principal | None  # None where nobody had to say so
    named: bool  # by a Host, and with an Origin if there is one, that are served
    shown: bool = False  # something that may prove who asks
    ask: Callable[[Call], Awaitable[Reply]]  # the pipeline, in which the request has its record then
    identify: Callable[[], Awaitable[Principal]]  # who asks, on a route for anybody; raises what refuses it


class RouteAnswer(Struct, frozen=True, kw_only=True):
    """A body, or the pieces of one, which end when the server stops or the credential of who asked ends."""

    body: bytes | AsyncGenerator[bytes, None] = b""
    status: int = 200
    media_type: str = JSON
    cache: str = "no-store"  # for whom between the two sides it may be kept, and how long


Handler: TypeAlias = Callable[[RouteRequest], Awaitable[RouteAnswer]]


class Route(Struct, frozen=True, kw_only=True):
    path: str  # the whole path; with a slash at its end everything that stands below
    methods: tuple[Method, ...]
    # The operation for which the handler asks the pipeline, which then decides, counts and records; or the verb that
    # is needed at `what`. None: a sign of life, which leaves no record as long as nobody says who he is.
    stands_for: Op | Verb | None
    what: Ref  # its address in records and rules
    needs: Needs
    handle: Handler  # is cancelled when the client leaves, and when the time of a request is over
    body: int = 0  # the most bytes of a request
    any_host: bool = False  # also who asks by a name that is not served, as balancers do: the request says so


# What is served now; asked again after every reload.
Routes: TypeAlias = Callable[[], Iterable[Route]]


def no_routes() -> tuple[Any, ...]:
    return ()
