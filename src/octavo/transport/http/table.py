"""Finds the route that serves a path: the whole path first, then the longest prefix."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import NamedTuple

from octavo.core.routes import Anybody, Route, Routes

logger = logging.getLogger(__name__)

# Paths that nobody has to decode: what is served stands in rules, logs and proxies in one spelling.
_PATH = re.compile(r"/(?:[A-Za-z0-9._-]+/?)*\Z")
_SEGMENT = re.compile(r"[^\x00-\x1f\x7f/\\]+\Z")


class MatchedRoute(NamedTuple):
    route: Route
    below: tuple[str, ...]


class RouteTable:
    def __init__(self, given: Sequence[Routes], taken: str) -> None:
        """`taken` is the path of the protocol. Raises ValueError for routes that cannot stand beside each other."""
        self._given, self._taken = given, taken
        self._whole: dict[str, Route] = {}
        self._prefixes: list[Route] = []
        self._read()

    def reload(self) -> None:
        """What is given now; the routes of before stay where that cannot be served."""
        try:
            self._read()
        except ValueError as fault:
            logger.error("the routes of before stay: %s", fault)

    def find(self, path: str) -> MatchedRoute | None:
        route = self._whole.get(path)
        if route is not None:
            return MatchedRoute(route, ())
        for route in self._prefixes:
            if path.startswith(route.path):
                below = tuple(path[len(route.path) :].split("/")) if path != route.path else ()
                return MatchedRoute(route, below) if all(map(_is_name, below)) else None
        return None

    def _read(self) -> None:
        whole: dict[str, Route] = {}
        for route in (route for routes in self._given for route in routes()):
            if fault := _fault(route, self._taken):
                raise ValueError(f"the route {route.path} cannot be served: {fault}")
            if route.path in whole:
                raise ValueError(f"the route {route.path} is given twice")
            whole[route.path] = route
        prefixes = [route for path, route in whole.items() if path.endswith("/")]
        self._whole = whole
        self._prefixes = sorted(prefixes, key=lambda one: -len(one.path))


def _fault(route: Route, taken: str) -> str:
    if not _PATH.match(route.path) or "/./" in route.path or "/../" in route.path or route.path == "/":
        return "a path begins with / and holds plain names"
    if route.path.rstrip("/") == taken:
        return "there the protocol stands"
    if not route.methods:
        return "it has no method"
    if route.any_host and not isinstance(route.needs, Anybody):
        return "who says who he is asks by a name that is served"
    if (route.stands_for == "admin") is not (route.needs == "admin"):
        return "admin is needed where it stands for admin, and nowhere else"
    return ""


def _is_name(text: str) -> bool:
    return text not in (".", "..") and _SEGMENT.match(text) is not None
