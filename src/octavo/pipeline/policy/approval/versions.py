"""The versions of what a call names, so that what a human approves is still what he was shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from octavo.core.arguments import PLAIN, CopyArguments
from octavo.core.errors import InvalidParams, NotFound, OctavoError
from octavo.core.ports.chain import Next, expected, page_of, settled
from octavo.core.ref import Ref
from octavo.core.values import Call, Entry, Trail

MAX_RESOURCES = 10_000  # that one call may name
MAX_PAGES = 10  # of what stands in a folder
MAX_ADDRESS = 1024  # characters of an argument that may be an address


class Versions:
    def __init__(self, canonical: Callable[[Ref], Ref], address: Callable[[str], str]) -> None:
        """`address` makes a URI of what a tool may have been given as a path."""
        self._canonical, self._address = canonical, address

    async def __call__(self, call: Call, look: Next) -> dict[str, Any]:
        """By address, as they are now. What could be a path is taken for one: to ask once more is safe. Raises
        InvalidParams for more than can be looked at."""
        found: dict[str, Any] = {}
        for ref in self._all_named(call):
            stat = call._replace(op="stat", ref=ref, uri=str(ref), arguments=PLAIN, trail=Trail(), cursor=None)
            try:
                entry = expected(await settled(look(stat)), Entry)
                found[str(ref)] = _version(entry)
            except NotFound:
                found[str(ref)] = await _below(stat._replace(op="list", limit=1000), look)
            except OctavoError as missing:
                found[str(ref)] = missing.reason
        return found

    def _all_named(self, call: Call) -> Iterable[Ref]:
        refs: dict[Ref, None] = {}
        for ref in self._named(call):
            refs[ref] = None
            if len(refs) > MAX_RESOURCES:
                message = f"A human is asked about {MAX_RESOURCES} resources at once and no more: make several calls"
                raise InvalidParams(message, uri=call.uri, limit=MAX_RESOURCES)
        return refs

    def _named(self, call: Call) -> Iterator[Ref]:
        if call.op != "invoke":
            yield call.ref
        asked = call.arguments
        for text in (asked.to,) if isinstance(asked, CopyArguments) else _texts(call.values):
            try:
                ref = self._canonical(text if isinstance(text, Ref) else Ref.parse(self._address(text)))
            except OctavoError:
                continue  # no address of anything that is served
            yield ref
            yield ref.bare  # what a part or a view is of, also where the parameters are refused


def _version(entry: Entry) -> str:
    return f"{entry.version} {entry.target or ''}"


async def _below(listing: Call, look: Next) -> list[str]:
    """What stands in a folder, which is no entry itself; nothing where there is none."""
    found: list[str] = []
    try:
        for _ in range(MAX_PAGES):
            page = page_of(await settled(look(listing)))
            found += [f"{entry.ref} {_version(entry)}" for entry in page.items]
            if page.cursor is None:
                break
            listing = listing._replace(cursor=page.cursor)
    except OctavoError as fault:
        found.append(fault.reason)
    return found


def _texts(value: Any) -> Iterator[str | Ref]:
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, str):
        value = value.strip()  # a tool may do so too
        if value and len(value) <= MAX_ADDRESS and "\n" not in value:
            yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
