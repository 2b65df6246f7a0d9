"""Answers that are made of several entries: collections, matches, relations, capabilities. JSON for whoever reads.

Every resource that such an answer tells of stands in it as an object with a `uri`. That is a promise to the policy: it
leaves out each object whose resource the caller may not see, so nothing here may be counted or summed up, and it cuts
lists to `at_most` only then. A pattern of a rule stands in an object with `what`, and is left out where it would tell
too much. An object in `matches` names in `required_tools` what it needs: where it does not say for whom it is usable,
the policy says it for its caller. An entry that is a link is not told of: one `uri` cannot say that two addresses must
be allowed. Lists tell of it. What of an object stands in a content is said under `quoted`: its `name`, or `all`, that
it stands here; the policy tells that to whoever may read the content, and leaves the word out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from typing import Any, Final

from msgspec.structs import replace

from octavo.core.ref import Ref
from octavo.core.skill import usability
from octavo.core.values import QUOTED, Content, Entry
from octavo.sources.catalog.crossrefs import PLURALS, Live, Pages
from octavo.sources.catalog.match import RecordMatch
from octavo.sources.catalog.record import DIRECTORY, Card

BODY: Final = "body"
OF_ONE_FILE: Final = (("view", "parsed"), ("view", BODY))  # which depend on nothing else
MAX_LISTED: Final = 1000  # entries of a collection that is read as a whole; a list has pages
MAX_COMPOSED: Final = 10_000  # entries among which those are that a caller may see


def content(ref: Ref, of: Entry | None, data: Any, *, composed: bool, mime_type: str = "application/json") -> Content:
    """`of` is the entry that it is a view of, if it is one: where that leads, the view leads as well."""
    made = _written(ref, of, json.dumps(data, ensure_ascii=False, indent=2), mime_type)
    return replace(made, composed=composed)


def text(ref: Ref, of: Entry, body: str) -> Content:
    """A part of a file."""
    return _written(ref, of, body, of.mime_type)


def _written(ref: Ref, of: Entry | None, body: str, mime_type: str) -> Content:
    raw = body.encode("utf-8")
    version = hashlib.blake2b(raw, digest_size=12).hexdigest()
    entry = Entry(
        ref=ref,
        name=ref.name or ref.scheme if of is None else of.name,
        title=None if of is None else of.title,
        mime_type=mime_type,
        version=version,
        size=len(raw),
        target=None if of is None else of.target,
        quoted=of is not None and of.quoted,
    )
    return Content(entry=entry, body=body, etag=version)


def collection(ref: Ref, entries: Iterable[Entry]) -> Content:
    return content(ref, None, _listed(ref, entries), composed=True, mime_type=DIRECTORY)


def known_before(content: Content) -> Entry:
    """What is known of it before it is read: size and version of what is composed depend on who reads it."""
    return replace(content.entry, version="", size=None) if content.composed else content.entry


def at(entry: Entry, ref: Ref) -> Entry:
    """The same under the address that was asked for."""
    return replace(entry, ref=ref)


def with_score(found: RecordMatch) -> Entry:
    entry = found.card.entry
    return replace(entry, metadata={**entry.metadata, "score": found.score, "reasons": [*found.reasons]})


def _listed(ref: Ref, entries: Iterable[Entry]) -> dict[str, Any]:
    told = [entry for entry in entries if entry.target is None]
    depth = len(ref.segments) + 1
    pages = {e.ref.name.casefold(): e for e in reversed(told) if len(e.ref.segments) == depth}
    page = next((pages[name] for name in ("index", "_index", "readme") if name in pages), None)
    return {
        "collection": str(ref),
        **({} if page is None else {"page": _named(page)}),  # the folder's own
        "at_most": MAX_LISTED,
        "entries": [_told(entry) for entry in told],
    }


def matched(
    request: str, found: Iterable[RecordMatch], live: Live | None, agent: str | None, picked_by: Collection[str]
) -> dict[str, Any]:
    """`picked_by` are the metadata by which they were picked out: they are told, so that one who may not see them is
    not told what fits. What the agent cannot use comes after what it can."""
    told = [_match(one, live, agent, picked_by) for one in found if one.card.entry.target is None]
    told.sort(key=lambda one: not one.get("usable", True))
    return {"match": request, "at_most": MAX_LISTED, "matches": told}


async def relations(card: Card, pages: Pages) -> dict[str, Any]:
    """What it refers to, and what refers to it, by kind; and the links of texts, there and back."""
    # All of them, also the empty ones: one that is missing would tell that something was left out of it.
    groups: dict[str, list[dict[str, Any]]] = {PLURALS.get(kind, kind): [] for kind in pages.kinds}
    seen: dict[Ref, dict[str, Any]] = {}
    for link in pages.links(card):
        other = link.card
        if other.ref not in seen:
            seen[other.ref] = _named(other.entry)
            groups[PLURALS.get(other.kind, other.kind)].append(seen[other.ref])
        seen[other.ref].setdefault("named_by_it_in" if link.back else "named_here_in", []).append(link.via)
    from_it, to_it = pages.links_of(card), (await pages.linking()).get(card.ref, ())
    return {
        "of": str(card.ref),
        "name": card.entry.name,
        "relations": groups,
        "links_to": [_named(pages.card(ref).entry) for ref in from_it],
        "linked_from": [_named(pages.card(ref).entry) | {QUOTED: "all"} for ref in to_it],
    }


def _named(entry: Entry) -> dict[str, Any]:
    named = {"uri": str(entry.ref), "name": entry.name}
    return {**named, QUOTED: "name"} if entry.quoted else named


def capabilities(card: Card, pages: Pages, live: Live | None) -> dict[str, Any]:
    """What an agent can do: its skills, the tools it may call, and what the policy lets it do.

    The file's own `permissions` are quoted as declared. They grant nothing.
    """
    agent = card.id or card.ref.name
    mine = {link.card.ref: link.card for link in pages.links(card) if link.card.kind == "skill"}
    tools = None if live is None else sorted(live.tools(agent))
    return {
        "agent": agent,
        "name": card.entry.name,
        "capabilities": card.words("capabilities"),
        "skills": [_skill(skill, live, agent) for _, skill in sorted(mine.items())],
        "tools": [{"uri": str(Ref("tool", (name,))), "name": name} for name in tools or ()],
        "permissions": {
            "live": None if live is None else [dict(rule) for rule in live.permissions(agent)],
            "declared": card.get("permissions"),
        },
    }


def _skill(card: Card, live: Live | None, agent: str) -> dict[str, Any]:
    told: dict[str, Any] = {**_named(card.entry), "required_tools": card.words("required_tools")}
    if live is not None:
        told |= _usable(card, live, agent)
    return told


def _usable(card: Card, live: Live, agent: str) -> dict[str, Any]:
    missing = sorted(set(card.words("required_tools")) - set(live.tools(agent)))
    return usability(live.may_read(agent, card.ref), missing)


def _match(found: RecordMatch, live: Live | None, agent: str | None, picked_by: Collection[str]) -> dict[str, Any]:
    card = found.card
    told = {**_named(card.entry), "score": found.score, "reasons": [*found.reasons]}
    if card.entry.quoted:
        told[QUOTED] = "all"  # it may have been found by that name alone
    if card.entry.description:
        told["description"] = card.entry.description
    if metadata := {key: value for key, value in card.entry.metadata.items() if key in picked_by}:
        told["metadata"] = metadata
    if required := card.words("required_tools"):
        told["required_tools"] = required
    if live is not None and agent is not None:
        told |= _usable(card, live, agent)
    return told


def _told(entry: Entry) -> dict[str, Any]:
    told: dict[str, Any] = {**_named(entry), "mimeType": entry.mime_type}
    if entry.description:
        told["description"] = entry.description
    return {**told, "metadata": dict(entry.metadata)} if entry.metadata else told
