"""Several catalogs that refer to each other: what a reference means, what points where, and what points nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.sources.catalog.declaration import Declaration
from octavo.sources.catalog.places import CatalogPlaces
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.record import Card
from octavo.sources.catalog.snapshot import CatalogSnapshot
from octavo.sources.catalog.spellings import meant_instead
from octavo.sources.catalog.store import CatalogLook
from octavo.text.frontmatter import shown

PLURALS: Final[Mapping[str, str]] = {
    "sop": "sops", "doc": "docs", "skill": "skills", "agent": "agents", "function": "functions", "role": "roles",
    "value-stream": "value_streams",
}  # fmt: skip


_TURN: Final = 64  # texts between two turns of the event loop


class CatalogPart(Protocol):
    """A catalog, as the handbook sees it."""

    @property
    def declaration(self) -> Declaration: ...
    @property
    def is_read(self) -> bool:
        """Whether everything was looked at once."""
        ...

    async def look(self, moment: CatalogLook) -> CatalogSnapshot: ...
    def epoch(self, moment: int) -> object | None: ...


class Live(Protocol):
    """What the running house knows of an agent, whatever files say of it."""

    def tools(self, agent: str) -> Sequence[str]:
        """Names of the tools that the agent may call."""
        ...

    def may_read(self, agent: str, ref: Ref) -> bool: ...

    def has_tool(self, name: str) -> bool: ...

    def knows(self, agent: str) -> bool:
        """Whether the configuration has an agent of that id."""
        ...

    def rules(self, agent: str) -> bool:
        """Whether there is a policy, and the configuration knows the agent."""
        ...

    def reaches(self, agent: str, verb: str, pattern: Glob) -> bool:
        """Whether the policy could allow the agent anything that the pattern covers."""
        ...

    def permissions(self, agent: str) -> Sequence[Mapping[str, Any]]:
        """The rules of the policy that concern the agent, each with `may`, `what` and `effect`."""
        ...


class CrossReference(NamedTuple):
    """`via` is the key in which one entry names the other; `back` when it is the other one that says so."""

    card: Card
    via: str
    back: bool


class Handbook:
    """Catalogs join it when they are made; one alone is a handbook of its own."""

    def __init__(self) -> None:
        self._parts: list[CatalogPart] = []
        self._last = Pages(())
        self.live: Live | None = None

    def join(self, part: CatalogPart) -> None:
        self._parts.append(part)

    def stamp(self, moment: int = 0) -> object | None:
        """Changes when any part does; None while that is not known."""
        epochs = tuple(part.epoch(moment) for part in self._parts)
        return None if None in epochs else epochs

    async def look(self, own: CatalogPart, seconds: float | None = None, *, alone: bool = False) -> Pages:
        """All parts as they are now. Another one that is down is missing, and nothing is said of what refers to it. So
        is one that is being read for the first time, if that takes longer; where the part that asks is enough `alone`,
        no other one is waited for.

        Raises what the part that asks raises.
        """
        moment, pages = CatalogLook(seconds), list[tuple[Declaration, CatalogSnapshot]]()
        for part in self._parts:
            if alone and part is not own and not part.is_read:
                continue
            try:
                pages.append((part.declaration, await part.look(moment)))
            except OctavoError:
                if part is own:
                    raise
        if not self._last.are(pages):
            self._last = Pages(pages)
        return self._last


class Pages:
    """A handbook at one moment: the same one as long as nothing in it has changed."""

    def __init__(self, parts: Sequence[tuple[Declaration, CatalogSnapshot]]) -> None:
        self._parts = parts
        self._pointing: dict[Ref, list[CrossReference]] | None = None
        self._linking: Mapping[Ref, Sequence[Ref]] | None = None
        self._circles: dict[tuple[str, str], frozenset[Ref]] = {}
        self._of_kind = {shape.kind: page for of, page in parts for shape in of.shapes}
        self._of_scheme = {of.scheme: (of, page) for of, page in parts}

    def are(self, parts: Sequence[tuple[Declaration, CatalogSnapshot]]) -> bool:
        mine = [page for _, page in self._parts]
        return len(mine) == len(parts) and all(old is new for old, (_, new) in zip(mine, parts, strict=True))

    @cached_property
    def everything(self) -> Sequence[Ref]:
        return [ref for _, page in self._parts for ref in page.cards]

    def keeps(self, file: str) -> bool:
        """Whether a file stands where a catalog has its files."""
        return not file.startswith("../") and any(file.startswith(folder) for folder in self._folders)

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(f"{folder}/" if (folder := of.path.strip("/")) else "" for of, _ in self._parts)

    def is_part(self, card: Card, file: str) -> bool:
        """Whether a file of the same catalog belongs to an entry."""
        names = tuple(file.removeprefix(card.folder).strip("/").split("/"))
        return card.ref._replace(segments=names) in self.of(card.ref.scheme).files

    def linked(self, card: Card, path: str) -> Ref | None:
        """Where a relative link leads that stands in the text of a card, or one from the root of its site."""
        return self._places.linked(card.file, path)

    async def linking(self) -> Mapping[Ref, Sequence[Ref]]:
        """To each entry those whose texts have a link to it. Others have their turn while that is found out."""
        if self._linking is None:
            found: dict[Ref, dict[Ref, None]] = {}
            for number, card in enumerate((one for _, page in self._parts for one in page.cards.values()), 1):
                for ref in self.links_of(card):
                    found.setdefault(ref, {})[card.ref] = None
                if number % _TURN == 0:
                    await asyncio.sleep(0)
            self._linking = {ref: sorted(cards) for ref, cards in found.items()}
        return self._linking

    def links_of(self, card: Card) -> Sequence[Ref]:
        """The entries to which the text of a card has links, in their order there."""
        if card.entry.target is not None:
            return ()
        found = dict.fromkeys(self.linked(card, path) for path in card.references)
        return [ref for ref in found if ref is not None and ref != card.ref and self.card(ref).entry.target is None]

    @cached_property
    def _places(self) -> CatalogPlaces:
        return CatalogPlaces((card.file, card.ref) for _, page in self._parts for card in page.cards.values())

    @property
    def schemes(self) -> frozenset[str]:
        return frozenset(self._of_scheme)

    def holds(self, ref: Ref) -> bool:
        """Whether there is an entry, or a collection with one."""
        page = self._of_scheme[ref.scheme][1]
        return ref in page.cards or next(page.under(ref, None), None) is not None

    @property
    def kinds(self) -> Sequence[str]:
        return [*self._of_kind]

    def resolve(self, kinds: Sequence[str], text: str) -> list[Ref]:
        """The entries of these kinds that an id, a name or an address means: one, none, or several of one name."""
        if "://" in text:
            return [ref for ref in self._at(text) if self.card(ref).kind in kinds]
        for kind in kinds:
            page = self._of_kind.get(kind)
            if page is not None and (found := page.find(kind, text)):
                return found
        return []

    def card(self, ref: Ref) -> Card:
        return self._of_scheme[ref.scheme][1].cards[ref]

    def of(self, scheme: str) -> CatalogSnapshot:
        return self._of_scheme[scheme][1]

    def links(self, card: Card) -> list[CrossReference]:
        """In both directions, each once, ordered by address; without entries that are links themselves."""
        if self._pointing is None:
            self._pointing = {}
            for _, page in self._parts:
                for other in page.cards.values():
                    for link in self._out(other):
                        self._pointing.setdefault(link.card.ref, []).append(CrossReference(other, link.via, True))
        links = [*self._pointing.get(card.ref, ()), *self._out(card)]
        found = {(link.card.ref, link.via): link for link in links if link.card.entry.target is None}
        return [found[key] for key in sorted(found)]

    def faults(self, card: Card) -> Iterator[FileProblem]:
        """What is wrong with a card only in the company of others. For whoever may see every file: it tells of others
        that they are there, or that they are not."""
        of, page = self._of_scheme[card.ref.scheme]
        file = card.file
        made = "id" in card.inferred  # from the path, where each file has its own, or by the rule of the catalog
        said = "" if made and not of.ids else card.id
        others = [ref for ref in page.find_id(said) if ref != card.ref] if said else []
        if others:
            which = self.card(others[0]).file
            hint = f": the id: of the catalog makes {said} of both" if made else ""
            yield FileProblem(file, card.line(("id",)), f"its id is also that of {which}{hint}", card.ref)
        elif said and not made and (name := meant_instead(of, page, card)) is not None:
            message = f"its id is the name of {name}: in an address it means that one"
            yield FileProblem(file, card.line(("id",)), message, card.ref, serious=False)
        for key, kinds in of.links.items():
            if key in card.inferred or not any(kind in self._of_kind for kind in kinds):
                continue  # the file does not say so, or there is nothing that could be referred to
            for path, text in card.said(key):
                found = self.resolve(kinds, text)
                if len(found) != 1:
                    said = f"there is {'no' if not found else 'more than one'} such {' or '.join(kinds)}"
                    yield FileProblem(file, card.line(path), f"{shown(path)}: {said}", card.ref)
        for key in of.above:
            if card.ref in self._in_circles(of, key):
                yield FileProblem(file, card.line((key,)), f"{key} leads in a circle back to this entry", card.ref)

    def _at(self, uri: str) -> list[Ref]:
        try:
            ref = Ref.parse(uri).bare
        except OctavoError:
            return []
        usual = ref._replace(segments=(ref.segments[0].replace("_", "-"), *ref.segments[1:])) if ref.segments else ref
        cards = self._of_scheme[ref.scheme][1].cards if ref.scheme in self._of_scheme else {}
        return [one for one in dict.fromkeys((ref, usual)) if one in cards]

    def _out(self, card: Card) -> Iterator[CrossReference]:
        of, _ = self._of_scheme[card.ref.scheme]
        for key, kinds in of.links.items():
            for text in card.words(key):
                for ref in self.resolve(kinds, text):
                    if ref != card.ref:
                        yield CrossReference(self.card(ref), key, False)

    def _in_circles(self, of: Declaration, key: str) -> frozenset[Ref]:
        """Every entry that is above itself. Each is looked at once, however long the way up is."""
        known = self._circles.get((of.scheme, key))
        if known is not None:
            return known
        circling: set[Ref] = set()
        seen: set[Ref] = set()
        for start in self._of_scheme[of.scheme][1].cards:
            way: dict[Ref, int] = {}
            at: Ref | None = start
            while at is not None and at not in seen and at not in way:
                way[at] = len(way)
                at = self._above(at, key, of.links[key])
            if at in way:
                circling.update(ref for ref, step in way.items() if step >= way[at])
            seen.update(way)
        return self._circles.setdefault((of.scheme, key), frozenset(circling))

    def _above(self, ref: Ref, key: str, kinds: Sequence[str]) -> Ref | None:
        return next((above for text in self.card(ref).words(key)[:1] for above in self.resolve(kinds, text)[:1]), None)
