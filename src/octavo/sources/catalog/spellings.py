"""Spellings of an address: an id in the place of a name, `func-brand` for the folder `brand`, `value_stream`, and the
name of the file, as a link in another one writes it.

Each is judged by the entry that it means and by the form of ids, never by other entries: those may be hidden from
whoever asks. What is a name as it stands is no spelling of anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from octavo.core.errors import OctavoError
from octavo.core.ports.source import Called
from octavo.core.ref import Ref
from octavo.sources.catalog.declaration import Declaration, Segments, Shape
from octavo.sources.catalog.names import PREFIXES, folded, plain
from octavo.sources.catalog.record import Card
from octavo.sources.catalog.snapshot import CatalogSnapshot


def holds(page: CatalogSnapshot, ref: Ref) -> bool:
    """Whether there is an entry, a file of one, or a collection with one."""
    return not ref.segments or ref in page.cards or next(page.listed(ref, None), None) is not None


def meanings(of: Declaration, page: CatalogSnapshot, ref: Ref) -> list[list[Ref]]:
    """The names that an address could mean, of what is there, the likeliest first: itself, then what it spells. Those
    of one id stand together."""
    if ref.absolute:
        return []
    asked = ref.bare
    found = ([one for one in group if holds(page, one)] for group in ([asked], *_meant(of, page, asked)))
    return [[one._replace(params=ref.params) for one in group] for group in found if group]


def others(of: Declaration, page: CatalogSnapshot, ref: Ref) -> Called:
    """What else an entry can be called in an address: by its id, and by what its own file says of its folder."""
    card = page.cards.get(ref)
    if card is None:
        return Called()
    shape = next(one for one in of.shapes if one.address.match(ref.segments) is not None)
    last = [ref.name, *filter(None, [card.id]), *(f"{prefix}{ref.name}" for prefix in _prefixes((card.kind,))[:1])]
    folders: list[list[str]] = []
    for part, segment in zip(_parts(shape), ref.segments[:-1], strict=False):
        kinds = _kinds(of, part)
        if not part.startswith("{"):
            told = [segment.replace("-", "_")]
        else:
            said = (one for one in card.words(part.strip("{+}")) if plain(one, kinds) == plain(segment, kinds))
            told = [*said, *(f"{prefix}{segment}" for prefix in _prefixes(kinds)[:1])]
        folders.append([segment, *told])
    folders += [[segment] for segment in ref.segments[len(folders) : -1]]
    spelled = [*product(*folders, last), *([(card.id,)] if card.id else [])]
    free: list[Ref] = []
    taken: list[Ref] = []
    for names in dict.fromkeys(spelled):
        if (one := _ref(of, names)) is not None and one != ref:
            (taken if holds(page, one) else free).append(one)
    return Called(free, taken)


def says(of: Declaration, shape: Shape, card: Card, variable: str, value: str, given: str) -> bool:
    """Whether what was given for a variable of an address is a spelling of the value that an entry has there."""
    if given == value:
        return True
    if variable != _parts(shape)[-1].strip("{+}"):
        return plain(given, _kinds(of, variable)) == folded(value)
    meant = plain(given, (shape.kind,))
    return meant in (folded(value), folded(card.ref.path)) or bool(card.id and folded(given) == folded(card.id))


def meant_instead(of: Declaration, page: CatalogSnapshot, card: Card) -> Ref | None:
    """The other entry, or collection, whose name the id of an entry is."""
    spelled = (_ref(of, names) for names in ((*card.ref.segments[:-1], card.id), (card.id,)))
    found = (one for one in spelled if one is not None and not card.ref.within(one) and holds(page, one))
    return next(found, None)


def _meant(of: Declaration, page: CatalogSnapshot, ref: Ref) -> Iterator[list[Ref]]:
    """Behind an id the names of its files may follow."""
    file = of.located(ref.segments)  # as a link names it, with its ending
    if file is not None and not file[2] and of.owner(ref.segments) is None:
        yield [Ref(of.scheme, file[0])]
    usual = [ref.segments, *dict.fromkeys(_usual(of, shape, ref.segments) for shape in of.shapes)]
    yield from ([Ref(of.scheme, names)] for names in usual[1:])
    for cut in range(len(ref.segments), 0, -1):
        tail = ref.segments[cut:]
        folders = {names[: cut - 1] for names in usual}
        entries = [one for one in page.find_id(ref.segments[cut - 1]) if page.cards[one].entry.target is None]
        if cut > 1:
            entries = [one for one in entries if one.segments[:-1] in folders]
        yield [one.child(*tail) if tail else one for one in entries]
        for shape in of.shapes:
            name = _without(ref.segments[cut - 1], (shape.kind,))
            yield from ([Ref(of.scheme, (*folder, name, *tail))] for folder in folders)


def _usual(of: Declaration, shape: Shape, segments: Segments) -> Segments:
    """With folders as they are usually written: no prefix of an id, and the dash of the address."""
    made = list(segments)
    for number, part in enumerate(_parts(shape)[: len(segments)]):
        if not part.startswith("{"):
            if folded(part) != folded(segments[number]):
                return segments
            made[number] = part
        elif number < len(_parts(shape)) - 1:
            made[number] = _without(segments[number], _kinds(of, part))
    return tuple(made)


def _parts(shape: Shape) -> list[str]:
    return shape.address.text.split("/")


def _kinds(of: Declaration, part: str) -> tuple[str, ...]:
    name = part.strip("{+}")
    return of.links.get(name) or (name,)


def _prefixes(kinds: tuple[str, ...]) -> list[str]:
    return [prefix for kind in kinds for prefix in PREFIXES.get(kind, ())]


def _without(name: str, kinds: tuple[str, ...]) -> str:
    found = (one for one in _prefixes(kinds) if folded(name).startswith(one) and len(name) > len(one))
    return name[len(next(found, "")) :]


def _ref(of: Declaration, names: Segments) -> Ref | None:
    """None for an id that cannot stand in an address, such as one with a slash in it."""
    try:
        return Ref.of(of.scheme, names)
    except OctavoError:
        return None
