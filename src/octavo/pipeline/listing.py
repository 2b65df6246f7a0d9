"""Pages of what a caller may see, over one source or all of them.

Pages are filled up from what is visible, so that their size tells nothing of what is not. Source
cursors are opaque: where a page of a source holds more than still fits, the exact place to continue is
asked from the source itself, by a page that ends there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from octavo.core.errors import InvalidParams, SourceUnavailable, Timeout
from octavo.core.glob import Glob
from octavo.core.model import EVERYTHING, Call, Entry, Page, Principal
from octavo.core.ports import Next
from octavo.core.ref import Ref


class Shows(Protocol):
    epoch: str

    def shows(self, principal: Principal, entry: Entry) -> bool: ...


class Listing:
    def __init__(self, exposed: Sequence[str]) -> None:
        self._exposed = tuple(exposed)

    async def page(self, call: Call, call_next: Next, policy: Shows) -> Page[Entry]:
        everywhere = call.ref == EVERYTHING
        schemes = self._exposed if everywhere else (call.ref.scheme,)
        if not everywhere and call.ref.scheme not in (*self._exposed, "tool", "prompt"):
            raise InvalidParams(f"No source serves {call.ref.scheme}:// here", reason="unknown_scheme")
        at, inner = _position(call.cursor, schemes)
        wanted = _filter(call.arguments.get("filter"))
        kept: list[Entry] = []
        down: list[str] = []
        while at < len(schemes):
            scope = Ref(schemes[at]) if everywhere else call.ref
            asked = call._replace(ref=scope, cursor=inner)
            try:
                page: Page[Entry] = await call_next(asked)
            except (SourceUnavailable, Timeout):
                if not everywhere:
                    raise
                down.append(schemes[at])
                at, inner = at + 1, None
                continue
            visible = _visible(page, call.principal, policy) if wanted is None else None
            if visible is page and not kept and (page.cursor is not None or at + 1 == len(schemes)):
                # The common case: one source page is one answer; its memo carries the encoded bytes.
                return _answer(page, schemes[at], at + 1 == len(schemes), tuple(down))
            shown = [
                (index, entry)
                for index, entry in enumerate(page.items)
                if policy.shows(call.principal, entry) and (wanted is None or wanted(entry))
            ]
            room = call.limit - len(kept)
            if len(shown) > room:
                cut = shown[room - 1][0] if room else -1
                kept += [entry for _, entry in shown[:room]]
                if cut >= 0:
                    exact: Page[Entry] = await call_next(asked._replace(limit=cut + 1))
                    inner = exact.cursor
                return Page(tuple(kept), _cursor(schemes[at], inner), tuple(down))
            kept += [entry for _, entry in shown]
            inner = page.cursor
            if inner is None:
                at += 1
            if len(kept) == call.limit:
                break
        more = at < len(schemes)
        return Page(tuple(kept), _cursor(schemes[at], inner) if more else None, tuple(down))


def _visible(page: Page[Entry], principal: Principal, policy: Shows) -> Page[Entry] | None:
    """The page itself if the caller may see all of it. The verdict is kept with the page."""
    key = (policy.epoch, principal)
    whole = page.memo.get(key)
    if whole is None:
        whole = page.memo[key] = all(policy.shows(principal, entry) for entry in page.items)
    return page if whole else None


def _answer(page: Page[Entry], scheme: str, last: bool, down: tuple[str, ...]) -> Page[Entry]:
    cursor = None if page.cursor is None and last else _cursor(scheme, page.cursor)
    # The memo is shared: whoever encodes the entries of this page does it once.
    return Page(page.items, cursor, down, page.memo)


def _cursor(scheme: str, inner: str | None) -> str:
    return json.dumps([scheme, inner], ensure_ascii=False, separators=(",", ":"))


def _position(cursor: str | None, schemes: Sequence[str]) -> tuple[int, str | None]:
    if cursor is None:
        return 0, None
    try:
        scheme, inner = json.loads(cursor)
        return schemes.index(scheme), inner
    except ValueError:
        raise InvalidParams("The cursor does not belong to this listing; list again from the start") from None


def _filter(asked: Mapping[str, Any] | None) -> Callable[[Entry], bool] | None:
    """`{mimeType, name, <metadata key>: value or list of values}`; `*` is allowed in the two text fields."""
    if not asked:
        return None
    tests: list[Callable[[Entry], bool]] = []
    for key, value in asked.items():
        tests.append(_test(key, value))
    return lambda entry: all(test(entry) for test in tests)


def _test(key: str, value: Any) -> Callable[[Entry], bool]:
    if key in ("mimeType", "name"):
        if not isinstance(value, str):
            raise InvalidParams(f"The filter {key!r} is text, with * for any characters")
        glob = Glob("x://" + value.replace("/", "\x01") if value not in ("*", "**") else "**")

        def text_matches(entry: Entry) -> bool:
            text = entry.mime_type if key == "mimeType" else entry.name
            return glob.matches(Ref("x", (text.replace("/", "\x01"),)))

        return text_matches

    accepted = set(map(str, value)) if isinstance(value, list) else {str(value)}

    def metadata_matches(entry: Entry) -> bool:
        has = entry.metadata.get(key)
        values = has if isinstance(has, list) else [has]
        return has is not None and any(str(item) in accepted for item in values)

    return metadata_matches
