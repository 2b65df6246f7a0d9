"""Up to three agents to begin with: one that may have everything that is proposed, the others a part of it each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import cycle
from typing import Final

from msgspec import Struct

from octavo.cli.proposal.parts import Parts, ProposedCatalog
from octavo.core.ref import Ref
from octavo.sources.catalog.declaration import Segments
from octavo.sources.kinds import AGENT, DOC, SKILL, SOP

AGENTS: Final = 3
_MOST: Final = 20
AUTHOR: Final = "agent-author"


class ProposedAgent(Struct, frozen=True):
    name: str
    what: Sequence[str]  # patterns that it may list, read, search and watch
    everything: bool = False


class ProposedPiece(Struct, frozen=True):
    label: str
    patterns: Sequence[str]


def agents_for(parts: Parts, names: Sequence[str] = ()) -> list[ProposedAgent]:
    """The first has everything, the others a piece each, largest first. Where `names` has more of them than there are
    pieces, these begin again; without names there are as many agents as differ."""
    everything = [f"{scheme}://*" for scheme in parts.schemes]
    pieces = _pieces(parts)
    wanted = len(names) or AGENTS
    again = cycle(pieces) if names else pieces
    narrow = [one for one, _ in zip(again, range(wanted - 1), strict=False)]
    known = names or ("agent-reader", *_named(narrow, _described(parts)))
    found = [ProposedAgent(known[0], everything, everything=True)]
    found += [ProposedAgent(name, piece.patterns) for name, piece in zip(known[1:], narrow, strict=False)]
    found += [ProposedAgent(name, everything, everything=True) for name in known[1 + len(narrow) :]]
    return found


def _described(parts: Parts) -> frozenset[str]:
    """Agents of which the folder tells: what they may is not proposed here."""
    return frozenset(name[-1].lower() for part in parts.catalogs if part.kind == AGENT for name in part.names)


def _named(pieces: Sequence[ProposedPiece], described: Collection[str]) -> list[str]:
    named: list[str] = []
    for number, piece in enumerate(pieces, 2):
        word = re.sub(r"[^\w.-]+", "-", piece.label.lower()).strip("-._")
        name = f"agent-{word or number}"
        name = name if {word, name}.isdisjoint(described) else f"{name}-reader"
        named.append(name if name not in (*named, "agent-reader", AUTHOR) else f"{name}-{number}")
    return named


def _pieces(parts: Parts) -> list[ProposedPiece]:
    """Whole catalogs beside the largest one, then folders of that."""
    by_size = sorted(parts.catalogs, key=lambda part: -len(part.names))
    if not by_size:
        return [ProposedPiece(folder[-1], [f"file://{folder[-1]}/*"]) for folder in parts.files if folder]
    whole = [
        ProposedPiece(part.source, [f"{part.scheme}://*", *_attached(parts, part.path)])
        for part in by_size[1:]
        if part.kind in (SOP, SKILL, DOC)
    ]
    folders = _folders(by_size[0], parts)
    return [*folders, *whole] if len(whole) < 1 else [whole[0], *folders, *whole[1:]]


def _attached(parts: Parts, folder: Segments) -> list[str]:
    """What is attached to the documents of a folder, as a pattern; nothing where there is none, or it is the whole."""
    inside = any(one[: len(folder)] == folder for one in parts.attached)
    return [f"{_exact(parts.beside, folder)}/*"] if folder and inside else []


def _folders(part: ProposedCatalog, parts: Parts) -> list[ProposedPiece]:
    """The largest folders that are a true part of it, and where there is hardly one, those below."""
    folders: list[Segments] = []
    above: Segments = ()
    while len(folders) < AGENTS - 1:
        depth = len(above) + 1
        counts = Counter(name[:depth] for name in part.names if len(name) > depth and name[: depth - 1] == above)
        if not counts:
            break
        found = sorted(counts, key=lambda one: (-counts[one], one))[:_MOST]
        folders += [one for one in found if counts[one] < len(part.names)]
        above = found[0]
    return [
        ProposedPiece(one[-1], [f"{_exact(part.scheme, one)}/*", *_attached(parts, (*part.path, *one))])
        for one in folders
    ]


def _exact(scheme: str, names: Segments) -> str:
    """As a pattern in which a star of the name is no wildcard."""
    return str(Ref.of(scheme, names)).replace("*", "%2A")
