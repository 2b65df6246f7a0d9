"""Query parameters of a collection: which entries are wanted.

An entry is judged by what its own file says. What another entry is called besides would tell of that one, which the
caller may not be allowed to see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from octavo.core.errors import InvalidParams
from octavo.core.parameters import unknown as refused
from octavo.core.ref import Ref
from octavo.sources.catalog.declaration import Declaration
from octavo.sources.catalog.names import alike, folded
from octavo.sources.catalog.record import Card

MAX_VALUES: Final = 50

Wanted: TypeAlias = Callable[[Card], bool]


def filters(of: Declaration) -> Mapping[str, str]:
    """By name, the key that each looks at: those of the declaration, and every key that refers to others."""
    return {**{key: key for key in of.links if "." not in key}, **of.filters}


def wanted(of: Declaration, scope: Ref) -> Wanted | None:
    """None when every entry is. A value is one of several with commas between them; all parameters must fit.

    Raises InvalidParams for a parameter that the collection does not know.
    """
    tests = [_test(of, scope, key, value) for key, value in scope.params if key != "match"]
    if any(key == "match" for key, _ in scope.params) and not of.matches:
        raise unknown(of, scope, "match")
    return (lambda card: all(test(card) for test in tests)) if tests else None


def unknown(of: Declaration, ref: Ref, key: str) -> InvalidParams:
    """An address of one entry has other parameters than one of a collection, and both are told: which of them it is
    may be nothing to know."""
    known = (*filters(of), *(("match",) if of.matches else ()), "version", "view", "range")
    return refused(ref, key, known)


def _test(of: Declaration, scope: Ref, key: str, value: str) -> Wanted:
    field = filters(of).get(key)
    if field is None:
        raise unknown(of, scope, key)
    values = [part for part in value.split(",") if part.strip()]
    if not values or len(values) > MAX_VALUES:
        raise InvalidParams(f"The parameter {key!r} needs a value, or up to {MAX_VALUES} with commas", uri=str(scope))
    kinds = of.links.get(field) or ((key,) if key in of.variables else ())
    if not kinds:
        plainly = {folded(one) for one in values}
        return lambda card: not plainly.isdisjoint(map(folded, card.words(field)))
    meant = {alike(one, kinds) for one in values}
    return lambda card: any(alike(one, kinds) in meant for one in card.words(field))
