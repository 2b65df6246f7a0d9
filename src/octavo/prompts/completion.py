"""Values for the arguments of a prompt: what its schema knows, and addresses that the caller may see.

Addresses come from listings that are child calls, so a name that is hidden from the caller is not offered either.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, cast

import re2 as _untyped_re2  # type: ignore[import-untyped]  # it has no annotations

from octavo.core.arguments import PLAIN, CompleteArguments, FoldersArguments, ListArguments
from octavo.core.errors import OctavoError
from octavo.core.ports.chain import Ask, page_of, several
from octavo.core.ref import MAX_URI_CHARACTERS, Ref
from octavo.core.values import EVERYTHING, Call, Entry
from octavo.prompts.arguments import completions, properties
from octavo.prompts.substitution import Address

re2: Any = _untyped_re2
MAX_PAGES: Final = 10  # of a listing that are looked at
MAX_VALUES: Final = 101  # one more than a client is told: so it learns that there are more
_FORMATS = ("uri", "uri-reference", "iri")


async def complete(
    schema: Mapping[str, Any], addresses: Sequence[Address], asked: CompleteArguments, call: Call, ask: Ask
) -> Sequence[str]:
    argument, prefix, given = asked.argument, asked.prefix, asked.given
    part = properties(schema).get(argument)
    if part is None:
        return []
    # A list is JSON on the wire: its last text is completed, and the list is ended where the text is.
    in_list = "items" in part and (not prefix or prefix.startswith("["))
    before, _, begun = (prefix or '["').rpartition('"') if in_list else ("", "", prefix)
    if in_list and (not before or before.count('"') % 2):
        return []  # not within a text
    found: Sequence[str] = completions(schema, argument, begun)
    if not found and (_is_address(part) or any(one.whole == argument for one in addresses)):
        found = await _addresses(begun, call, ask)
    elif not found:
        inside = next((one for one in addresses if argument in one.pieces[1::2]), None)
        found = [] if inside is None else await _names(inside, argument, begun, given, call, ask)
    if not in_list:
        return found
    return [f"{before}{text[:-1]}" + ("" if text.endswith('/"') else '"]') for text in map(_as_json, found)]


def _as_json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_address(part: Mapping[str, Any]) -> bool:
    items = part.get("items")
    inner = cast("Mapping[str, Any]", items) if isinstance(items, Mapping) else part
    return inner.get("format") in _FORMATS


async def _addresses(prefix: str, call: Call, ask: Ask) -> list[str]:
    """Level by level: namespaces first, then what stands in the folder that has been typed so far."""
    scheme, separator, rest = prefix.partition("://")
    if not separator:
        found = several(await ask(call.child("folders", EVERYTHING, arguments=FoldersArguments())), Ref)
        return [text for ref in found if (text := f"{ref.scheme}://").startswith(prefix.lower())]
    scope = _scope(f"{scheme}://{rest.rpartition('/')[0]}")
    if scope is None:
        return []
    offered: dict[str, None] = {}
    level = len(scope.segments) + 1
    async for entry in _listed(scope, call, ask, depth=1):
        below = len(entry.ref.segments) > level
        text = f"{entry.ref._replace(segments=entry.ref.segments[:level], params=())}/" if below else str(entry.ref)
        if text.casefold().startswith(prefix.casefold()):
            offered[text] = None
        if len(offered) >= MAX_VALUES:
            break
    return list(offered)


async def _names(
    address: Address, argument: str, prefix: str, given: Mapping[str, str], call: Call, ask: Ask
) -> list[str]:
    """What stands in an address where the variable does: `sop://brand/{{name}}`."""
    fixed, pattern = "", ""
    known = True  # all that stood so far
    for index, piece in enumerate(address.pieces):
        if index % 2 == 0 or (piece in given and piece != argument):
            text = piece if index % 2 == 0 else given[piece]
            text, query, _ = text.partition("?")
            fixed += text if known else ""
            pattern += re2.escape(text)
            if query:
                break
        else:
            known = False
            pattern += "(?P<value>.+?)" if piece == argument and "<value>" not in pattern else ".+?"
    scope = _scope(fixed if fixed.endswith("://") else fixed.rpartition("/")[0])
    if scope is None or "<value>" not in pattern or len(pattern) > 2 * MAX_URI_CHARACTERS:
        return []  # nor is anything as long as that an address
    matches = re2.compile(pattern).fullmatch
    offered: set[str] = set()
    async for entry in _listed(scope, call, ask):
        found = matches(f"{entry.ref.scheme}://{entry.ref.path}")
        if found is not None and found["value"].casefold().startswith(prefix.casefold()):
            offered.add(found["value"])
        if len(offered) >= MAX_VALUES:
            break
    return sorted(offered)


async def _listed(scope: Ref, call: Call, ask: Ask, depth: int | None = None) -> AsyncIterator[Entry]:
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        listing = call.child("list", scope, arguments=ListArguments(depth=depth) if depth else PLAIN)
        try:
            page = page_of(await ask(listing._replace(cursor=cursor)))
        except OctavoError:  # what cannot be listed has nothing to offer
            return
        for entry in page.items:
            yield entry
        cursor = page.cursor
        if cursor is None:
            return


def _scope(text: str) -> Ref | None:
    """None for what is no address."""
    try:
        return Ref.parse(text)
    except OctavoError:
        return None
