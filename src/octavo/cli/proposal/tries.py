"""A proposal is tried before anybody is shown it: what would not pass `octavo check` is left out, and said."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from octavo.app.configuration import load_text
from octavo.cli._checks import trial
from octavo.cli._progress import Shows
from octavo.cli._shared import in_words
from octavo.cli.proposal.agents import ProposedAgent, agents_for
from octavo.cli.proposal.folder import Look
from octavo.cli.proposal.parts import Parts, ProposedCatalog, parts_of
from octavo.cli.proposal.text import Proposal
from octavo.config.load import NAMES
from octavo.config.problems import ConfigError, Problem
from octavo.core.skill import MANIFEST
from octavo.sources.catalog.declaration import Segments
from octavo.sources.kinds import AGENT, ORG, SOP

if TYPE_CHECKING:
    from octavo.ops.sights import AgentSight

TRIES: Final = 8
_SOME: Final = 5  # one faulty file of so many, and the whole kind is not what its folder says


class Tried(Struct, frozen=True):
    """A proposal that holds; None where nothing of the folder does."""

    proposal: Proposal | None
    sees: Mapping[str, AgentSight]
    left_out: Sequence[Problem] = ()


def tried(look: Look, names: Sequence[str], shows: Shows) -> Tried:
    drop, faulty, left = set[str](), list[Segments](), dict[str, Problem]()
    for _ in range(TRIES):
        parts = asyncio.run(parts_of(look, drop=drop, faulty=faulty))
        if not parts.schemes:
            break
        proposal = Proposal(look, parts, agents_for(parts, names))
        wrong, sees = _trial(proposal, shows)
        if not wrong:
            kept = proposal if names else replace(proposal, agents=_differing(proposal.agents, sees))
            return Tried(kept, {agent.name: sees[agent.name] for agent in kept.agents}, [*left.values()])
        left.update((in_words(one), one) for one in wrong)
        before = len(drop) + len(faulty)
        _leave_out(look, parts, wrong, drop, faulty)
        if len(drop) + len(faulty) == before:
            break
    return Tried(None, {}, [*left.values()])


def _differing(agents: Sequence[ProposedAgent], sees: Mapping[str, AgentSight]) -> list[ProposedAgent]:
    """The first, and of the others those that see something, and not everything."""
    first, *others = agents
    return [first, *(one for one in others if sees[one.name].seen not in ({}, sees[first.name].seen))]


def _trial(proposal: Proposal, shows: Shows) -> tuple[Sequence[Problem], Mapping[str, AgentSight]]:
    """As it would be in its place; nothing is written for that."""
    try:
        loaded = load_text(proposal.text, file=proposal.look.base / NAMES[0])
    except ConfigError as error:
        return error.problems, {}
    return trial(loaded, [agent.name for agent in proposal.agents], shows)


def with_author(proposal: Proposal) -> Proposal:
    return replace(proposal, write=True)


def _leave_out(look: Look, parts: Parts, wrong: Sequence[Problem], drop: set[str], faulty: list[Segments]) -> None:
    """Of procedures, documents and skills the files that do not hold; of what else the whole."""
    counts: Counter[str] = Counter()
    for problem in wrong:
        if problem.key.startswith("sources."):
            name = problem.key.split(".")[1]
            drop.update(part.kind for part in parts.catalogs if part.source == name)
            continue
        place = _place(look, problem.file)
        folder = next((one for one in parts.prompts if place[: len(one)] == one), None)
        if folder is not None:
            drop.add("/".join(folder))
            continue
        part = _part_of(parts, place)
        if part is None:
            continue
        counts[part.kind] += 1
        if part.kind in (AGENT, ORG) or (part.kind == SOP and _SOME * counts[SOP] > len(part.names)):
            drop.add(part.kind)
        else:
            faulty.append(place[:-1] if place[-1] == MANIFEST else place)


def _place(look: Look, file: str) -> Segments:
    path = Path(file)
    return path.relative_to(look.base).parts if path.is_relative_to(look.base) else ()


def _part_of(parts: Parts, place: Segments) -> ProposedCatalog | None:
    """The innermost around a file."""
    around = [part for part in parts.catalogs if place and place[: len(part.path)] == part.path]
    return max(around, key=lambda part: len(part.path), default=None)
