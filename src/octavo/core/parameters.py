"""Checks the query parameters of an address: only those that its kind of source declares."""

from __future__ import annotations

from collections.abc import Collection

from octavo.core.errors import InvalidParams
from octavo.core.near_names import meant
from octavo.core.ref import Ref


def refuse_unknown(ref: Ref, declared: Collection[str]) -> None:
    """Raises InvalidParams for the first parameter that is not declared."""
    for key, _ in ref.params:
        if key not in declared:
            raise unknown(ref, key, declared)


def unknown(ref: Ref, key: str, declared: Collection[str]) -> InvalidParams:
    known = meant(key, declared) if declared else f"{ref.scheme}:// takes none: leave it out"
    return InvalidParams(f"Unknown query parameter: {key!r}; {known}", uri=str(ref))
